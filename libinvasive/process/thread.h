/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * thread.h - threads of this process: the hold of the calling one, and what the kernel says of others.
 */
#ifndef INV_THREAD_H
#define INV_THREAD_H

#include "libinvasive/process/state.h"

#include <stdint.h>

/* The hold of the calling thread; INV_HOLD_NONE in threads that we do not manage. */
extern __thread int inv_hold __attribute__((tls_model("initial-exec")));

/* Has the calling thread lent inv_hold with inv_lend?  At inv_reclaim or its next scheduling point
 * it finds that it has lost the hold, as a thread that was evicted does.  Cleared where a hold
 * begins or ends. */
extern __thread bool inv_hold_is_lent __attribute__((tls_model("initial-exec")));

/* May a thread of this process have this as its hold?  INV_HOLD_NONE included. */
static inline bool inv_hold_is_valid(int hold)
{
    return hold == INV_HOLD_NONE || hold == INV_HOLD_TOKEN ||
           (!inv_process.anonymous && hold >= 0 && hold < INV_MAX_CORES);
}

/* The kernel's id of the calling thread, cached in inv_tid, which is 0 before the first call and
 * set in every thread that holds a core.  A child of fork must call inv_thread_forget (hold.h) first. */
extern __thread int inv_tid __attribute__((tls_model("initial-exec")));
int inv_own_tid(void);
/* CPU time of thread `tid` of this process; 0: there is no such thread. */
uint64_t inv_thread_cpu_ns(int tid);
/* The same, and how long the thread has waited in the kernel's queue for a processor; 0 where the
 * kernel does not count that (CONFIG_SCHED_INFO). */
struct inv_thread_time {
    uint64_t ran_ns, waited_ns;
};
struct inv_thread_time inv_thread_time(int tid);
/* Does the thread sleep, or has it ended?  False while it runs or waits in the kernel's queue. */
bool inv_thread_sleeps(int tid);

#endif
