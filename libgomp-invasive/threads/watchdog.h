/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * watchdog.h - the progress guarantee: threads that hold no core run all the same when those that
 * hold one make no progress.
 *
 * A region's implicit tasks may wait for each other in ways that the runtime cannot see, such as a
 * loop on a flag.  A thread that spins so never gives its core up, and the implicit task that would
 * set the flag may not have been started.  The watchdog, a thread, looks every few milliseconds.
 * If work waits and no thread that holds a core has taken any since the last look, it lets all of
 * it run without a hold, beside the others on the cores of the process (unheld.h).
 *
 * This file has the thread, and the counters that other threads keep for it.  What it looks at, and
 * does then, is in implicit/progress.c.
 */
#ifndef GOMP_WATCHDOG_H
#define GOMP_WATCHDOG_H 1

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { GOMP_WATCH_NS = 5000000 }; /* between two looks */
/* What the watchdog's thread calls. */
struct gomp_watch {
    void (*look) (void);       /* once in GOMP_WATCH_NS */
    bool (*is_idle) (void);    /* Has there been nothing to watch for so long that it may sleep? */
    void (*forget) (void);     /* at its start, and before it sleeps: drop what earlier looks saw */
    bool (*has_reason) (void); /* just before it sleeps: is there something to watch after all? */
};
/* Called once, when the library is loaded. */
extern void gomp_watchdog_set (const struct gomp_watch *);

/* Start the watchdog, if there is none.  False: the system refuses a thread for it. */
extern bool gomp_progress_start (void);
/* 1 if there is one, else 0. */
extern int gomp_watchdogs_now (void);
/* End the program for want of threads. */
extern void gomp_fatal_starved (void) __attribute__((noreturn));
/* Work has been queued: see that the watchdog is awake.  One load when it is. */
extern void gomp_progress_arm (void);
/* The calling thread, which holds a core, is about to take work. */
extern void gomp_progress_note (void);
/* One more thread is to take a ticket without a hold. */
extern void gomp_progress_add_extra (void);
/* Is the calling thread to take such a ticket?  If so, one thread less is from now on. */
extern bool gomp_progress_take_extra (void);
/* The calling thread has taken a ticket without a hold. */
extern void gomp_progress_count_extra (void);
/* For the watchdog: work taken by threads that hold cores, less tickets taken by those that hold none. */
extern uint64_t gomp_progress_counted (void);
/* No work waits: no thread is to take any without a hold. */
extern void gomp_progress_drop_extras (void);
/* The initial thread ends by pthread_exit: the process is to end when the program's last thread does. */
extern void gomp_progress_initial_ends (void);
extern void gomp_progress_forget (void);

#pragma GCC visibility pop
#endif
