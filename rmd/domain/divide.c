/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * divide.c - which member owns which core.  The policy decides how many each has, placement which
 * ones.  While fewer processes have joined than are expected, the shares of the others have no
 * owner.  Else the first process would get all cores, and lose most of them again.
 *
 * rmd writes owners only.  The processes decide among themselves which holds a core.
 *
 * Values that are read from the table may be wrong.  So rmd has its own copy of the owners, and
 * checks constraints before use.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/config/core_list.h"
#include "rmd/journal/events.h"
#include "libinvasive/base/futex.h"
#include "rmd/domain/order.h"
#include "rmd/policy/limit.h"
#include "libinvasive/base/now.h"
#include "rmd/placement/partition.h"
#include "rmd/placement/placement.h"
#include "libinvasive/table/scalability.h"
#include "rmd/domain/state.h"

#include <limits.h>
#include <string.h>

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
static void read_iteration_time(struct rmd_process *p, struct inv_slot *s)
{
    double seconds;
    uint64_t bits = atomic_load_explicit(&s->iteration_bits, memory_order_relaxed);
    memcpy(&seconds, &bits, sizeof seconds);
    if (seconds == p->iteration_s)
        return;
    p->iteration_s = seconds;
    p->iteration_cores = p->owned_units;
}

/* What a core of the process delivers, as rmd knows it: the mean over the cores for which it
 * does. */
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

/* A measured workload is in core time of the process's cores.  In time of whole cores it is that
 * times the part that they deliver.  A workload in units of the program is the same on any core. */
static void add_delivered(struct rmd_need *need, struct inv_slot *s, double told)
{
    double seen;
    uint64_t bits = atomic_load_explicit(&s->delivered_bits, memory_order_relaxed);
    memcpy(&seen, &bits, sizeof seen);
    need->delivered = told;
    if (!(seen >= 0.1 && seen <= 1))
        return;
    if (atomic_load_explicit(&s->workload_measured, memory_order_relaxed))
        need->workload *= seen;
    if (!(told > 0) || seen < told)
        need->delivered = seen;
}

/* The constraint of a process, in units. */
static struct rmd_need need_of(struct rmd_domain *d, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(d->table, slot);
    read_iteration_time(&d->procs[slot], s);
    struct rmd_need need = {
        .min_cores = load_bounded(&s->min_cores, d->topology.ncores),
        .max_cores = load_bounded(&s->max_cores, d->topology.ncores),
        .owned = d->procs[slot].owned_units,
        .priority = d->procs[slot].priority,
        .iteration_s = d->procs[slot].iteration_s,
        .iteration_cores = d->procs[slot].iteration_cores,
    };
    uint64_t bits = atomic_load_explicit(&s->workload_bits, memory_order_relaxed);
    memcpy(&need.workload, &bits, sizeof bits);
    add_delivered(&need, s, delivered_to(d, slot));
    inv_scalability_read(s, &need.scalability); /* unknown when it is nonsense */
    unsigned paid = d->procs[slot].paid_cores;
    rmd_order_apply(&(struct rmd_order){.most = paid}, &need);
    rmd_order_apply(&d->procs[slot].order, &need);
    rmd_units_need(&d->units, &need);
    return need;
}

/* Near which core a rank begins when it owns none: neighbouring ranks of this node on neighbouring
 * cores, in whatever order they join. */
static int preferred_core_of(struct rmd_domain *d, unsigned slot)
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
        if (d->procs[s].used && !d->procs[s].suspended && !(pins_hold && rmd_is_pinned(d, s))) {
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
    placed[elsewhere] = (struct rmd_placed){.target = away, .main_core = -1, .preferred = -1};
    for (unsigned i = 0; i < m->count; i++) {
        struct inv_slot *s = inv_slot_at(d->table, m->slot[i]);
        placed[i] = (struct rmd_placed){
            .target = target[i],
            .main_core = atomic_load_explicit(&s->home, memory_order_relaxed), /* a hint */
            .preferred = preferred_core_of(d, m->slot[i]),
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

/* A job's number is the index of its first process.  Expected processes are of the newest job. */
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
    unsigned units = d->rules.max_job_cores * d->units.count / d->units.ncores;
    return d->rules.max_job_cores && !units ? 1 : units;
}

void rmd_domain_add_event(const struct rmd_domain *d, const struct rmd_process *p,
                          enum inv_event_kind kind, unsigned before, unsigned after,
                          const char *text)
{
    rmd_event(&d->shared->events,
              (struct inv_event){.kind = kind,
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
        p->reported_mark = mark[s];
        if (d->paced)
            continue;
        uint64_t set[INV_CORE_WORDS] = {0};
        char cores[sizeof((struct inv_event *)0)->text];
        for (unsigned c = 0; c < d->topology.ncores; c++)
            if (d->owner[c] == (int)s)
                inv_set_add(set, c);
        rmd_list_cores(set, cores, sizeof cores);
        rmd_domain_add_event(d, p, INV_EVENT_OWNER, p->reported_owned, p->owned, cores);
        p->reported_owned = p->owned;
    }
}

/* Decides the targets of the processes that are not pinned. */
static void decide_targets(struct rmd_domain *d, struct rmd_snapshot *s, const uint64_t *launch,
                           unsigned *target)
{
    if (s->ncores && s->nprocs)
        rmd_prioritized(d->rules.policy, s, launch, max_launch_units(d), target);
    else
        memset(target, 0, s->nprocs * sizeof *target);
}

/* The sum of the targets of `count` processes. */
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
        if (!d->procs[s].used || d->procs[s].suspended)
            continue;
        int now = d->procs[s].assigned;
        load[n] = need_of(d, s).workload;
        core[n] = now >= 0 ? nth[now] : RMD_NO_PART;
        slot[n++] = s;
    }
    inv_assert(granted == d->granted && n <= d->live);
    rmd_partition(load, n, granted, core, order);
    for (unsigned i = 0; i < n; i++) {
        inv_assert(core[i] < (int)granted);
        int to = core[i] < 0 ? INV_NO_CORE : at[core[i]];
        d->procs[slot[i]].assigned = to;
        /* relaxed: the process reads one word, now or later */
        atomic_store_explicit(&inv_slot_at(d->table, slot[i])->assigned, to, memory_order_relaxed);
    }
}

static unsigned newest_priority(const struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && d->procs[s].launch == d->newest_launch)
            return d->procs[s].priority;
    return RMD_PRIORITY;
}

/* How many processes of the newest launch have not joined yet, and will own cores. */
static unsigned count_to_come(const struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used && d->procs[s].suspended && d->procs[s].launch == d->newest_launch)
            return 0;
    return d->expected > d->joined ? d->expected - d->joined : 0;
}

static bool is_worthwhile(const struct rmd_domain *d, const struct rmd_snapshot *s,
                          const unsigned *target)
{
    return (rmd_priorities_differ(s) && rmd_priorities_move(s, target)) ||
           (s->nprocs && rmd_policy_worthwhile(d->rules.policy, s, target));
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
    unsigned to_come = count_to_come(d);
    for (unsigned i = 0; i < to_come; i++) {
        needs[m.count + i] = (struct rmd_need){.priority = newest_priority(d)};
        launch[m.count + i] = d->newest_launch;
    }
    inv_assert(m.count + to_come <= sizeof needs / sizeof *needs);
    number_jobs(d, &m, to_come, needs);
    struct rmd_snapshot s = {d->units_granted - m.pinned_units, m.count + to_come, needs, arena,
                             d->rules.tuning, false};
    decide_targets(d, &s, launch, target);
    inv_assert(sum_of_targets(target, s.nprocs) <= s.ncores);
    s.decided = s.ncores && m.count && !to_come && !max_launch_units(d) && !rmd_priorities_differ(&s);
    s.nprocs = m.count;
    if (must || is_worthwhile(d, &s, target)) {
        move_cores(d, &m, target);
        rmd_rest_unowned(d);
    }
    rmd_domain_settle(d);
    add_owner_events(d);
    d->decisions++;
    d->decision_ns += inv_now_ns() - begin;
}

void rmd_domain_set_order(struct rmd_domain *d, unsigned slot, const struct rmd_order *order)
{
    inv_assert(d->procs[slot].used);
    d->procs[slot].order = *order;
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, true);
    rmd_state_save(d);
}

void rmd_domain_set_paid(struct rmd_domain *d, unsigned slot, unsigned cores)
{
    inv_assert(d->procs[slot].used);
    if (d->procs[slot].paid_cores == cores)
        return;
    d->procs[slot].paid_cores = cores;
    rmd_domain_mend_head(d);
    rmd_domain_redistribute(d, true);
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

void rmd_domain_set_rules(struct rmd_domain *d, const struct rmd_domain_rules *rules)
{
    d->rules = *rules;
}

void rmd_domain_set_policy(struct rmd_domain *d, const struct rmd_policy *policy)
{
    if (d->rules.policy == policy)
        return;
    d->rules.policy = policy;
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

void rmd_domain_set_speeds(struct rmd_domain *d, const unsigned short *speed)
{
    memcpy(d->topology.speed, speed, sizeof d->topology.speed);
    for (unsigned c = 0; d->table && c < d->topology.ncores; c++) /* relaxed: each is a hint alone */
        atomic_store_explicit(&inv_core_at(d->table, c)->speed, speed[c], memory_order_relaxed);
    rmd_domain_reconsider(d);
}

void rmd_domain_answer_constraints(struct rmd_domain *d)
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
