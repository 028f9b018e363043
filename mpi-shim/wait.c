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

/* In microseconds.  LEND: giving a core up and having it back, with the other core's
 * wake-up; a wait shorter than that is spun through.  SHORT: what a site with long waits
 * spins before it lends.  PATIENT: spinning on a core that nobody wants ends here.  MOVE:
 * looking for another core than the one that its owner asks for.  LASTS: a report asks for the CPU
 * time of waits that are longer than this. */
enum { LEND_US = 30, SHORT_US = 1, PATIENT_US = 5000, YIELD_US = 200, MOVE_US = 10, LASTS_US = 5 };
/* Slices of sleep: the first, and the longest.  After a ring: how long to look before the
 * next sleep; what we were rung for may take a moment to arrive. */
enum { FIRST_SLICE_NS = 100000, LONGEST_SLICE_NS = 1000000, RUNG_US = 5 };

enum { SITES = 1024 }; /* power of two */
static struct shim_site sites[SITES];

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

struct shim_site *shim_site(const void *call_site)
{
    uint64_t key = (uint64_t)(uintptr_t)call_site * UINT64_C(0x9e3779b97f4a7c15);
    return &sites[key >> 54];
}

void shim_site_learn(struct shim_site *site, uint64_t ticks)
{
    uint32_t last = ticks > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)ticks;
    uint32_t mean = atomic_load_explicit(&site->expect, memory_order_relaxed);
    atomic_store_explicit(&site->expect, mean - mean / 4 + last / 4, memory_order_relaxed);
    uint32_t quick = atomic_load_explicit(&site->quick, memory_order_relaxed);
    if (ticks > 5 * shim_us)
        quick = 0;
    else if (quick < UINT32_MAX)
        quick++;
    atomic_store_explicit(&site->quick, quick, memory_order_relaxed);
}

void shim_progress(void)
{
    int flag;
    shim_pmpi.Iprobe(0, 32767, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* How long a site spins on a core that somebody wants: a lend's cost where the wait is
 * likely to be over by then, next to nothing where it is not. */
static uint64_t patience(const struct shim_site *site)
{
    uint32_t expect = atomic_load_explicit(&site->expect, memory_order_relaxed);
    return (expect <= LEND_US * shim_us ? LEND_US : SHORT_US) * shim_us;
}

/* The owner of our core asks for it while we spin: if there is another one for us, go there
 * rather than sleep.  Often it is one of our own, and an idle worker sits on it, who gives
 * it up when it sees that somebody waits. */
static bool move_to_other_core(void)
{
    uint64_t start = shim_ticks();
    int seat;
    atomic_fetch_add_explicit(&inv_process.waiting, 1, memory_order_relaxed);
    while ((seat = inv_seat_try()) == INV_SEAT_NONE && shim_ticks() - start < MOVE_US * shim_us)
        inv_cpu_relax();
    atomic_fetch_sub_explicit(&inv_process.waiting, 1, memory_order_relaxed);
    if (seat == INV_SEAT_NONE)
        return false;
    int old = inv_seat_detach();
    inv_seat_sit(seat); /* first, so that whoever is woken on the old core does not meet us */
    inv_seat_return(old);
    return true;
}

static bool spin_on_core(struct shim_wait *w, const struct shim_site *site, uint64_t start)
{
    uint64_t patient = patience(site);
    for (;;) {
        for (int i = 0; i < 16; i++) {
            if (w->done(w))
                return true;
            inv_cpu_relax();
        }
        uint64_t spun = shim_ticks() - start;
        enum inv_verdict verdict = inv_seat_poll();
        if (verdict == INV_GIVE && move_to_other_core())
            continue;
        if (verdict == INV_GIVE || verdict == INV_LOST || spun > PATIENT_US * shim_us ||
            (verdict == INV_WANTED && spun > patient))
            return false;
        if (spun > LASTS_US * shim_us)
            shim_account_lasts(start);
    }
}

static bool spin_yielding(struct shim_wait *w, uint64_t start)
{
    shim_account_lasts(start);
    do {
        for (int i = 0; i < 4; i++)
            if (w->done(w))
                return true;
        sched_yield();
    } while (shim_ticks() - start < YIELD_US * shim_us);
    return w->done(w);
}

/* Say where ringers look that we sleep.  The caller looks again before it sleeps. */
static void show_sleeping(struct shim_comm *c, bool sleeping)
{
    /* release: partner is the acquire load in ring.c and meet.c */
    atomic_store_explicit(&shim_world.member[shim_world.me].mail->sleeping, sleeping,
                          memory_order_release);
    if (c && c->line)
        atomic_store_explicit(&c->line[c->rank].sleeping, sleeping, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static void count_sleeper(const struct shim_wait *w, int by)
{
    if (w->meeting)
        atomic_fetch_add_explicit(&w->comm->header->sleeping, (uint32_t)by, memory_order_seq_cst);
}

static bool look_for(struct shim_wait *w, uint64_t ticks)
{
    uint64_t start = shim_ticks();
    do {
        if (w->done(w))
            return true;
        inv_cpu_relax();
    } while (shim_ticks() - start < ticks);
    return false;
}

bool shim_wait_slices(struct shim_wait *w, uint64_t limit_ticks)
{
    uint64_t start = shim_ticks();
    int64_t slice = FIRST_SLICE_NS;
    bool done, rung = false;
    shim_workload_lends();
    inv_wait_begin();
    count_sleeper(w, 1);
    for (;;) {
        uint32_t seen = inv_bell_read();
        show_sleeping(w->comm, true);
        done = rung ? look_for(w, RUNG_US * shim_us) : w->done(w);
        if (done || shim_ticks() - start >= limit_ticks)
            break;
        rung = inv_wait_sleep(seen, slice);
        slice = rung                            ? FIRST_SLICE_NS
                : slice >= LONGEST_SLICE_NS / 2 ? LONGEST_SLICE_NS
                                                : slice * 2;
    }
    show_sleeping(w->comm, false);
    inv_wait_end();
    shim_workload_regained();
    count_sleeper(w, -1); /* last: whoever waits for us to be awake (meet.c) sees it */
    return done;
}

void shim_wait(struct shim_wait *w, const void *call_site)
{
    uint64_t start = shim_ticks();
    struct shim_site *site = shim_site(call_site);
    bool slept = false;
    bool seated = !inv_process.anonymous && inv_seat >= 0;
    if (!(seated ? spin_on_core(w, site, start) : spin_yielding(w, start))) {
        slept = true;
        shim_account_sleeps(start);
        shim_wait_slices(w, UINT64_MAX);
        shim_account_woke();
    }
    uint64_t end = shim_ticks();
    shim_site_learn(site, end - start);
    shim_workload_waited(start, end, slept);
}

/* --- waiting for one request */

static bool request_done(struct shim_wait *w)
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
                      bool meeting, const void *call_site)
{
    struct {
        MPI_Request *request;
        MPI_Status *status;
    } args = {request, status};
    struct shim_wait wait = {.done = request_done, .arg = &args, .comm = comm, .meeting = meeting};
    if (!request_done(&wait))
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
static void ring_board(const struct shim_comm *c)
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
    ring_board(c);
    int result = shim_wait_request(request, MPI_STATUS_IGNORE, c, false, call_site);
    ring_board(c);
    return result;
}
