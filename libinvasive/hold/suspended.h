/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * suspended.h - this process's job may be suspended (rmctl suspend): its threads wait then, and hold no
 * core, until the job is resumed.
 *
 * Threads that come to a scheduling point wait there.  To the others, which compute, rmd sends a
 * signal, in whose handler they wait: no thread is stopped, the parent of the process sees nothing,
 * and other signals have their effect.  The signal is SIGURG, which does nothing in a program
 * without a handler for it: the process may have called exec, and rmd sends the signal to the new
 * program.
 */
#ifndef INV_SUSPENDED_H
#define INV_SUSPENDED_H

#include "libinvasive/process/state.h"

#include <signal.h>

enum { INV_SUSPENDED_SIGNAL = SIGURG };

/* The process is about to be managed: from now on rmd may send its threads the signal.  Not where the
 * program has a handler of its own, or ignores the signal. */
void inv_suspended_install(void);

/* Is the job suspended?  One load.  relaxed: a hint; a core that a thread takes meanwhile rmd takes
 * back */
static inline bool inv_suspended(void)
{
    return atomic_load_explicit(&inv_own_slot()->suspended, memory_order_relaxed) != 0;
}

/* Waits until the job is resumed.  If rmd has been silent for 30 s, since it has ended, the process
 * is suspended no longer.  Async-signal-safe. */
void inv_suspended_wait(void);

#endif
