/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * poll.c - a streak of failed tests with next to nothing between them is a wait.
 *
 * A streak is a sequence of failed tests of one thread.  The program seems to do nothing else, but
 * it may check something of its own between two tests.  So a thread stays inside a test for a
 * bounded time only.
 *
 * While another process wants the core, a stay is short at first.  It doubles, up to STAY_MOST_US,
 * as long as streaks end with a test that succeeds: getting the core back costs its borrower a
 * turn. After a streak that ends otherwise it is short again.  While no process wants the core,
 * there is a stay only when the streak has lasted for PATIENT_US, of at most 1/STAY_PART of that
 * time.  The program's other checks are delayed by no more than that.
 *
 * A ring ends the stay, since it may be for another request than the one that is tested.  A program
 * that computes between its tests is recognised by the time between them, and is not delayed: by
 * one long gap, or by many short ones that are nearly all of the streak's time.  Where gaps are
 * most of it, there is a stay only while another process wants the core.  There, and while no
 * process wants it, the thread tests for as long as it has stayed before the next stay: so a
 * program that counts its tests, or works a little between them, takes at most twice as long.  A
 * program that sleeps there waits as well: that shows in the thread's CPU time.  Reading it is a
 * system call, so it is read only where gaps are as long as sleeps, and for some time not at all
 * where they turned out to be computing.
 *
 * Where tests follow each other quickly the clock is read for one of several only.
 *
 * The program may test under a lock of its own, which another of its threads needs to send what is
 * waited for.  So a thread sleeps in a test only if no other thread of the process could run: none
 * has used a processor for a while (others.c), or there is none but those of the OpenMP runtime,
 * outside of a region, and of the MPI library; and none lacks a core.  Where threads or implicit
 * tasks of the OpenMP runtime lack a core, they have this one first, for a limited time.
 */
#include "mpi-shim/wait/poll.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/wait/wait.h"
#include "libinvasive/process.h"

/* Microseconds.  GAP: a gap between two tests that is longer than this, and than 1/GAP_PART of the
 * streak so far, is computing; shorter ones may be a time slice of another thread.  STREAK: no stay
 * before tests have failed for this long.  YIELD: with more processes than cores the caller yields
 * for this long before it sleeps, which is about the cost of a sleep and a wake-up on another
 * core. */
enum { GAP_US = 5, STREAK_US = 30, YIELD_US = 50, PATIENT_US = 5000 };
enum { STAY_FIRST_US = 250, STAY_MOST_US = 10000, STAY_UNWANTED_US = 20000, STAY_PART = 16 };
enum { GAP_PART = 64 };
/* UNCLOCKED: tests from one for which the clock is read to the next, at most; fewer, so that they take less than
 * GAP_US / 2. */
enum { UNCLOCKED = 7 };
enum { STREAK_TESTS = 16, STREAK_NAPS = 2 };
/* A thread that has not tested for this long, and 1/GAP_PART of the streak, does not wait.  Longer
 * than from a test to the release of the lock that it is under. */
enum { POLLS_US = 100 };
/* A gap is a sleep of the program (a nap) if it is longer than NAP_US and took less CPU time than
 * 1/NAP_PART of it, and than NAP_CPU_US.  The latter, since a thread that computes may have waited
 * for its core for most of the gap. */
enum { NAP_US = 40, NAP_PART = 4, NAP_CPU_US = 50 };
/* Before the caller sleeps, the other threads have been quiet for this long, in which it has tested
 * and released its lock many times.  Measured in the caller's CPU time, since all of them may wait
 * for a processor.  FIRST: at first.  GROWS: times as long, up to MOST, after a sleep in which
 * another thread has run: it may have had no processor when the sleep began.  After other sleeps a
 * quarter less.  No sleep is longer than the others have been quiet, or than STAY_FIRST_US.  CHECK:
 * the least time from one check to the next. */
enum { QUIET_FIRST_US = 60, QUIET_MOST_US = 20000, QUIET_GROWS = 4, CHECK_US = 20 };
/* A thread that lets other threads of its process have its core waits this long for a core: FIRST
 * at first.  If one came back in that time, the next wait is twice as long, up to MOST.  If not,
 * the thread tests for as long before it gives way again. */
enum { WAY_FIRST_US = 250, WAY_MOST_US = 10000 };
/* CHECKS: gaps for which CPU time is read, until one is a nap.  REST: gaps after that for which it
 * is not read.  CLOCK: the least time between two readings after tests: the test may be under a
 * lock for which other threads spin, and a reading makes it longer.  Less than NAP_CPU_US. */
enum { NAP_CHECKS = 4, NAP_REST = 64, CLOCK_US = 20 };

/* State of the calling thread, which alone writes it. */
static __thread struct {
    struct {
        uint64_t start, last; /* ticks: the streak's first test, and the end of its latest */
        uint64_t stay;        /* how long the next stay may be */
        uint64_t cpu_ns;      /* the thread's processor time at cpu_at; 0: not asked for */
        uint64_t cpu_at;      /* ticks: `last`, or less than CLOCK_US before */
        uint64_t begun;       /* ticks: the latest test for which the clock is read */
        uint64_t apart;       /* ticks: from `last` to there */
        uint64_t inside, outside; /* ticks: in tests, and between them, without stays; estimates */
        uint64_t next_stay;   /* ticks: earliest, unless the thread only waits and its core is
                                 wanted */
        unsigned tests, naps;
        unsigned unclocked;   /* tests since `last` */
        unsigned site; /* of the first test (site_stats.h) */
        bool slept;    /* in this streak */
        bool checked;  /* have the other threads been, in this streak */
    } streak;
    unsigned unclocked_most; /* tests for which the clock is not read, until one for which it is */
    /* Of all streaks: long gaps to check, and to let pass before that. */
    struct {
        unsigned checks, rest;
    } naps;
    /* What this thread knows of the others of its process, in all its streaks. */
    struct {
        struct inv_others sample;
        uint64_t way_ns;     /* how long to wait for a core */
        uint64_t next_check; /* ticks: earliest */
        uint64_t next_way;   /* ticks: earliest */
        bool slept;          /* since the last check */
    } others;
} my __attribute__((tls_model("initial-exec")));

/* Of all threads that test.  relaxed: neither orders other data. */
static struct {
    _Atomic uint64_t quiet_ns; /* how long the others must have been quiet, in the caller's CPU time; 0:
                                * QUIET_FIRST_US.  Writer: learn_quiet */
    _Atomic unsigned mpi_threads; /* writer: shim_poll_library_has */
    _Atomic(const void *) poller; /* that polled last (shim_poll_is_by_one_thread, which writes it) */
} process;

bool shim_poll_is_by_one_thread(const void *own)
{
    if (atomic_load_explicit(&process.poller, memory_order_relaxed) == own)
        return true;
    atomic_store_explicit(&process.poller, own, memory_order_relaxed);
    return false;
}

/* A test has failed, or a stay has ended. */
static void record_end(void)
{
    my.streak.last = shim_ticks();
    my.streak.unclocked = 0;
    uint64_t part = my.streak.tests ? (my.streak.last - my.streak.start) / GAP_PART : 0;
    uint64_t least = POLLS_US * shim_clock.us;
    inv_polls_until = my.streak.last + (part > least ? part : least);
    if (!my.naps.checks || (!my.streak.naps && my.streak.tests >= STREAK_TESTS))
        my.streak.cpu_ns = 0;
    else if (!my.streak.cpu_ns || my.streak.last - my.streak.cpu_at >= CLOCK_US * shim_clock.us) {
        my.streak.cpu_ns = shim_thread_cpu_ns();
        my.streak.cpu_at = my.streak.last;
    }
}

/* Was the thread asleep in this gap between two tests? */
static bool has_slept(uint64_t gap)
{
    if (gap < NAP_US * shim_clock.us)
        return false;
    uint64_t used = my.streak.cpu_ns ? shim_thread_cpu_ns() - my.streak.cpu_ns : UINT64_MAX;
    if (used < NAP_CPU_US * 1000 && used * NAP_PART < shim_ticks_to_ns(gap)) {
        my.naps.checks = NAP_CHECKS;
        my.streak.naps++;
        return true;
    }
    if (my.streak.cpu_ns && --my.naps.checks == 0)
        my.naps.rest = NAP_REST;
    else if (!my.streak.cpu_ns && my.naps.rest)
        my.naps.rest--;
    else if (!my.streak.cpu_ns)
        my.naps.checks = NAP_CHECKS;
    return false;
}

static bool is_wait(void)
{
    return my.streak.tests >= STREAK_TESTS || my.streak.naps >= STREAK_NAPS;
}

static uint64_t quiet_need_ns(void)
{
    uint64_t need = atomic_load_explicit(&process.quiet_ns, memory_order_relaxed);
    return need < QUIET_FIRST_US * 1000 ? QUIET_FIRST_US * 1000 : need;
}

/* ran: another thread has run in the caller's sleep. */
static void learn_quiet(bool ran)
{
    uint64_t need = quiet_need_ns();
    need = ran ? need * QUIET_GROWS : need - need / 4;
    need = need < QUIET_MOST_US * 1000 ? need : QUIET_MOST_US * 1000;
    atomic_store_explicit(&process.quiet_ns, need, memory_order_relaxed);
}

/* A streak has ended in which the others had not been quiet for long enough.  If they could have
 * run, and have not, a sleep would have been as good. */
static void learn_awake(void)
{
    if (quiet_need_ns() == QUIET_FIRST_US * 1000)
        return;
    inv_others_quiet_ns(&my.others.sample);
    if (my.others.sample.spent_ns >= QUIET_FIRST_US * 1000)
        learn_quiet(false);
}

/* How long the others have been quiet (ns).  If the caller has slept since the last check, learns
 * whether one of them has run in the sleep. */
static uint64_t check_others(void)
{
    uint64_t ran = my.others.sample.ran_ns;
    uint64_t quiet = inv_others_quiet_ns(&my.others.sample);
    if (!my.others.slept)
        return quiet;
    my.others.slept = false;
    learn_quiet(my.others.sample.ran_ns != ran);
    return quiet;
}

static void end_streak(uint64_t end, bool hit)
{
    inv_polls_until = 0;
    if (my.others.slept && hit)
        check_others(); /* now: before the next streak all threads of the process may compute */
    else if (my.streak.checked && hit && !my.streak.slept)
        learn_awake();
    my.others.slept = my.streak.checked = false;
    if (is_wait()) {
        unsigned here = shim_site_stats_current();
        shim_site_stats_set_current(my.streak.site);
        shim_workload_waited(my.streak.start, end, my.streak.slept);
        shim_site_stats_set_current(here);
    }
    if (my.streak.slept && !hit)
        my.streak.stay = 0;
    my.streak.tests = my.streak.naps = 0;
    my.streak.inside = my.streak.outside = my.streak.next_stay = 0;
    my.streak.slept = false;
}

/* Are gaps between tests more than half of the time between stays; nearly all of it? */
static bool is_mostly_outside(void) { return my.streak.outside > my.streak.inside; }
static bool computes(void) { return my.streak.outside / 15 > my.streak.inside; }

static bool is_unclocked(void)
{
    return my.streak.tests > 0 && my.streak.unclocked < my.unclocked_most;
}

/* A test for which the clock has been read has failed; the ones before it that followed the last such test took as
 * long. */
static void measure_period(unsigned unclocked)
{
    uint64_t test = my.streak.last - my.streak.begun, before = unclocked * test;
    uint64_t period = (my.streak.apart + test) / (unclocked + 1) + 1;
    my.streak.inside += before + test;
    if (my.streak.apart > before &&
        my.streak.apart < NAP_US * shim_clock.us) /* longer: asleep, or without the core */
        my.streak.outside += my.streak.apart - before;
    uint64_t fit = GAP_US * shim_clock.us / 2 / period;
    my.unclocked_most = fit < UNCLOCKED ? (unsigned)fit : UNCLOCKED;
}

static bool is_core_wanted(void)
{
    return inv_process.anonymous || inv_hold < 0 || inv_hold_poll() != INV_KEEP ||
           inv_evicted_waits();
}

/* Called before the test, so that the gap does not contain the test, which may take long on a core
 * that other threads want. */
void shim_poll_begin(void)
{
    if (my.streak.tests == 0 || is_unclocked())
        return;
    my.streak.begun = shim_ticks();
    uint64_t gap = my.streak.apart = my.streak.begun - my.streak.last;
    if (gap > GAP_US * shim_clock.us)
        my.unclocked_most = 0;
    if (gap > GAP_US * shim_clock.us && gap > (my.streak.last - my.streak.start) / GAP_PART &&
        !has_slept(gap))
        end_streak(my.streak.last, false);
}

/* Is it worth lending the core now? */
static bool is_time_to_stay(void)
{
    uint64_t lasts = my.streak.last - my.streak.start;
    if (!is_wait() || computes() || lasts <= STREAK_US * shim_clock.us ||
        my.streak.last < my.others.next_check)
        return false;
    if (inv_way_wanted() || (!is_mostly_outside() && is_core_wanted()))
        return true;
    if (my.streak.last < my.streak.next_stay)
        return false;
    return is_mostly_outside() ? is_core_wanted() : lasts > PATIENT_US * shim_clock.us;
}

bool shim_poll_failed(void)
{
    if (is_unclocked()) {
        my.streak.unclocked++;
        my.streak.tests++;
        return false;
    }
    unsigned unclocked = my.streak.unclocked;
    record_end();
    if (my.streak.tests++ == 0) {
        my.streak.start = my.streak.last;
        my.streak.site = shim_site_stats_current();
        return false;
    }
    measure_period(unclocked);
    return is_time_to_stay();
}

void shim_poll_library_has(unsigned threads)
{
    atomic_store_explicit(&process.mpi_threads, threads, memory_order_relaxed);
}

/* Is no thread of the program there but the caller? */
static bool is_only_thread(void)
{
    int idle = inv_idle_openmp_threads();
    if (idle < 0)
        return false;
    unsigned threads = inv_threads_now();
    unsigned mpi = atomic_load_explicit(&process.mpi_threads, memory_order_relaxed);
    return threads > 0 && threads <= 1 + (unsigned)idle + mpi;
}

/* How long the caller may sleep in a test; 0: another thread of the process could run. */
static uint64_t longest_stay_ns(void)
{
    uint64_t quiet = check_others();
    my.streak.checked = true;
    uint64_t need = quiet_need_ns();
    if (quiet == UINT64_MAX || my.others.sample.spent_ns >= need)
        return quiet;
    if (is_only_thread())
        return UINT64_MAX;
    /* before it could be enough */
    uint64_t rest = shim_ns_to_ticks(need - my.others.sample.spent_ns);
    uint64_t least = CHECK_US * shim_clock.us;
    my.others.next_check = my.streak.last + (rest > least ? rest : least);
    return 0;
}

/* Threads or implicit tasks of the OpenMP runtime lack a core: let them have the caller's. */
static bool give_way(struct shim_wait *w)
{
    if (my.streak.last < my.others.next_way)
        return false;
    uint64_t start = my.streak.last;
    uint64_t first = WAY_FIRST_US * 1000;
    uint64_t limit = my.others.way_ns > first ? my.others.way_ns : first;
    bool in_time = inv_give_way(limit);
    my.others.way_ns = !in_time                         ? WAY_FIRST_US * 1000
                    : limit < WAY_MOST_US * 1000 / 2 ? limit * 2
                                                     : WAY_MOST_US * 1000;
    bool done = w->done(w);
    record_end();
    my.others.next_way = in_time ? my.streak.last : my.streak.last + (my.streak.last - start);
    return done;
}

/* Lets other ranks run that are runnable on this core.  Two rounds: what a rank posts in the first
 * may complete this wait in the second. */
static bool yield_first(struct shim_wait *w)
{
    for (int i = 0; i < 2; i++) {
        sched_yield();
        if (w->done(w))
            return true;
    }
    return false;
}

bool shim_poll_wait(struct shim_wait *w)
{
    if (inv_way_wanted())
        return give_way(w);
    if (inv_hold == INV_HOLD_NONE)
        inv_give_way(0); /* the thread may have been given a core meanwhile */
    uint64_t longest = longest_stay_ns();
    if (!longest)
        return false;
    /* No yield if another process wants a core: its threads cannot run before a lend, and a yield
     * comes back only when other threads have computed here. */
    if (inv_process.anonymous && !inv_others_want(inv_process.table, inv_process.slot)) {
        bool done = yield_first(w);
        record_end();
        if (done || my.streak.last - my.streak.start < YIELD_US * shim_clock.us)
            return done;
    }
    inv_assert(my.streak.tests > 0); /* the caller is in a streak */
    my.streak.slept = true;
    if (my.streak.stay < STAY_FIRST_US * shim_clock.us)
        my.streak.stay = STAY_FIRST_US * shim_clock.us;
    uint64_t part = (my.streak.last - my.streak.start) / STAY_PART,
             most = STAY_MOST_US * shim_clock.us;
    uint64_t longest_unwanted = STAY_UNWANTED_US * shim_clock.us;
    uint64_t unwanted = part < longest_unwanted ? part : longest_unwanted;
    uint64_t stay = is_core_wanted() ? my.streak.stay : unwanted;
    if (stay > STAY_FIRST_US * shim_clock.us && shim_ticks_to_ns(stay) > longest)
        stay = shim_ns_to_ticks(longest) + STAY_FIRST_US * shim_clock.us;
    uint64_t begin = my.streak.last;
    bool done = shim_wait_slices(w, my.streak.start, stay, true);
    my.others.slept = true;
    my.streak.stay = my.streak.stay < most / 2 ? my.streak.stay * 2 : most;
    record_end();
    my.streak.next_stay = my.streak.last + (my.streak.last - begin);
    return done;
}

/* If the call before this streak did not wait and ended an iteration, the iteration ended before
 * the streak. */
void shim_poll_hit(const void *call_site)
{
    if (my.streak.tests)
        shim_workload_settle(my.streak.start);
    shim_workload_call(call_site);
    if (my.streak.tests)
        end_streak(shim_ticks(), true);
}
