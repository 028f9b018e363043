/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.c - the wait engine: look; spin for as long as that is better than to lend; then
 * give the core up and sleep on the doorbell.
 *
 * Spinning costs nobody anything while nobody wants the core, and the core's word says
 * whether somebody does; then it is worth spinning only where the call site's history
 * says that the wait will be shorter than a lend.  With more processes than cores the
 * others are runnable: we yield to them a few times before we sleep.  Every sleep has a
 * timer, so that MPI makes progress for partners that do not ring.
 */
#include "shim.h"
#include "futex.h"
#include "short_waits.h"

/* In microseconds.  WAKE: what it costs to give a core up and to have it back, by wake-ups alone; a wait that is likely
 * to be shorter is spun through.  LEND: the same with what is missing in caches then, for both sides, where
 * the rank waits little, so that there is little to lend.  SHORT: what a site with long waits
 * spins before it lends.  HOLD: the same as LEND where the rank holds its core in short waits
 * (short_waits.h).  PATIENT: spinning on a core that no process wants ends here.  MOVE: looking for
 * another core than the one that its owner asks for.  LASTS: a report asks for the CPU time of waits
 * that are longer than this.  PREEMPTED: a lend that takes so long has let a borrower run on the core in
 * the middle of it. */
enum {
    LEND_US = 200,
    SHORT_US = 1,
    HOLD_US = 1000,
    WAKE_US = 30,
    PATIENT_US = 5000,
    YIELD_US = 200,
    MOVE_US = 10
};
enum { LASTS_US = 5, PREEMPTED_US = 20 };
/* A yield that takes longer than this has let somebody else run; so long without: sleep. */
enum { OTHERS_US = 2, ALONE_US = 10 };
/* Slices of sleep: the first; the first with more processes than cores, where each look takes some
 * 20 microseconds of a rank that computes; the longest where somebody may need us who does not ring;
 * and, where all others ring, that part of the time that the wait has taken so far, up to a most.
 * After a ring: how long to look before the next sleep; what we were rung for may take a moment
 * to arrive. */
#ifndef SHIM_LONG_SLICE_NS /* a test makes them so long that a ring which is lost shows */
#define SHIM_LONG_SLICE_NS INT64_C(1000000)
#endif
static const int64_t FIRST_SLICE_NS = 100000, OVERSUBSCRIBED_SLICE_NS = 500000,
                     LONG_SLICE_NS = SHIM_LONG_SLICE_NS,
                     LONGEST_SLICE_NS = 100 * SHIM_LONG_SLICE_NS;
/* In a collective all that is left to come is on its way when we are rung. */
enum { SLICE_PART = 64, RUNG_US = 5, RUNG_TOGETHER_US = 50 };
/* More may come, so long after something has arrived; and so often others are rung for it. */
enum { ARRIVED_US = 50, RING_US = 100 };

struct shim_site shim_sites[SHIM_SITES];

uint64_t shim_us = 1000;
static uint64_t clock_ticks, clock_ns;

void shim_clock_start(void)
{
    clock_ticks = shim_ticks();
    clock_ns = inv_now_ns();
}

void shim_clock_measure(void)
{
    uint64_t ns = inv_now_ns() - clock_ns;
    uint64_t ticks = shim_ticks() - clock_ticks;
    if (ns > 1000000)
        shim_us = (uint64_t)((double)ticks * 1000.0 / (double)ns + 0.5);
    if (shim_us == 0)
        shim_us = 1;
}

/* Ticks since lately, and how many of them the rank has waited.  Written by any thread that has waited, relaxed: a hint. */
static _Atomic uint64_t lately, waited_lately, lately_end;

static void note_waited(uint64_t start, uint64_t end)
{
    enum { LATELY_US = 20000 };
    uint64_t since = end - atomic_exchange_explicit(&lately_end, end, memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&lately, memory_order_relaxed) + since;
    uint64_t waited = atomic_load_explicit(&waited_lately, memory_order_relaxed) + (end - start);
    for (; all > LATELY_US * shim_us; all /= 2)
        waited /= 2;
    atomic_store_explicit(&lately, all, memory_order_relaxed);
    atomic_store_explicit(&waited_lately, waited, memory_order_relaxed);
}

/* Less than a third of the time: a rank that waits more has something to lend. */
static bool waits_little(void)
{
    enum { PART = 3 };
    return PART * atomic_load_explicit(&waited_lately, memory_order_relaxed) <
           atomic_load_explicit(&lately, memory_order_relaxed);
}

/* All waits shorter than a part of a microsecond count as that long; so does what calls that were quick have left of
 * the mean. */
void shim_site_learn(struct shim_site *site, uint64_t start, uint64_t end)
{
    enum { LEAST_PART = 4 };
    uint32_t least = shim_log(shim_us / LEAST_PART), last = shim_log(end - start), mean = shim_site_log(site);
    bool first = atomic_load_explicit(&site->log, memory_order_relaxed) == 0;
    last = last > least ? last : least;
    mean = mean > least ? mean : least;
    atomic_store_explicit(&site->log, first ? last : mean - mean / 4 + last / 4, memory_order_relaxed);
    atomic_store_explicit(&site->quick, 0, memory_order_relaxed);
    note_waited(start, end);
}

/* As the first rank has decided; 0: not to hold. */
static uint64_t hold_until(void)
{
    const struct inv_slot *first = inv_slot_at(inv_process.table, shim_world.member[0].slot);
    uint32_t word = atomic_load_explicit(&first->short_waits, memory_order_relaxed);
    return word != 0 ? shim_short_waits_hold_until(word, inv_now_ns()) : 0;
}

void shim_short_waits_refresh(void)
{
    if (!inv_process.anonymous)
        atomic_store_explicit(&inv_process.holds_until_ns, hold_until(), memory_order_relaxed);
}

/* How long a site spins on a core that somebody wants: a lend's cost where the wait is
 * likely to be over by then, next to nothing where it is not; and longer where that has shown to be
 * better for the whole. */
static uint64_t patience_ticks(const struct shim_site *site)
{
    uint64_t expects = shim_site_expects(site);
    if (expects <= HOLD_US * shim_us && hold_until() != 0)
        return HOLD_US * shim_us;
    uint64_t lend_us = waits_little() ? LEND_US : WAKE_US;
    return (expects <= lend_us * shim_us ? lend_us : SHORT_US) * shim_us;
}

/* The owner of our core asks for it while we spin.  If there is another core for us, go there
 * rather than sleep.  Often that one is our own, and an idle worker holds it, which gives it up
 * when it sees that a thread waits. */
static bool move_to_other_core(void)
{
    uint64_t start = shim_ticks();
    int hold;
    atomic_fetch_add_explicit(&inv_process.waiting, 1, memory_order_relaxed);
    while ((hold = inv_hold_acquire()) == INV_HOLD_NONE && shim_ticks() - start < MOVE_US * shim_us)
        inv_cpu_relax();
    atomic_fetch_sub_explicit(&inv_process.waiting, 1, memory_order_relaxed);
    if (hold == INV_HOLD_NONE)
        return false;
    int old = inv_hold_detach();
    inv_hold_begin(hold); /* first: the thread woken on the old core is not to meet us */
    inv_hold_release(old);
    return true;
}

bool shim_spin_on(const struct shim_site *site, uint64_t start, uint64_t idle)
{
    uint64_t now = shim_ticks(), spun = now - idle;
    if (now - start > LASTS_US * shim_us)
        shim_site_stats_wait_lasts(start);
    enum inv_verdict verdict = inv_hold_poll();
    if (verdict == INV_GIVE)
        return move_to_other_core();
    return verdict != INV_LOST && spun <= PATIENT_US * shim_us &&
           (verdict != INV_WANTED || spun <= patience_ticks(site));
}

static bool spin_on_core(struct shim_wait *w, const struct shim_site *site, uint64_t start)
{
    do {
        for (int i = 0; i < 16; i++) {
            if (w->done(w))
                return true;
            inv_cpu_relax();
        }
    } while (shim_spin_on(site, start, start));
    return false;
}

/* Only where the core would be of use to another process: while more threads hold a core than there are, none
 * comes free by what this one gives up, and a sleep and its end cost more than yields. */
bool shim_lends_at_once(const struct shim_site *site)
{
    return inv_others_want(inv_process.table, inv_process.slot) &&
           (!inv_process.anonymous || !inv_token_overdrawn(inv_process.table)) &&
           shim_site_expects(site) > WAKE_US * shim_us;
}

/* As much for each of those that share a core where waits are short as a rule: they take the longer
 * the more ranks have to run in between, and a sleep takes longer than that. */
uint64_t shim_yield_ticks(const struct shim_site *site)
{
    uint64_t long_us = YIELD_US * shim_sharing();
    return shim_us * (shim_site_expects(site) < long_us * shim_us ? long_us : YIELD_US);
}

/* The kernel puts whoever is woken on a core that is idle, if there is one, else where others
 * compute: a core on which all that is done is to wait must be seen to be idle. */
bool shim_yield_alone(uint64_t *alone)
{
    uint64_t before = shim_ticks();
    sched_yield();
    uint64_t now = shim_ticks();
    if (now - before > OTHERS_US * shim_us)
        *alone = now;
    return now - *alone > ALONE_US * shim_us;
}

static bool spin_yielding(struct shim_wait *w, const struct shim_site *site, uint64_t start)
{
    uint64_t yielding = shim_yield_ticks(site), alone = start;
    shim_site_stats_wait_lasts(start);
    do {
        if (shim_lends_at_once(site))
            break;
        for (int i = 0; i < 4; i++)
            if (w->done(w))
                return true;
    } while (!shim_yield_alone(&alone) && shim_ticks() - start < yielding);
    return w->done(w);
}

/* Say where ringers look that we sleep.  The caller looks again before it sleeps. */
static void show_sleeping(struct shim_comm *c, bool sleeping)
{
    /* release: partner is the acquire load in ring.c and arrival.c */
    atomic_store_explicit(&shim_world.member[shim_world.me].sleep_flag->sleeping, sleeping,
                          memory_order_release);
    if (c && c->line)
        atomic_store_explicit(&c->line[c->rank].sleeping, sleeping, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static void count_sleeper(const struct shim_sleep *s, int by)
{
    if (s->counted)
        atomic_fetch_add_explicit(&s->comm->header->sleeping, (uint32_t)by, memory_order_seq_cst);
}

void shim_sleep_begin(struct shim_sleep *s, struct shim_comm *comm, bool counted, uint64_t start)
{
    *s = (struct shim_sleep){.comm = comm,
                             .counted = counted && comm && comm->header,
                             .start = start,
                             .slice = inv_process.anonymous ? OVERSUBSCRIBED_SLICE_NS
                                                         : FIRST_SLICE_NS};
    shim_site_stats_wait_sleeps(start);
    shim_workload_lends();
    inv_wait_begin();
    count_sleeper(s, 1);
    s->seen = inv_bell_read();
    show_sleeping(comm, true);
}

uint64_t shim_sharing(void)
{
    return ((uint64_t)shim_world.members + inv_process.ncores - 1) / inv_process.ncores;
}

/* A wait without rings is prolonged by at most LONG_SLICE_NS, or 1/64 of it. */
static int64_t longest_slice(const struct shim_sleep *s)
{
    int64_t part = (int64_t)(shim_ticks_to_ns(shim_ticks() - s->start) / SLICE_PART);
    if (shim_world.members < shim_world.size || part < LONG_SLICE_NS)
        return LONG_SLICE_NS;
    return part < LONGEST_SLICE_NS ? part : LONGEST_SLICE_NS;
}

static int64_t next_slice(const struct shim_sleep *s)
{
    int64_t longest = longest_slice(s);
    return s->slice * 2 < longest && !s->steep ? s->slice * 2 : longest;
}

/* How long to look before the next sleep: longer the more ranks have to run meanwhile.  But not
 * where all cores are computed on, or somebody has work for one: who looks there takes the time of
 * those whom it waits for.  relaxed: a hint. */
static uint64_t check_ticks(uint64_t us)
{
    struct inv_table *t = inv_process.table;
    if (inv_process.anonymous &&
        (atomic_load_explicit(&t->free_tokens, memory_order_relaxed) <= 0 ||
         inv_others_want(t, inv_process.slot)))
        return RUNG_US * shim_us;
    return us * shim_sharing() * shim_us;
}

static void keep_checking(struct shim_sleep *s, uint64_t now, uint64_t ticks)
{
    s->check_until = now + ticks;
    s->alone = now;
}

/* A ring makes the flag a new one, and the slice after a new flag is short: who posts has no
 * fence, and may have looked at the flag just before it was set (ring.c).  Awake for no reason,
 * from a ring for the wait before, or by a signal, the slice was none.  The bell is read once:
 * a ring between two readings would be forgotten. */
bool shim_sleep_slice(struct shim_sleep *s)
{
    uint64_t before = shim_ticks();
    inv_wait_sleep(s->seen, s->slice);
    uint64_t now = shim_ticks();
    uint32_t bell = inv_bell_read();
    bool rung = bell != s->seen;
    bool early = (int64_t)shim_ticks_to_ns(now - before) < s->slice / 2;
    s->slice = rung || early ? FIRST_SLICE_NS : next_slice(s);
    s->seen = bell;
    show_sleeping(s->comm, true);
    if (rung)
        keep_checking(s, now, check_ticks(s->counted ? RUNG_TOGETHER_US : RUNG_US));
    return rung;
}

void shim_sleep_end(struct shim_sleep *s)
{
    show_sleeping(s->comm, false);
    inv_wait_end();
    shim_workload_regained();
    shim_site_stats_wait_woke();
    count_sleeper(s, -1); /* last: ranks that wait for sleepers to be awake (arrival.c) see it */
}

bool shim_sleep_arrived(struct shim_sleep *s)
{
    uint64_t now = shim_ticks();
    keep_checking(s, now, check_ticks(ARRIVED_US));
    s->slice = FIRST_SLICE_NS;
    if (now - s->rang < RING_US * shim_us)
        return false;
    s->rang = now;
    return true;
}

/* With more processes than cores what we look for may come from one that has yet to run here.  Things
 * may arrive for ever that a test is not for: it ends all the same. */
static bool check_before_sleep(struct shim_wait *w, struct shim_sleep *s, uint64_t end)
{
    for (;;) {
        shim_listening.heard = false;
        if (w->done(w))
            return true;
        if (shim_listening.heard && shim_sleep_arrived(s))
            shim_ring_all_members();
        uint64_t now = shim_ticks();
        if (now >= s->check_until || now >= end)
            return false;
        if (!inv_process.anonymous)
            inv_cpu_relax();
        else if (shim_yield_alone(&s->alone))
            return false;
    }
}

/* Lend the core.  Its borrower may have preempted us on it before we said that we sleep: nobody
 * has rung us then for what came meanwhile, and one look may not be enough to complete it. */
static void begin_slices(struct shim_sleep *s, struct shim_wait *w, uint64_t wait_start)
{
    uint64_t before = shim_ticks();
    shim_sleep_begin(s, w->comm, w->at_arrival, wait_start);
    uint64_t now = shim_ticks();
    if (now - before > PREEMPTED_US * shim_us)
        keep_checking(s, now, RUNG_US * shim_us);
}

bool shim_wait_slices(struct shim_wait *w, uint64_t wait_start, uint64_t limit_ticks,
                      bool until_rung)
{
    uint64_t start = shim_ticks();
    struct shim_sleep sleep;
    bool done, rung = false;
    begin_slices(&sleep, w, wait_start);
    shim_listening.on = true;
    sleep.steep = until_rung; /* a test in a run of many: they have had their short slices */
    for (;;) {
        done = check_before_sleep(w, &sleep, start + limit_ticks);
        uint64_t waited = shim_ticks() - start;
        if (done || (rung && until_rung) || waited >= limit_ticks)
            break;
        int64_t left = (int64_t)shim_ticks_to_ns(limit_ticks - waited);
        if (sleep.slice > left)
            sleep.slice = left;
        rung = shim_sleep_slice(&sleep);
    }
    shim_listening.on = false;
    shim_sleep_end(&sleep);
    return done;
}

void shim_wait(struct shim_wait *w, const void *call_site)
{
    if (!shim_tasks_wanted || !shim_tasks_wait(w, call_site))
        shim_wait_idle(w, call_site);
}

void shim_wait_idle(struct shim_wait *w, const void *call_site)
{
    uint64_t start = shim_ticks();
    struct shim_site *site = shim_site(call_site);
    bool slept = false;
    bool holds_core = !inv_process.anonymous && inv_hold >= 0;
    if (!(holds_core ? spin_on_core(w, site, start) : spin_yielding(w, site, start))) {
        slept = true;
        shim_wait_slices(w, start, UINT64_MAX / 2, false);
    }
    uint64_t end = shim_ticks();
    shim_site_learn(site, start, end);
    shim_workload_waited(start, end, slept);
    shim_short_waits_refresh();
}

/* --- waiting for one request */

static bool check_request(struct shim_wait *w)
{
    struct {
        MPI_Request *request;
        MPI_Status *status;
    } *a = w->arg;
    int flag = 0;
    w->result = shim_pmpi.Test(a->request, &flag, a->status);
    return flag || w->result != MPI_SUCCESS;
}

int shim_wait_request(MPI_Request *request, MPI_Status *status, struct shim_comm *comm,
                      bool at_arrival, const void *call_site)
{
    struct {
        MPI_Request *request;
        MPI_Status *status;
    } args = {request, status};
    struct shim_wait wait = {
        .done = check_request, .arg = &args, .comm = comm, .at_arrival = at_arrival};
    if (!check_request(&wait))
        shim_wait(&wait, call_site);
    return wait.result;
}

int shim_wait_one(MPI_Request *request, MPI_Status *status, int member, const void *call_site)
{
    shim_workload_call(call_site);
    int result = shim_wait_request(request, status, NULL, false, call_site);
    shim_ring_member(member);
    return result;
}

/* Ring those of the communicator's ranks that sleep in a collective of it. */
static void ring_board_sleepers(const struct shim_comm *c)
{
    if (c->header)
        for (int r = 0; r < c->size; r++)
            if (r != c->rank && atomic_load_explicit(&c->line[r].sleeping, memory_order_acquire))
                shim_ring_member(c->member_of[r]);
    if (!c->header)
        shim_ring_comm(c);
}

int shim_wait_collective(MPI_Request *request, struct shim_comm *c, const void *call_site)
{
    shim_workload_call(call_site);
    ring_board_sleepers(c);
    int result = shim_wait_request(request, MPI_STATUS_IGNORE, c, false, call_site);
    ring_board_sleepers(c);
    return result;
}
