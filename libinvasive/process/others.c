/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * others.c - could other threads of this process run while the caller sleeps?
 *
 * A thread that tests for a message may hold a lock of the program, of any kind.  A thread that
 * waits for that lock is woken, or spins, whenever the caller releases the lock: so that thread
 * uses the processor.  Threads that have used none for a while wait for something else.
 *
 * The CPU time of the other threads is that of the process, less the caller's and that of the
 * runtime's service thread.
 */
#define _GNU_SOURCE
#include "libinvasive/process/others.h"
#include "libinvasive/base/now.h"
#include "libinvasive/process/openmp.h"

#include <sys/stat.h>

/* What two readings of the clocks may differ by although no other thread has run (ns). */
enum { NOISE_NS = 2000 };

__thread uint64_t inv_polls_until __attribute__((tls_model("initial-exec")));

static uint64_t cpu_of_others(uint64_t *own)
{
    clockid_t clock = inv_service_clock();
    uint64_t all = inv_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    *own = inv_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t not_theirs = *own + (clock ? inv_clock_ns(clock) : 0);
    return all > not_theirs ? all - not_theirs : 0;
}

uint64_t inv_others_quiet_ns(struct inv_others *o)
{
    uint64_t own, cpu = cpu_of_others(&own), now = inv_now_ns();
    if (cpu > o->cpu_ns + NOISE_NS || cpu + 1000 * NOISE_NS < o->cpu_ns) {
        o->cpu_ns = cpu;
        o->ran_ns = now;
        o->own_ns = own;
    }
    o->spent_ns = own - o->own_ns;
    return o->ran_ns ? now - o->ran_ns : UINT64_MAX;
}

/* The kernel counts them at one moment; a reader of that folder's entries can miss some while threads end. */
unsigned inv_threads_now(void)
{
    enum { OTHER_LINKS = 2 };
    struct stat tasks;
    if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink < OTHER_LINKS)
        return 0;
    return (unsigned)tasks.st_nlink - OTHER_LINKS;
}

bool inv_polls(void)
{
    if (inv_polls_until && inv_ticks() >= inv_polls_until)
        inv_polls_until = 0;
    return inv_polls_until != 0;
}

