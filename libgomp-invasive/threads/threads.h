/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * threads.h - making threads of the runtime, and whether the system refuses any.
 */
#ifndef GOMP_THREADS_H
#define GOMP_THREADS_H 1

#include <libinvasive/hold/strangers.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* pthread_create, of a thread of the runtime. */
static inline int gomp_create_thread (pthread_t *handle, const pthread_attr_t *attr,
                                      void *(*main) (void *), void *argument)
{
    inv_creates_own_threads(true);
    int error = pthread_create(handle, attr, main, argument);
    inv_creates_own_threads(false);
    return error;
}

/* How many threads can this process have? */
extern struct gomp_thread_supply {
    /* Limits let it start so few threads that those of all teams may not fit, if many threads of the program
     * begin regions or regions are nested (proc.c).  So regions of default teams are bound (region.h), and their
     * threads are made before the size is told.  Written at the first use; constant after it. */
    bool few_threads;
    /* Until this time no thread is made that would only make the program faster, since the system
     * has just refused one; 0: it never has.  By the clock of inv_now_ns.  Written by the thread
     * that was refused one, relaxed: a hint. */
    _Atomic uint64_t refused_until;
} gomp_thread_supply;
/* Notes that the system has refused a thread.  Has it refused one in the last 10 ms?  Ever? */
extern void gomp_thread_refused (void);
extern bool gomp_refused_lately (void);
static inline bool gomp_refused_ever (void)
{
    return __builtin_expect(
        atomic_load_explicit(&gomp_thread_supply.refused_until, memory_order_relaxed) != 0, 0);
}

#pragma GCC visibility pop
#endif
