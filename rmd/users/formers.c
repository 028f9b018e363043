/* SPDX-License-Identifier: GPL-3.0-or-later */
/* formers.c - see formers.h. */
#include "rmd/users/formers.h"
#include "libinvasive/base/assertion.h"
#include "rmd/domain/domain.h"
#include "rmd/loop/log.h"

#include <unistd.h>

static void replace_fd(int *place, int fd)
{
    if (*place >= 0)
        close(*place); /* stored twice: the newer one comes last */
    *place = fd;
}

void rmd_formers_add(struct rmd_formers *f, uid_t uid, enum rmd_stored_kind what, int fd)
{
    unsigned i = 0;
    if (what == RMD_STORED_ORDERS) {
        replace_fd(&f->orders, fd);
        return;
    }
    while (i < f->count && f->item[i].uid != uid)
        i++;
    if (i == RMD_STORED_USERS) {
        close(fd);
        return;
    }
    inv_assert(i <= f->count && f->count <= RMD_STORED_USERS);
    if (i == f->count)
        f->item[f->count++] = (struct rmd_former){uid, -1, -1};
    replace_fd(what == RMD_STORED_STATE ? &f->item[i].state : &f->item[i].table, fd);
}

void rmd_formers_cores(const struct rmd_formers *f, struct inv_topology *t, const char *sys_root)
{
    unsigned now = t->ncores;
    for (unsigned i = 0; i < f->count; i++)
        if (f->item[i].state >= 0 && rmd_takeover_cores(t, f->item[i].state, sys_root)) {
            rmd_log(RMD_NOTICE,
                    "processes run on the %u CPUs of the former rmd: going on with these, not with "
                    "the %u that are online now", t->ncores, now);
            return;
        }
}
