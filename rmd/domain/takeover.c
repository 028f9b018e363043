/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * takeover.c - an rmd that is started again continues where a former one was killed, at any
 * instruction.
 *
 * Members and owners come from the former rmd's state (state.h), which is complete at any time.
 * rmd then makes the table, which its processes write to, agree with the state.  A step that the
 * former rmd had begun but not saved is repeated, or was never answered: a process can be removed
 * twice, and a process without an answer asks again.  rmd wakes all threads that the former one may
 * have been about to wake.  The processes take no part in a takeover.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "libinvasive/base/cpus.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/host/online.h"
#include "rmd/domain/order.h"
#include "rmd/placement/placement.h"
#include "rmd/domain/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Does the table's head, as the former rmd wrote it, belong to this version and these cores? */
static int table_fits(const struct rmd_domain *d, const struct rmd_state *state)
{
    const struct inv_topology *cores = &d->topology;
    struct inv_table head;
    memcpy(&head, state->head, RMD_HEAD_BYTES);
    errno = EPROTO;
    if (head.magic != INV_TABLE_MAGIC || head.version != INV_TABLE_VERSION ||
        head.bytes != INV_TABLE_BYTES || head.nslots != INV_MAX_SLOTS ||
        head.mode > INV_MODE_ANONYMOUS)
        return -1;
    errno = ESTALE;
    if (head.ncores != cores->ncores || head.emulated != (uint32_t)cores->emulated)
        return -1;
    for (unsigned c = 0; c < cores->ncores; c++)
        if (state->os_cpu[c] != (cores->emulated ? -1 : cores->os_cpu[c]))
            return -1;
    return 0;
}

/* --- the former rmd's cores */

static bool has_cpu(const struct inv_topology *t, int cpu)
{
    for (unsigned c = 0; c < t->ncores; c++)
        if (t->os_cpu[c] == cpu)
            return true;
    return false;
}

/* Do the cores `then` of the state differ from those now, and only by CPUs that are offline now or
 * were offline then? */
static bool differs_by_offline_only(const struct inv_topology *now, const struct inv_topology *then,
                                    const char *sys_root)
{
    bool away[INV_MAX_CORES], differ = now->ncores != then->ncores;
    rmd_online(sys_root, then, NULL, away);
    for (unsigned c = 0; c < then->ncores; c++) {
        if (!has_cpu(now, then->os_cpu[c]) && !away[c])
            return false;
        differ |= c < now->ncores && now->os_cpu[c] != then->os_cpu[c];
    }
    return differ;
}

bool rmd_takeover_cores(struct inv_topology *now, int state_fd, const char *sys_root)
{
    struct inv_topology then = *now;
    struct inv_table head;
    struct rmd_state *state = rmd_state_map(state_fd);
    if (!state)
        return false;
    memcpy(&head, state->head, RMD_HEAD_BYTES);
    bool good = !now->emulated && !head.emulated && state->asked == now->asked &&
                head.ncores > 0 && head.ncores <= INV_MAX_CORES && rmd_state_living(state);
    for (unsigned c = 0; good && c < head.ncores; c++)
        good = state->os_cpu[c] >= 0 && state->os_cpu[c] < INV_MAX_CPUS &&
               state->apart[c] <= INV_SAME_MACHINE;
    if (good) {
        inv_topology_resume(&then, head.ncores, state->os_cpu, state->apart);
        good = differs_by_offline_only(now, &then, sys_root);
    }
    rmd_state_unmap(state);
    if (good)
        *now = then;
    return good;
}

/* --- processes and their cores */

static void restore_head(struct inv_table *t, const struct rmd_state *state,
                         const struct inv_topology *topology)
{
    memcpy(t, state->head, RMD_HEAD_BYTES);
    for (unsigned c = 0; c < t->ncores; c++) {
        inv_core_at(t, c)->os_cpu = state->os_cpu[c];
        inv_core_at(t, c)->apart = state->apart[c];
        inv_core_at(t, c)->speed = topology->speed[c];
    }
    atomic_store(&t->rmd_pid, (uint32_t)getpid());
}

static void restore_process(struct rmd_domain *d, unsigned slot,
                            const struct rmd_state_process *was)
{
    struct rmd_process *p = &d->procs[slot];
    *p = (struct rmd_process){.pidfd = {.fd = -1},
                              .assigned = INV_NO_CORE,
                              .domain = d,
                              .used = true,
                              .pid = was->pid,
                              .rank = was->rank,
                              .size = was->size,
                              .job = was->job,
                              .mark = was->mark,
                              .launch = was->launch,
                              .local_rank = was->local_rank,
                              .local_size = was->local_size,
                              .start_ns = was->start_ns,
                              .settled_ns = was->settled_ns,
                              .owned_ns = was->owned_ns,
                              .energy = {.energy_uj = was->energy_uj},
                              .start_ticks = was->start_ticks,
                              .loan = was->loan,
                              .stopped = was->stopped,
                              .wanted = was->wanted,
                              .locks = was->locks,
                              .suspended = was->suspended,
                              .priority = was->priority,
                              .order = {.least = was->least, .most = was->most}};
    d->stopped += p->stopped;
    d->live++;
    rmd_energy_join(&d->shared->energy, &p->energy, p->pid);
}

/* Restores orders, and the cores that rest because of them. */
static void restore_orders(struct rmd_domain *d, const struct rmd_state_copy *copy)
{
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        int slot = copy->pinned_to[c];
        if (slot < 0 || !d->procs[slot].used)
            continue;
        d->procs[slot].order.pinned = true;
        inv_set_add(d->procs[slot].order.cores, c);
    }
    bool any = d->table->mode == INV_MODE_PINNED && rmd_orders_any(d);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        d->resting[c] = any && d->grant[c] == RMD_GRANTED && d->owner[c] == RMD_NO_OWNER;
}

static void restore_domain(struct rmd_domain *d, const struct rmd_state *state)
{
    const struct rmd_state_copy *copy = &state->copy[atomic_load(&state->valid)];
    d->joined = copy->joined;
    d->expected = copy->expected;
    d->tokens = copy->tokens;
    d->jobs = copy->jobs;
    d->newest_job = copy->newest_job;
    d->newest_launch = copy->newest_launch;
    d->moves = copy->moves;
    d->granted = d->units_granted = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (copy->process[s].pid)
            restore_process(d, s, &copy->process[s]);
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        int owner = copy->owner[c];
        bool owned = owner >= 0 && d->procs[owner].used && c < d->topology.ncores;
        d->grant[c] = atomic_load(&state->grant[c]);
        bool granted = d->grant[c] == RMD_GRANTED && c < d->topology.ncores;
        d->owner[c] = owned && granted ? owner : RMD_NO_OWNER;
        d->granted += granted;
        d->units_granted += granted && rmd_units_first(&d->units, c);
    }
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] >= 0)
            d->procs[d->owner[c]].owned++;
    restore_orders(d, copy);
}

/* Does the process live, and is it the same one?  The pidfd is opened first: if the process is
 * alive, what is read afterwards is of the same process. */
static bool find_process(struct rmd_domain *d, unsigned slot)
{
    struct rmd_process *p = &d->procs[slot];
    const struct rmd_state_process was = {.pid = p->pid, .start_ticks = p->start_ticks};
    int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (pidfd >= 0 && rmd_state_lives(&was) && !rmd_domain_watch(d, slot, pidfd))
        return true;
    if (pidfd >= 0)
        close(pidfd);
    p->pidfd.fd = -1;
    return false;
}

/* A process that takes or returns a token changes two numbers, one after the other.  Several equal
 * readings mean that no process is between the two. */
static void recount_tokens(struct rmd_domain *d)
{
    const struct timespec pause = {.tv_nsec = 200000};
    int found = rmd_domain_surplus(d);
    for (int looks = 0, alike = 0; looks < 100 && alike < 5; looks++) {
        nanosleep(&pause, NULL);
        int now = rmd_domain_surplus(d);
        alike = now == found ? alike + 1 : 0;
        found = now;
        if (alike == 5 && found)
            atomic_fetch_sub(&d->table->free_tokens, found);
    }
}

/* The former rmd may have lent tokens of processes that slept (watch/blocked.c).  Ends these loans;
 * this rmd looks at the processes itself. */
static void end_loans_of_the_running(struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && !d->procs[s].stopped)
            rmd_domain_end_token_loan(d, s);
}

static void remove_dead(struct rmd_domain *d)
{
    bool found[INV_MAX_SLOTS] = {false};
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        found[s] = d->procs[s].used && find_process(d, s);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && !found[s])
            rmd_domain_remove_member(d, s, false);
}

int rmd_domain_take_over(struct rmd_domain *d, int table_fd, int state_fd)
{
    struct rmd_state *state = rmd_state_map(state_fd);
    struct inv_table *table =
        state && !table_fits(d, state) ? inv_table_map_unread(table_fd) : NULL;
    if (!table || !rmd_state_living(state)) {
        int saved = errno, result = table ? 0 : -1;
        inv_table_unmap(table);
        rmd_state_unmap(state);
        errno = saved;
        return result;
    }
    restore_head(table, state, &d->topology);
    int fd = fcntl(table_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || rmd_domain_use_table(d, table, fd)) {
        int saved = errno;
        if (fd < 0)
            inv_table_unmap(table);
        rmd_state_unmap(state);
        errno = saved;
        return -1;
    }
    d->state = state;
    d->state_fd = state_fd;
    close(table_fd);
    restore_domain(d, state);
    rmd_domain_repair(d);
    remove_dead(d);
    recount_tokens(d);
    end_loans_of_the_running(d);
    rmd_suspension_taken_over(d);
    inv_rescue(d->table);
    rmd_blocked_reconsider(d);
    d->changed = true;
    rmd_state_save(d);
    return (int)d->live;
}
