/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * background.c - do background threads compute, which hold no core?
 *
 * Threads that the program makes itself do not tell us what they do, but their CPU time shows.  It
 * is the CPU time of the process less what threads that hold cores can have used, one core for
 * each.  A thread that waits in MPI looks now and then (wait.c): where other threads compute, its
 * core is not idle.
 */
#define _GNU_SOURCE
#include "libinvasive/process/background.h"
#include "libinvasive/base/now.h"
#include "libinvasive/process/holdings.h"

#include <sys/resource.h>
#include <time.h>

/* SETTLED: the first measurement comes no earlier after the second sleep.  The time between two is
 * FIRST_PERIOD, and grows to LONGEST_PERIOD while they find nothing. */
static const uint64_t SETTLED_NS = 100000, FIRST_PERIOD_NS = 200000, LONGEST_PERIOD_NS = 4000000;
/* PART: a thread counts as computing when it used at least this share of the interval (of one core).
 * TRACE: this share is enough if no thread has gone to sleep meanwhile, since on a machine that other
 * processes keep busy it gets no more. */
static const double PART = 0.25, TRACE = 0.01, LEAST_TRACE_NS = 5000;
/* A thread that has got no CPU time for so long is not there any more. */
static const uint64_t GONE_NS = 50000000;

void inv_background_begin(struct inv_background *b)
{
    *b = (struct inv_background){.period_ns = FIRST_PERIOD_NS};
}

/* How often the other threads of this process have gone to sleep. */
static int64_t sleeps_of_others(void)
{
    struct rusage all, own;
    return getrusage(RUSAGE_SELF, &all) || getrusage(RUSAGE_THREAD, &own)
               ? 0
               : all.ru_nvcsw - own.ru_nvcsw;
}

/* CPU time (ns) that threads which hold cores can have used since the last look.  A hold that is
 * only kept does not count. */
static double used_by_holders(struct inv_background *b, uint64_t now, bool keeps)
{
    double time = (double)(now - b->now_ns);
    uint64_t held = inv_held_ns(now);
    int32_t tokens = inv_process.anonymous ? inv_tokens_held() : 0;
    double used = inv_process.anonymous ? time * tokens : (double)(held - b->held_ns);
    b->held_ns = held;
    used -= keeps ? time : 0;
    return used > 0 ? used : 0;
}

/* Is it time for a measurement?  Not in short waits, which so cost nothing. */
static bool is_time(struct inv_background *b, uint64_t now)
{
    if (b->now_ns)
        return now - b->now_ns >= b->period_ns;
    if (!b->since_ns)
        b->since_ns = now;
    return now - b->since_ns >= SETTLED_NS;
}

/* How many threads without a hold are at work, by what they have computed (ns) between two
 * measurements that are `time` (ns) apart.  A thread that has run and has not gone to sleep since
 * waits for its turn. */
static int threads_at_work(struct inv_background *b, double computed, double time, bool slept)
{
    inv_assert(time > 0);
    bool ran = computed >= TRACE * time && computed >= LEAST_TRACE_NS;
    if (ran || slept)
        b->ran_ns = slept ? 0 : b->now_ns;
    if (computed >= PART * time)
        return (int)(computed / time + 1 - PART);
    return b->ran_ns && b->now_ns - b->ran_ns < GONE_NS;
}

int inv_background_count(struct inv_background *b, bool keeps)
{
    uint64_t now = b->sleeps++ ? inv_now_ns() : 0;
    if (now == 0 || !is_time(b, now))
        return INV_BACKGROUND_UNKNOWN;
    uint64_t cpu = inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - inv_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t asleep = sleeps_of_others();
    double computed = (double)(int64_t)(cpu - b->cpu_ns) - used_by_holders(b, now, keeps);
    double time = (double)(now - b->now_ns);
    bool first = b->now_ns == 0, slept = asleep != b->asleep;
    b->now_ns = now;
    b->cpu_ns = cpu;
    b->asleep = asleep;
    if (first)
        return INV_BACKGROUND_UNKNOWN;
    int found = threads_at_work(b, computed, time, slept);
    inv_assert(found >= 0 && b->period_ns >= FIRST_PERIOD_NS);
    bool doubtful = found == 0 && b->found > 0;
    b->found = found;
    if (found || doubtful)
        b->period_ns = FIRST_PERIOD_NS;
    else if (b->period_ns < LONGEST_PERIOD_NS)
        b->period_ns *= 2;
    return doubtful ? INV_BACKGROUND_UNKNOWN : found;
}
