/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * member.c - the members of a domain: processes join, each in a slot of the table and as a part of
 * a job, and leave or die.  divide.c divides the cores among them.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/domain/order.h"
#include "rmd/policy/limit.h"
#include "rmd/domain/replaced.h"
#include "rmd/journal/report.h"
#include "libinvasive/table/scalability.h"
#include "rmd/domain/state.h"
#include "rmd/loop/text.h"
#include "rmd/domain/trace.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* CPU time that the process has told at its end, where it keeps a record. */
static uint64_t told_cpu_ns(const struct rmd_domain *d, unsigned slot)
{
    return atomic_load_explicit(&inv_record_at(d->table, slot)->cpu_ns, memory_order_relaxed);
}

void rmd_domain_remove_member(struct rmd_domain *d, unsigned slot, bool left)
{
    struct rmd_process *p = &d->procs[slot];
    struct inv_slot *s = inv_slot_at(d->table, slot);
    unsigned freed = 0;
    inv_assert(slot < INV_MAX_SLOTS && p->used && p->domain == d);
    inv_assert(d->live > 0 && d->stopped >= p->stopped);
    rmd_blocked_forget(d, slot);
    rmd_domain_mend_head(d);
    atomic_store(&s->state, INV_SLOT_DEAD);
    rmd_domain_add_event(d, p, left ? INV_EVENT_LEAVE : INV_EVENT_DEATH, p->owned, 0, s->program);
    *(left ? &d->leaves : &d->deaths) += 1;
    atomic_fetch_sub(&d->table->free_tokens, p->loan); /* inv_slot_reap returns all of its tokens */
    d->stopped -= p->stopped;
    inv_slot_reap(d->table, slot, &freed); /* at once: other processes wait for these cores */
    rmd_domain_settle(d);
    rmd_energy_leave(&d->shared->energy, &p->energy, told_cpu_ns(d, slot));
    struct rmd_report report = rmd_domain_report_of(d, slot, p->settled_ns);
    report.report.left = left;
    rmd_debug("process %d (%s) is gone; it held %u cores", (int)p->pid, report.report.program,
              freed);
    rmd_reports_add(&d->shared->reports, &d->dead, &report);
    rmd_trace_left(d, slot, left);
    rmd_record_clear(d->table, d->table_fd, slot);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] == (int)slot)
            d->owner[c] = RMD_NO_OWNER;
    if (d->calls.left)
        d->calls.left(d->calls.context, slot, left);
    rmd_domain_unwatch(d, slot);
    if (left)
        rmd_order_keep(d, p);
    memset(p, 0, sizeof *p);
    d->live--;
    inv_assert(d->stopped <= d->live);
    atomic_store(&s->state, INV_SLOT_FREE);
    rmd_blocked_reconsider(d);
}

void rmd_domain_reset(struct rmd_domain *d)
{
    inv_assert(!d->live && !d->stopped);
    d->joined = d->expected = 0;
    rmd_replaced_forget(d);
    if (d->table->mode == INV_MODE_PINNED)
        rmd_rest_unowned(d);
    d->tokens = d->table->mode == INV_MODE_ANONYMOUS ? d->granted : 0;
    atomic_store(&d->table->free_tokens, (int32_t)d->tokens);
    for (unsigned i = 0; i < INV_ARRIVAL_LINES / 64; i++)
        atomic_store(&d->table->arrival_lines_used[i], 0);
    rmd_state_save(d);
    if (d->calls.emptied)
        d->calls.emptied(d->calls.context);
}

static void remove_and_divide(struct rmd_domain *d, unsigned slot, bool left)
{
    rmd_domain_remove_member(d, slot, left);
    if (!d->live) {
        rmd_domain_reset(d);
        return;
    }
    rmd_domain_redistribute(d, true);
    rmd_state_save(d);
}

/* The time that this takes is charged to the user (rate_limit.h). */
static void process_died(struct rmd_source *source, uint32_t events)
{
    (void)events;
    struct rmd_process *p = (void *)((char *)source - offsetof(struct rmd_process, pidfd));
    struct rmd_domain *d = p->domain;
    struct rmd_rate_limits *rates = &d->shared->rates;
    uid_t uid = d->uid;
    uint64_t begun = rmd_rate_limit_clock();
    remove_and_divide(d, (unsigned)(p - d->procs), false);
    rmd_rate_limit_charge(rates, uid, rmd_rate_limit_clock() - begun);
}

int rmd_domain_watch(struct rmd_domain *d, unsigned slot, int pidfd)
{
    d->procs[slot].pidfd = (struct rmd_source){.fd = pidfd, .ready = process_died};
    return rmd_watch(&d->procs[slot].pidfd, EPOLLIN);
}

void rmd_domain_unwatch(struct rmd_domain *d, unsigned slot)
{
    struct rmd_source *pidfd = &d->procs[slot].pidfd;
    if (pidfd->fd < 0)
        return;
    rmd_unwatch(pidfd);
    close(pidfd->fd);
    pidfd->fd = -1;
}

int rmd_domain_slot(struct rmd_domain *d, pid_t pid)
{
    for (int s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && d->procs[s].pid == pid)
            return s;
    return -1;
}

bool rmd_domain_says_first(struct rmd_domain *d, uint64_t launch)
{
    return rmd_dedup_first(&d->messages, launch);
}

void rmd_domain_leave(struct rmd_domain *d, pid_t pid)
{
    int slot = rmd_domain_slot(d, pid);
    if (slot >= 0)
        remove_and_divide(d, (unsigned)slot, true);
}

/* Sets the slot up for a new process; nothing of its former process is left. */
static void init_slot(struct inv_slot *s, const struct rmd_process *p,
                      const struct inv_request *request)
{
    s->pid = p->pid;
    s->start_ns = p->start_ns;
    s->rank = request->rank;
    s->size = request->size;
    rmd_copy_name(s->program, request->program);
    atomic_store(&s->parked, 0);
    atomic_store(&s->bell, 0);
    atomic_store(&s->sleepers, 0);
    atomic_store(&s->home, INV_NO_CORE);
    atomic_store(&s->tokens, 0);
    atomic_store(&s->assigned, INV_NO_CORE);
    atomic_store(&s->constraint_seq, 0);
    atomic_store(&s->decided_seq, 0);
    atomic_store(&s->min_cores, 0);
    atomic_store(&s->max_cores, 0);
    atomic_store(&s->workload_bits, 0);
    atomic_store(&s->workload_measured, 0);
    atomic_store(&s->iteration_bits, 0);
    atomic_store(&s->rate_bits, 0);
    atomic_store(&s->delivered_bits, 0);
    atomic_store(&s->short_waits, 0);
    atomic_store(&s->tuned, 0);
    atomic_store(&s->suspended, 0);
    atomic_store(&s->waits_on_signal, 0);
    rmd_domain_show_owned(s, p);
    inv_scalability_write(s, &(struct inv_scalability){0});
    memset((void *)&s->counters, 0, sizeof s->counters);
    for (unsigned a = 0; a < INV_PARKED_MAX; a++) {
        atomic_store(&s->parked_workers[a].tid, 0);
        atomic_store(&s->parked_workers[a].core, INV_NO_CORE);
    }
    /* release: partner is each reader that reads LIVE before the other fields of the slot */
    atomic_store_explicit(&s->state, INV_SLOT_LIVE, memory_order_release);
}

static int add_process(struct rmd_domain *d, pid_t pid, int pidfd)
{
    unsigned slot = 0;
    while (slot < INV_MAX_SLOTS && d->procs[slot].used)
        slot++;
    if (slot == INV_MAX_SLOTS) {
        errno = ENOSPC;
        return -1;
    }
    struct rmd_process *p = &d->procs[slot];
    *p = (struct rmd_process){.domain = d, .assigned = INV_NO_CORE};
    if (rmd_domain_watch(d, slot, pidfd))
        return -1;
    struct rmd_procstat stat = {0};
    rmd_procstat(pid, &stat); /* a pid that is another's by now: it is dead, as its pidfd tells */
    p->start_ticks = stat.start_ticks;
    p->used = true;
    p->pid = pid;
    p->start_ns = p->settled_ns = inv_now_ns();
    rmd_order_recall(d, p);
    rmd_energy_join(&d->shared->energy, &p->energy, pid);
    d->live++;
    inv_assert(d->live <= INV_MAX_SLOTS);
    return (int)slot;
}

/* Has the job a member of this MPI rank? */
static bool has_rank(const struct rmd_domain *d, uint64_t job, int rank)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && d->procs[s].job == job && d->procs[s].rank == rank)
            return true;
    return false;
}

/* Is there room in the other one's MPI job?  Its processes have one launcher, the same size, and
 * different ranks. */
static bool may_belong_to(const struct rmd_domain *d, const struct rmd_process *p,
                          const struct rmd_process *other)
{
    return other->size == p->size && other->mark == p->mark &&
           !has_rank(d, other->job, p->rank);
}

/* A process that is no MPI rank is a job of its own. */
static void assign_job(struct rmd_domain *d, unsigned slot, const struct inv_request *request)
{
    struct rmd_process *p = &d->procs[slot];
    p->job = 0;
    p->rank = request->rank;
    p->size = request->size;
    p->mark = request->launch;
    for (unsigned s = 0; s < INV_MAX_SLOTS && p->size > 1 && !p->job; s++)
        if (d->procs[s].used && s != slot && may_belong_to(d, p, &d->procs[s]))
            p->job = d->procs[s].job;
    if (!p->job)
        p->job = ++d->jobs;
    d->newest_job = p->job;
}

/* How many processes will come, as far as this one or the launcher knows. */
static unsigned expected_processes(const struct rmd_domain *d, const struct inv_request *request)
{
    unsigned n = request->local_size > 0 ? (unsigned)request->local_size : 1;
    if (n < d->procs_hint)
        n = d->procs_hint;
    return n < INV_MAX_SLOTS ? n : INV_MAX_SLOTS;
}

/* If nothing is known of this node's ranks, all ranks may be here; if not, preferred_core_of sees
 * it. */
static void set_local_rank(struct rmd_process *p, const struct inv_request *request)
{
    bool known = request->local_rank >= 0;
    p->local_rank = known ? request->local_rank : request->rank;
    p->local_size = known ? request->local_size : request->size;
}

/* Marks are odd and these numbers of sessions even: no session is a launch by accident. */
static void set_launch(struct rmd_domain *d, struct rmd_process *p)
{
    pid_t session = p->mark ? 0 : getsid(p->pid);
    p->launch = p->mark ? p->mark : session > 0 ? (uint64_t)session << 1 : 0;
    d->newest_launch = p->launch;
}

/* The priority is that of the other processes of the launch; without any, the one in the
 * request. */
static void set_priority(struct rmd_domain *d, unsigned slot, const struct inv_request *request)
{
    struct rmd_process *p = &d->procs[slot];
    bool said = request->priority && request->priority <= RMD_PRIORITY_MOST + 1;
    p->priority = said ? request->priority - 1 : RMD_PRIORITY;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (s != slot && p->launch && d->procs[s].used && d->procs[s].launch == p->launch)
            p->priority = d->procs[s].priority;
}

unsigned rmd_domain_prioritize(struct rmd_domain *d, unsigned slot, unsigned priority)
{
    unsigned count = 0;
    uint64_t launch = d->procs[slot].launch;
    inv_assert(d->procs[slot].used && priority <= RMD_PRIORITY_MOST);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && (s == slot || (launch && d->procs[s].launch == launch))) {
            d->procs[s].priority = priority;
            count++;
        }
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, true);
    rmd_state_save(d);
    return count;
}

int rmd_domain_join(struct rmd_domain *d, pid_t pid, int pidfd, const struct inv_request *request)
{
    unsigned expected = expected_processes(d, request);
    char program[INV_NAME_BYTES]; /* a copy: the process can overwrite the name in its slot */
    rmd_copy_name(program, request->program);
    int old = rmd_domain_slot(d, pid); /* it has called exec: another program, the same process */
    if (old >= 0) {
        rmd_domain_remove_member(d, (unsigned)old, true);
        d->joined--;
        if (!d->live)
            rmd_domain_reset(d);
    }
    int slot = rmd_domain_fit_table(d, expected) ? -1 : add_process(d, pid, pidfd);
    if (slot < 0) {
        int saved = errno;
        close(pidfd);
        errno = saved;
        return -1;
    }
    inv_assert(slot < INV_MAX_SLOTS && d->procs[slot].used && d->procs[slot].pid == pid);
    rmd_domain_mend_head(d);
    d->joined += !rmd_replaced_is_back(d, (unsigned)slot);
    if (d->expected < expected)
        d->expected = expected;
    init_slot(inv_slot_at(d->table, (unsigned)slot), &d->procs[slot], request);
    set_local_rank(&d->procs[slot], request);
    assign_job(d, (unsigned)slot, request);
    rmd_trace_joined(d, (unsigned)slot);
    set_launch(d, &d->procs[slot]);
    set_priority(d, (unsigned)slot, request);
    d->joins++;
    rmd_domain_add_event(d, &d->procs[slot], INV_EVENT_JOIN, 0, 0, program);
    rmd_suspension_joined(d, (unsigned)slot);
    rmd_domain_redistribute(d, true);
    rmd_blocked_reconsider(d);
    rmd_state_save(d);
    rmd_debug("process %d (%s, rank %d) is in slot %d and owns %u cores", (int)pid, program,
              request->rank, slot, d->procs[slot].owned);
    return slot;
}
