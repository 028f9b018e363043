/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * progress.h - the progress guarantee: threads that hold no core are run all the same when those
 * that hold one get nowhere.
 *
 * A region's implicit tasks may wait for each other in ways that we cannot see (a loop on a flag).
 * A thread that spins so never gives its core up, and the implicit task that would set the flag
 * may not have been started.  A watchdog looks every few milliseconds.  If work waits and no thread
 * that holds a core has taken any since, it lets all of it run without a hold, beside the others on
 * the cores that we hold (unheld.h).  It remembers what came of that (history.h): a function whose
 * implicit tasks wait for each other has all of them started at once the next time; if they are
 * merely long, it gets more patience.
 */
#ifndef GOMP_PROGRESS_H
#define GOMP_PROGRESS_H 1

#include <stdbool.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* Start the watchdog, if there is none.  False: the system gives us no thread for it. */
extern bool gomp_progress_start (void);
/* End the program for want of threads. */
extern void gomp_fatal_starved (void) __attribute__((noreturn));
/* Work has been queued: see that the watchdog is awake.  One load when it is. */
extern void gomp_progress_arm (void);
/* A thread that holds a core has taken queued work. */
extern void gomp_progress_note (void);
/* One more thread is to take a ticket without a hold; am I that thread?  And: it has taken one. */
extern void gomp_progress_add_extra (void);
extern bool gomp_progress_take_extra (void);
extern void gomp_progress_note_extra (void);
/* The initial thread ends by pthread_exit: the process is to end when the program's last thread does. */
extern void gomp_progress_initial_ends (void);
extern void gomp_progress_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
