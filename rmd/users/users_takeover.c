/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * users_takeover.c - the core tables of a former rmd.
 */
#include "rmd/users/users_inside.h"
#include "libinvasive/base/now.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <unistd.h>

void rmd_users_receive_stored(uid_t uid, enum rmd_stored_kind what, int fd)
{
    rmd_formers_add(&rmd_users.formers, uid, what, fd);
}

void rmd_users_former_cores(struct inv_topology *t, const char *sys_root)
{
    rmd_formers_cores(&rmd_users.formers, t, sys_root);
}

/* Cores that the user has in its table stay the user's.  If two users have the same core, the first
 * one keeps it: in the other's table no process can compute on it any more. */
static void resume_cores(struct user *u)
{
    for (unsigned c = 0; c < rmd_users.topology.ncores; c++) {
        if (rmd_users.current_user[c] == u)
            rmd_users.current_user[c] = NULL;
        if (rmd_domain_grant(u->domain, c) == RMD_NOT_GRANTED)
            continue;
        if (rmd_users.current_user[c]) {
            rmd_domain_withdraw(u->domain, c);
            rmd_domain_expel(u->domain, c);
            continue;
        }
        rmd_users.current_user[c] = rmd_users.next_user[c] = u;
        rmd_users.asked_ns[c] = rmd_domain_grant(u->domain, c) == RMD_REVOKING ? inv_now_ns() : 0;
    }
}

static int take_over_user(struct user *u, const struct rmd_former *f)
{
    int n =
        f->table >= 0 && f->state >= 0 ? rmd_domain_take_over(u->domain, f->table, f->state) : -1;
    /* a domain with a table owns the descriptors of f, even if its last process has ended */
    if (rmd_domain_table(u->domain)) {
        rmd_log(RMD_NOTICE, "user %u: took back a core table with %d processes", (unsigned)f->uid,
                n);
        resume_cores(u);
        return n;
    }
    rmd_log(n ? RMD_WARNING : RMD_INFO, "user %u: the former rmd's core table, %s",
            (unsigned)f->uid,
            !n ? "without processes"
            : errno == ESTALE
                ? "of other cores than now: its processes go on by themselves until they end"
                : "which is of another version or none: if it has processes they go on by "
                  "themselves until they end");
    if (f->table >= 0)
        close(f->table);
    if (f->state >= 0)
        close(f->state);
    if (rmd_users.options.store)
        rmd_users.options.store(f->uid, -1, -1);
    return 0;
}

void rmd_users_take_over(void)
{
    rmd_users.taking_over = true;
    rmd_users_recall_orders();
    for (unsigned i = 0; i < rmd_users.formers.count; i++) {
        errno = EPROTO;
        const struct rmd_former *f = &rmd_users.formers.item[i];
        struct user *u = rmd_users_served(f->uid) ? rmd_user_find(f->uid) : NULL;
        if (u)
            take_over_user(u, f);
    }
    rmd_users.formers.count = 0;
    rmd_users.taking_over = false;
    rmd_users_forget_excess();
    rmd_users_cpus_changed();
    rmd_users_divide();
    for (struct user *u = rmd_users.first; u; u = u->next)
        if (rmd_domain_table(u->domain) && !rmd_domain_live(u->domain))
            rmd_domain_reset(u->domain); /* its last process ended during the takeover */
}
