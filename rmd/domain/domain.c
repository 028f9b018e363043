/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * domain.c - the core table and the owners of cores; members are in member.c.
 *
 * The table is made when the first process joins, since the number of processes is known only then.
 * More processes than cores: there are anonymous tokens.  Else cores have owners.  An empty domain
 * gets a new table when the next process needs the other mode.  While fewer processes have joined
 * than are expected, the shares of the others have no owner.  Else the first process would get all
 * cores, and lose most of them again.
 *
 * rmd writes owners only.  The processes decide among themselves which holds a core.
 *
 * Values that are read from the table may be wrong.  So rmd has its own copy of the owners, and
 * checks constraints before use.
 */
#define _GNU_SOURCE
#include "rmd/domain/domain.h"
#include "assertion.h"
#include "core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/config/core_list.h"
#include "rmd/journal/events.h"
#include "futex.h"
#include "rmd/policy/limit.h"
#include "rmd/loop/log.h"
#include "now.h"
#include "rmd/placement/partition.h"
#include "rmd/placement/placement.h"
#include "rmd/domain/replaced.h"
#include "rmd/journal/report.h"
#include "scalability.h"
#include "rmd/domain/state.h"
#include "rmd/domain/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* --- the table */

static int make_table(struct rmd_domain *d, enum inv_mode mode, struct inv_table **table)
{
    const struct inv_topology *topology = &d->topology;
    int fd = inv_table_create(topology->ncores, topology->emulated ? NULL : topology->os_cpu,
                              INV_MAX_SLOTS, mode, table);
    if (fd >= 0) {
        for (unsigned c = 0; c < topology->ncores; c++)
            inv_core_at(*table, c)->apart = topology->apart[c];
        (*table)->reclaim_bound_us = d->reclaim_bound_us;
        atomic_store(&(*table)->owner_moves, d->moves);
        atomic_store(&(*table)->rmd_pid, (uint32_t)getpid());
    }
    return fd;
}

static void drop_table(struct rmd_domain *d)
{
    if (!d->table)
        return;
    rmd_trace_table(d, -1);
    if (d->table_changed)
        d->table_changed(d, -1);
    rmd_unwatch(&d->bell.source);
    rmd_bell_stop(&d->bell);
    rmd_replaced_unwatch(d);
    inv_table_unmap(d->table);
    close(d->table_fd);
    d->table = NULL;
    rmd_state_drop(d);
}

void rmd_domain_mend_head(struct rmd_domain *d)
{
    size_t constant = offsetof(struct inv_table, wanting);
    if (!memcmp(d->table, d->header, constant))
        return;
    rmd_domain_log_repaired(d, "the head of the core table");
    memcpy(d->table, d->header, constant);
}

static bool handle_bell_at_once(struct rmd_bell *bell);
static void handle_bell(struct rmd_source *source, uint32_t events);

int rmd_domain_use_table(struct rmd_domain *d, struct inv_table *table, int fd)
{
    memcpy(d->header, table, offsetof(struct inv_table, wanting));
    d->bell.at_once = handle_bell_at_once;
    if (rmd_bell_start(&d->bell, table)) {
        int saved = errno;
        inv_table_unmap(table);
        close(fd);
        errno = saved;
        return -1;
    }
    d->table = table;
    d->table_fd = fd;
    rmd_trace_table(d, fd);
    d->bell.source.ready = handle_bell;
    rmd_replaced_watch(d);
    if (!rmd_watch(&d->bell.source, EPOLLIN))
        return 0;
    int saved = errno;
    drop_table(d);
    errno = saved;
    return -1;
}

static void create_state(struct rmd_domain *d)
{
    if (!d->saves_state)
        return;
    if (rmd_state_make(d)) {
        rmd_log(RMD_WARNING, "cannot note what a restart would need: %s", strerror(errno));
        return;
    }
    rmd_state_head(d);
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        rmd_state_save_grant(d, c);
    rmd_state_save(d);
}

static int open_table(struct rmd_domain *d, enum inv_mode mode)
{
    inv_assert(!d->live); /* no process is in the table of before */
    drop_table(d);
    struct inv_table *table;
    int fd = make_table(d, mode, &table);
    if (fd < 0 || rmd_domain_use_table(d, table, fd))
        return -1;
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        d->owner[c] = RMD_NO_OWNER;
    memset(d->resting, 0, sizeof d->resting);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] != RMD_GRANTED)
            inv_core_withdraw(table, c);
    d->tokens = d->granted;
    atomic_store(&table->free_tokens, (int32_t)d->granted);
    create_state(d);
    if (d->table_changed)
        d->table_changed(d, fd);
    return 0;
}

int rmd_domain_fit_table(struct rmd_domain *d, unsigned expected)
{
    unsigned units = d->due > d->units_granted ? d->due : d->units_granted;
    enum inv_mode mode = expected > units ? INV_MODE_ANONYMOUS : INV_MODE_PINNED;
    if (d->table && (d->live || d->table->mode == (uint32_t)mode))
        return 0;
    rmd_debug("%u process%s expected on %u cores: %s", expected, expected == 1 ? "" : "es", units,
              mode == INV_MODE_PINNED ? "pinned" : "anonymous tokens");
    return open_table(d, mode);
}

int rmd_domain_open(struct rmd_domain *d)
{
    d->table = NULL;
    d->table_fd = d->closed_files.fd = -1;
    rmd_units_of(&d->units, &d->topology, d->smt);
    d->header = calloc(1, sizeof *d->header);
    return d->header ? 0 : -1;
}

void rmd_domain_close(struct rmd_domain *d)
{
    rmd_trace_close(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            rmd_domain_unwatch(d, s); /* the loop would come back to what is freed */
    drop_table(d);
    free(d->header);
    rmd_reports_free(&d->dead);
}

/* --- ownership */

/* Shows the process its owned core time, for a remote report (remote_report.c).  Relaxed:
 * statistics; a process that reads meanwhile may count some time twice or not at all. */
void rmd_domain_show_owned(struct inv_slot *s, const struct rmd_process *p)
{
    atomic_store_explicit(&s->owned_ns, p->owned_ns, memory_order_relaxed);
    atomic_store_explicit(&s->settled_ns, p->settled_ns, memory_order_relaxed);
    atomic_store_explicit(&s->owned_cores, p->owned, memory_order_relaxed);
}

void rmd_domain_settle(struct rmd_domain *d)
{
    uint64_t now = inv_now_ns();
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_process *p = &d->procs[s];
        p->owned_ns += p->owned * (now - p->settled_ns);
        p->settled_ns = now;
        p->owned = p->owned_units = 0;
    }
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] >= 0) {
            inv_assert(d->procs[d->owner[c]].used && d->grant[c] == RMD_GRANTED);
            d->procs[d->owner[c]].owned++;
            d->procs[d->owner[c]].owned_units += rmd_units_first(&d->units, c);
        }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            rmd_domain_show_owned(inv_slot_at(d->table, s), &d->procs[s]);
}

/* inv_core_own asks the holder for the core if the new owner wants it.  If no process holds the
 * core, rmd offers it to the new owner. */
static void set_owner(struct rmd_domain *d, unsigned core, int slot)
{
    inv_assert(core < d->topology.ncores && d->grant[core] == RMD_GRANTED);
    inv_assert(slot == RMD_NO_OWNER || (slot >= 0 && slot < INV_MAX_SLOTS && d->procs[slot].used));
    inv_assert(d->owner[core] != slot);
    if (d->owner[core] >= 0 && slot >= 0)
        atomic_store(&d->table->owner_moves, ++d->moves);
    d->owner[core] = slot;
    rmd_wake_core(d, core);
    inv_core_own(d->table, core, slot);
    /* relaxed: a hint; a process that gives the core up later offers it to the new owner */
    inv_word w = atomic_load_explicit(&inv_core_at(d->table, core)->word, memory_order_relaxed);
    if (inv_word_holder(w) == INV_NOBODY)
        inv_core_offer(d->table, core, INV_MAX_SLOTS);
}

static unsigned load_bounded(_Atomic uint32_t *value, unsigned most)
{
    uint32_t v = atomic_load_explicit(value, memory_order_relaxed); /* ordered by the seq */
    return v > most ? most : v;
}

/* Iteration times belong to the cores that there were when they were measured. */
static void note_iteration(struct rmd_process *p, struct inv_slot *s)
{
    double seconds;
    uint64_t bits = atomic_load_explicit(&s->iteration_bits, memory_order_relaxed);
    memcpy(&seconds, &bits, sizeof seconds);
    if (seconds == p->iteration_s)
        return;
    p->iteration_s = seconds;
    p->iteration_cores = p->owned_units;
}

/* What a core of the process delivers: the mean of those of which it is known. */
static double delivered_to(const struct rmd_domain *d, unsigned slot)
{
    double sum = 0;
    unsigned known = 0;
    for (unsigned c = 0; d->delivered && c < d->topology.ncores; c++)
        if (d->owner[c] == (int)slot && d->delivered[c] > 0) {
            sum += d->delivered[c];
            known++;
        }
    return known ? sum / known : 0;
}

/* What a process asks for, in units. */
static struct rmd_need need_of(struct rmd_domain *d, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    note_iteration(&d->procs[slot], s);
    struct rmd_need need = {
        .min_cores = load_bounded(&s->min_cores, d->topology.ncores),
        .max_cores = load_bounded(&s->max_cores, d->topology.ncores),
        .owned = d->procs[slot].owned_units,
        .delivered = d->policy->looks_at_delivery ? delivered_to(d, slot) : 0,
        .iteration_s = d->procs[slot].iteration_s,
        .iteration_cores = d->procs[slot].iteration_cores,
    };
    uint64_t bits = atomic_load_explicit(&s->workload_bits, memory_order_relaxed);
    memcpy(&need.workload, &bits, sizeof bits);
    inv_scalability_read(s, &need.scalability); /* unknown when it is nonsense */
    rmd_order_apply(&d->procs[slot].order, &need);
    rmd_units_need(&d->units, &need);
    return need;
}

/* Where a rank begins when it owns nothing yet: neighbours in the order of this node's ranks,
 * however the order of joining. */
static int wish_of(struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    if (p->local_rank < 0 || p->local_rank >= p->local_size ||
        d->expected != (unsigned)p->local_size)
        return -1;
    unsigned n = d->granted, share = n / d->expected, rest = n % d->expected;
    unsigned rank = (unsigned)p->local_rank;
    unsigned nth = rank * share + (rank < rest ? rank : rest);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] == RMD_GRANTED && nth-- == 0)
            return (int)c;
    return -1;
}

/* The processes among which policy and placement divide: index -> slot.  Pinned ones are not among
 * them. */
struct members {
    unsigned count, pinned_units;
    unsigned slot[INV_MAX_SLOTS];
    int index[INV_MAX_SLOTS]; /* slot -> index, or RMD_NO_OWNER */
};

static struct members members_of(struct rmd_domain *d)
{
    bool pins_hold = rmd_pins_hold(d);
    struct members m = {.pinned_units = pins_hold ? rmd_pinned_units(d) : 0};
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        m.index[s] = RMD_NO_OWNER;
        if (d->procs[s].used && !(pins_hold && rmd_is_pinned(d, s))) {
            m.index[s] = (int)m.count;
            m.slot[m.count++] = s;
        }
    }
    inv_assert(m.count <= d->live && m.pinned_units <= d->units_granted);
    return m;
}

/* The index of the member that holds the core now, or RMD_NO_OWNER. */
static int holder_of(struct rmd_domain *d, const struct members *m, unsigned core)
{
    /* relaxed: a hint */
    inv_word w = atomic_load_explicit(&inv_core_at(d->table, core)->word, memory_order_relaxed);
    long slot = (long)inv_word_holder(w) - 1;
    return inv_slot_valid(d->table, slot) && d->procs[slot].used ? m->index[slot] : RMD_NO_OWNER;
}

static void move_cores(struct rmd_domain *d, const struct members *m, const unsigned *target)
{
    unsigned ncores = d->topology.ncores;
    struct rmd_placed placed[INV_MAX_SLOTS + 1];
    int owner[INV_MAX_CORES], holders[INV_MAX_CORES];
    /* Cores that are not granted, or are pinned, belong to one more process, whose number of cores
     * does not change. */
    int elsewhere = (int)m->count, pinned[INV_MAX_CORES];
    inv_assert(d->units_granted <= d->units.count);
    unsigned away = d->units.count - d->units_granted + m->pinned_units;
    for (unsigned c = 0; c < ncores; c++) {
        pinned[c] = m->pinned_units ? rmd_pinned_to(d, c) : -1;
        bool granted = d->grant[c] == RMD_GRANTED && pinned[c] < 0;
        owner[c] = !granted             ? elsewhere
                   : d->owner[c] < 0 ? RMD_NO_OWNER
                                     : m->index[d->owner[c]];
        holders[c] = granted ? holder_of(d, m, c) : RMD_NO_OWNER;
    }
    placed[elsewhere] = (struct rmd_placed){.target = away, .keep = -1, .wish = -1};
    for (unsigned i = 0; i < m->count; i++) {
        struct inv_slot *s = inv_slot_at(d->table, m->slot[i]);
        placed[i] = (struct rmd_placed){
            .target = target[i],
            .keep = atomic_load_explicit(&s->home, memory_order_relaxed), /* a hint */
            .wish = wish_of(d, m->slot[i]),
        };
    }
    rmd_units_place(&d->units, owner, holders, placed, m->count + (away > 0));
    for (unsigned c = 0; c < ncores; c++) {
        if (d->grant[c] != RMD_GRANTED)
            continue;
        int slot = pinned[c] >= 0                           ? pinned[c]
                   : owner[c] < 0 || owner[c] == elsewhere ? RMD_NO_OWNER
                                                            : (int)m->slot[owner[c]];
        if (slot != d->owner[c])
            set_owner(d, c, slot);
    }
    rmd_state_save(d);
}

/* A job's number is the index of its first process; those to come are of the newest job. */
static void number_jobs(const struct rmd_domain *d, const struct members *m, unsigned to_come,
                        struct rmd_need *needs)
{
    unsigned newest = m->count;
    for (unsigned i = 0; i < m->count; i++) {
        unsigned first = 0;
        while (d->procs[m->slot[first]].job != d->procs[m->slot[i]].job)
            first++;
        inv_assert(first <= i);
        needs[i].job = first;
        if (d->procs[m->slot[i]].job == d->newest_job)
            newest = first;
    }
    for (unsigned i = m->count; i < m->count + to_come; i++)
        needs[i].job = newest;
}

/* The limit that launches have, as the policy counts; 0: none.  Never less than one unit. */
static unsigned max_launch_units(const struct rmd_domain *d)
{
    unsigned units = d->max_job_cores * d->units.count / d->units.ncores;
    return d->max_job_cores && !units ? 1 : units;
}

void rmd_domain_add_event(const struct rmd_domain *d, const struct rmd_process *p,
                          enum inv_event_kind kind, unsigned before, unsigned after,
                          const char *text)
{
    rmd_event((struct inv_event){.kind = kind,
                                 .uid = d->uid,
                                 .pid = p->pid,
                                 .rank = p->rank,
                                 .before = before,
                                 .after = after},
              text);
}

/* An event for each process whose owned cores have changed since the last call. */
static void add_owner_events(struct rmd_domain *d)
{
    uint64_t mark[INV_MAX_SLOTS] = {0};
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] >= 0)
            mark[d->owner[c]] += (c + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ c << 7;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct rmd_process *p = &d->procs[s];
        if (!p->used || p->reported_mark == mark[s])
            continue;
        uint64_t set[INV_CORE_WORDS] = {0};
        char cores[sizeof((struct inv_event *)0)->text];
        for (unsigned c = 0; c < d->topology.ncores; c++)
            if (d->owner[c] == (int)s)
                inv_set_add(set, c);
        rmd_list_cores(set, cores, sizeof cores);
        rmd_domain_add_event(d, p, INV_EVENT_OWNER, p->reported_owned, p->owned, cores);
        p->reported_mark = mark[s];
        p->reported_owned = p->owned;
    }
}

/* What the policy divides among: not what is pinned. */
static void decide_targets(struct rmd_domain *d, struct rmd_snapshot *s, const uint64_t *launch,
                           unsigned *target)
{
    if (s->ncores && s->nprocs)
        rmd_limited(d->policy, s, launch, max_launch_units(d), target);
    else
        memset(target, 0, s->nprocs * sizeof *target);
}

/* Of so many processes. */
static unsigned long __attribute__((unused)) sum_of_targets(const unsigned *target, unsigned count)
{
    unsigned long sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += target[i];
    return sum;
}

/* More processes than cores: the core of each process's main thread. */
static void assign_cores(struct rmd_domain *d)
{
    unsigned slot[INV_MAX_SLOTS], order[INV_MAX_SLOTS], n = 0, granted = 0;
    int at[INV_MAX_CORES], nth[INV_MAX_CORES], core[INV_MAX_SLOTS];
    double load[INV_MAX_SLOTS];
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        nth[c] = d->grant[c] == RMD_GRANTED ? (int)granted : RMD_NO_PART;
        if (d->grant[c] == RMD_GRANTED)
            at[granted++] = (int)c;
    }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        if (!d->procs[s].used)
            continue;
        int now = d->procs[s].assigned;
        load[n] = need_of(d, s).workload;
        core[n] = now >= 0 ? nth[now] : RMD_NO_PART;
        slot[n++] = s;
    }
    inv_assert(granted == d->granted && n == d->live);
    rmd_partition(load, n, granted, core, order);
    for (unsigned i = 0; i < n; i++) {
        inv_assert(core[i] < (int)granted);
        int to = core[i] < 0 ? INV_NO_CORE : at[core[i]];
        d->procs[slot[i]].assigned = to;
        /* relaxed: the process reads one word, now or later */
        atomic_store_explicit(&inv_slot_at(d->table, slot[i])->assigned, to, memory_order_relaxed);
    }
}

void rmd_domain_redistribute(struct rmd_domain *d, bool must)
{
    if (!d->granted)
        return;
    if (d->table->mode != INV_MODE_PINNED) {
        assign_cores(d);
        return;
    }
    /* shared by all domains: the caller holds the loop's turn */
    static char arena[RMD_ARENA_BYTES(2 * INV_MAX_SLOTS)] __attribute__((aligned(16)));
    struct rmd_need needs[2 * INV_MAX_SLOTS];
    unsigned target[2 * INV_MAX_SLOTS];
    uint64_t launch[2 * INV_MAX_SLOTS], begin = inv_now_ns();
    rmd_domain_settle(d);
    struct members m = members_of(d);
    for (unsigned i = 0; i < m.count; i++) {
        needs[i] = need_of(d, m.slot[i]);
        launch[i] = d->procs[m.slot[i]].launch;
    }
    unsigned to_come = d->expected > d->joined ? d->expected - d->joined : 0;
    for (unsigned i = 0; i < to_come; i++) {
        needs[m.count + i] = (struct rmd_need){0};
        launch[m.count + i] = d->newest_launch;
    }
    inv_assert(m.count + to_come <= sizeof needs / sizeof *needs);
    number_jobs(d, &m, to_come, needs);
    struct rmd_snapshot s = {d->units_granted - m.pinned_units, m.count + to_come, needs, arena,
                             d->tuning, false};
    decide_targets(d, &s, launch, target);
    inv_assert(sum_of_targets(target, s.nprocs) <= s.ncores);
    s.decided = s.ncores && m.count && !to_come && !max_launch_units(d);
    s.nprocs = m.count;
    if (must || rmd_policy_worthwhile(d->policy, &s, target)) {
        move_cores(d, &m, target);
        rmd_rest_unowned(d);
    }
    rmd_domain_settle(d);
    add_owner_events(d);
    d->decisions++;
    d->decision_ns += inv_now_ns() - begin;
}

void rmd_domain_reorder(struct rmd_domain *d)
{
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, true);
    rmd_state_save(d);
}

unsigned rmd_domain_most(struct rmd_domain *d, unsigned slot)
{
    struct members m = members_of(d);
    unsigned units = d->units_granted - m.pinned_units, others = 0;
    for (unsigned i = 0; i < m.count; i++) {
        unsigned least = m.slot[i] == slot ? 0 : need_of(d, m.slot[i]).min_cores;
        others += m.slot[i] == slot ? 0 : least > 1 ? least : 1;
    }
    return others < units ? (units - others) * d->units.ncores / d->units.count : 0;
}

void rmd_domain_set_policy(struct rmd_domain *d, const struct rmd_policy *policy)
{
    if (d->policy == policy)
        return;
    d->policy = policy;
    if (!d->live)
        return;
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, true);
}

void rmd_domain_reconsider(struct rmd_domain *d)
{
    if (!d->live)
        return;
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, false);
}

/* Decide, if a constraint is new. */
static void answer_constraints(struct rmd_domain *d)
{
    uint32_t seen[INV_MAX_SLOTS];
    bool news = false;
    rmd_domain_mend_head(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct inv_slot *slot = inv_slot_at(d->table, s);
        if (!d->procs[s].used)
            continue;
        /* acquire: partner is the release increment after the constraint was written */
        seen[s] = atomic_load_explicit(&slot->constraint_seq, memory_order_acquire);
        news |= seen[s] != atomic_load(&slot->decided_seq);
    }
    if (!news)
        return;
    rmd_domain_redistribute(d, false);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        struct inv_slot *slot = inv_slot_at(d->table, s);
        if (!d->procs[s].used || atomic_load(&slot->decided_seq) == seen[s])
            continue;
        /* release: partner is the blocking invade that reads its new claim afterwards */
        atomic_store_explicit(&slot->decided_seq, seen[s], memory_order_release);
        inv_futex_wake(&slot->decided_seq, INT_MAX, true);
    }
}

static struct rmd_domain *domain_of(struct rmd_bell *bell)
{
    return (void *)((char *)bell - offsetof(struct rmd_domain, bell));
}

/* By the bell's thread: all but cores on their way to another domain, which may end a table. */
static bool handle_bell_at_once(struct rmd_bell *bell)
{
    struct rmd_domain *d = domain_of(bell);
    answer_constraints(d);
    return d->core_left && memchr(d->grant, RMD_REVOKING, d->topology.ncores);
}

static void handle_bell(struct rmd_source *source, uint32_t events)
{
    (void)events;
    struct rmd_domain *d = domain_of((struct rmd_bell *)source);
    rmd_bell_take(&d->bell);
    if (d->core_left)
        d->core_left(d);
    answer_constraints(d);
    rmd_bell_done(&d->bell);
}

/* --- cores that come and go: their words say so also where tokens are counted, since a process
 * that lets a child or a thread run anywhere looks there where that is */

static bool owns_cores(const struct rmd_domain *d)
{
    return d->table && d->table->mode == INV_MODE_PINNED;
}

void rmd_domain_admit(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_GRANTED)
        return;
    d->grant[core] = RMD_GRANTED;
    rmd_state_save_grant(d, core); /* before a process can have it */
    d->changed = true;
    d->granted++;
    d->units_granted += rmd_units_first(&d->units, core);
    inv_assert(d->granted <= d->topology.ncores && d->units_granted <= d->units.count);
    inv_assert(!d->table || d->owner[core] == RMD_NO_OWNER);
    if (d->table)
        inv_core_admit(d->table, core);
}

bool rmd_domain_withdraw(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_GRANTED) {
        d->grant[core] = RMD_REVOKING;
        d->changed = true;
        inv_assert(d->granted > 0 && d->units_granted >= rmd_units_first(&d->units, core));
        d->granted--;
        d->units_granted -= rmd_units_first(&d->units, core);
        d->owner[core] = RMD_NO_OWNER;
        d->resting[core] = false;
        if (d->table)
            inv_core_withdraw(d->table, core);
        rmd_state_save_grant(d, core); /* no process can take it now; before another user gets it */
    }
    return rmd_domain_has_left(d, core);
}

bool rmd_domain_has_left(struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] == RMD_REVOKING && (!owns_cores(d) || inv_core_left(d->table, core)))
        d->grant[core] = RMD_NOT_GRANTED;
    rmd_state_save_grant(d, core);
    return d->grant[core] == RMD_NOT_GRANTED;
}

void rmd_domain_expel(struct rmd_domain *d, unsigned core)
{
    if (d->table)
        inv_core_expel(d->table, core);
    d->grant[core] = RMD_NOT_GRANTED;
    rmd_state_save_grant(d, core);
}

/* Tokens are only counted: if there are fewer now, processes that have too many give them up. */
static void adjust_tokens(struct rmd_domain *d)
{
    atomic_fetch_add(&d->table->free_tokens, (int32_t)d->granted - (int32_t)d->tokens);
    bool more = d->granted > d->tokens;
    d->tokens = d->granted;
    rmd_state_save(d);
    if (more)
        inv_token_offer(d->table);
}

/* Offers granted cores without an owner to processes that want one, and have parked. */
static void offer_unowned_cores(struct rmd_domain *d)
{
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] == RMD_GRANTED && d->owner[c] == RMD_NO_OWNER)
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
}

void rmd_domain_share(struct rmd_domain *d)
{
    bool changed = d->changed;
    d->changed = false;
    if (!d->table || !changed)
        return;
    rmd_domain_mend_head(d);
    if (d->table->mode == INV_MODE_ANONYMOUS) {
        adjust_tokens(d);
        rmd_domain_redistribute(d, true);
    } else {
        rmd_domain_redistribute(d, true);
        offer_unowned_cores(d);
    }
}

void rmd_domain_reconfigured(struct rmd_domain *d)
{
    if (!d->table)
        return;
    rmd_domain_mend_head(d);
    /* a process that reads it meanwhile sees the old or the new value */
    __atomic_store_n(&d->table->reclaim_bound_us, d->reclaim_bound_us, __ATOMIC_RELAXED);
    d->header->reclaim_bound_us = d->reclaim_bound_us;
    rmd_state_head(d);
    rmd_domain_redistribute(d, true);
}

void rmd_domain_confined(struct rmd_domain *d)
{
    /* before the word of a newly granted core is written: its readers read this number */
    if (d->table)
        atomic_fetch_add(&d->table->confined_seq, 1);
}

void rmd_domain_drop_empty_table(struct rmd_domain *d)
{
    if (!d->live)
        drop_table(d);
}

/* --- what is not as rmd has left it */

void rmd_domain_log_repaired(struct rmd_domain *d, const char *what)
{
    uint64_t now = inv_now_ns();
    if (d->repaired_ns && now - d->repaired_ns < 1000000000u)
        return;
    d->repaired_ns = now;
    rmd_error("a process has overwritten %s; restoring it", what);
}

static unsigned repair_slot(struct rmd_domain *d, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    const struct rmd_process *p = &d->procs[slot];
    uint32_t state = p->used ? INV_SLOT_LIVE : INV_SLOT_FREE;
    if (atomic_load(&s->state) == state && (!p->used || s->pid == p->pid))
        return 0;
    if (p->used) {
        s->pid = p->pid;
        s->rank = p->rank;
        s->size = p->size;
        s->start_ns = p->start_ns;
    } else {
        inv_want_set(d->table, slot, false);
    }
    atomic_store(&s->state, state);
    return 1;
}

static unsigned repair_words(struct rmd_domain *d)
{
    uint64_t members[INV_SLOT_WORDS] = {0};
    unsigned wrong = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        members[s / 64] |= (uint64_t)d->procs[s].used << s % 64;
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        inv_assert(d->owner[c] < INV_MAX_SLOTS && (d->owner[c] < 0 || d->procs[d->owner[c]].used));
        bool reserved = d->grant[c] != RMD_GRANTED || d->resting[c];
        unsigned name = reserved ? INV_ELSEWHERE : (unsigned)(d->owner[c] + 1);
        if (!inv_core_repair(d->table, c, name, members))
            continue;
        wrong++;
        if (owns_cores(d))
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
    }
    return wrong;
}

unsigned rmd_domain_repair(struct rmd_domain *d)
{
    unsigned wrong = 0;
    rmd_domain_mend_head(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        wrong += repair_slot(d, s);
    return wrong + repair_words(d);
}

/* --- looking */

int rmd_domain_observe(struct rmd_domain *d)
{
    struct inv_table *empty = NULL;
    int fd = d->table ? d->table_fd : make_table(d, INV_MODE_PINNED, &empty);
    if (fd < 0)
        return -1;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int observer = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    if (!d->table) {
        inv_table_unmap(empty);
        close(fd);
    }
    errno = saved;
    return observer;
}

int rmd_domain_submit_report(struct rmd_domain *d, pid_t pid,
                             const struct inv_remote_report *remote, size_t bytes)
{
    struct rmd_report r;
    if (rmd_domain_slot(d, pid) < 0 || !rmd_report_from_remote(&r, remote, bytes, inv_now_ns()))
        return -1;
    rmd_debug("process %d brought the report of rank %d on %s", (int)pid, r.report.rank,
              r.report.host);
    rmd_reports_add(&d->dead, &r);
    return 0;
}

struct rmd_report rmd_domain_report_of(struct rmd_domain *d, unsigned slot, uint64_t end_ns)
{
    const struct rmd_process *p = &d->procs[slot];
    const struct inv_report known = {.pid = p->pid,
                                     .alive = end_ns == 0,
                                     .owned_cores = p->owned,
                                     .start_ns = p->start_ns,
                                     .end_ns = end_ns,
                                     .owned_ns = p->owned_ns};
    return rmd_report_of(d->table, slot, &known);
}

unsigned rmd_domain_begin_reports(struct rmd_domain *d, struct rmd_report_cursor *t)
{
    *t = (struct rmd_report_cursor){.next = d->dead.forgotten,
                                    .end = d->dead.forgotten + d->dead.count};
    t->living = d->live ? calloc(d->live, sizeof *t->living) : NULL;
    for (unsigned s = 0; s < INV_MAX_SLOTS && t->living; s++)
        if (d->procs[s].used)
            t->living[t->nliving++] = (struct rmd_living){d->procs[s].pid, d->procs[s].start_ns};
    inv_assert(t->nliving <= d->live);
    if (d->table)
        rmd_domain_settle(d);
    return d->dead.count + t->nliving;
}

/* The report of a process that lived at the time of the request.  It may have died since: then its
 * report is after `end`. */
static bool find_report(struct rmd_domain *d, const struct rmd_living *one, uint64_t end,
                        struct rmd_report *report)
{
    int slot = rmd_domain_slot(d, one->pid);
    if (slot >= 0 && d->procs[slot].start_ns == one->start_ns) {
        *report = rmd_domain_report_of(d, (unsigned)slot, 0);
        return true;
    }
    uint64_t first = d->dead.forgotten;
    for (uint64_t i = end > first ? end - first : 0; i < d->dead.count; i++) {
        const struct inv_report *r = &d->dead.items[i].report;
        if (r->pid != one->pid || r->start_ns != one->start_ns || r->node)
            continue;
        *report = rmd_report_copy(&d->dead.items[i]);
        return true;
    }
    return false;
}

bool rmd_domain_next_report(struct rmd_domain *d, struct rmd_report_cursor *t,
                            struct rmd_report *report)
{
    uint64_t first = d->dead.forgotten;
    if (t->next < first)
        t->next = first; /* the oldest reports have been dropped meanwhile */
    if (t->next < t->end && t->next - first < d->dead.count) {
        *report = rmd_report_copy(&d->dead.items[t->next - first]);
        return true;
    }
    t->next = t->end; /* else the domain is a new one of the user */
    for (; t->nth < t->nliving; t->nth++)
        if (find_report(d, &t->living[t->nth], t->end, report))
            return true;
    return false;
}

void rmd_report_cursor_advance(struct rmd_report_cursor *t)
{
    inv_assert(t->next < t->end || t->nth < t->nliving);
    if (t->next < t->end)
        t->next++;
    else
        t->nth++;
}

void rmd_report_cursor_free(struct rmd_report_cursor *t)
{
    free(t->living);
    *t = (struct rmd_report_cursor){0};
}
