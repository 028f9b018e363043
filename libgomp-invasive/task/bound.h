/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * bound.h - bound workers: kernel threads that belong to a pool or a nested team and run the implicit
 * tasks that are assigned to them.
 *
 * A worker whose implicit task is over executes explicit tasks while the region is open (help.h), and
 * waits for the next assignment.
 */
#ifndef GOMP_BOUND_H
#define GOMP_BOUND_H 1

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

struct gomp_region;

enum { GOMP_WORKER_QUIT = 1, GOMP_WORKER_CALL = 2 };

struct gomp_worker {
    /* The assigned implicit task.  Written by the master, which then raises word and unparks the
     * worker; read by the worker. */
    _Atomic(struct gomp_region *) region;
    unsigned id;
    /* Counts assignments and calls for help in steps of GOMP_WORKER_CALL; GOMP_WORKER_QUIT: the
     * worker is to end, and frees this struct.  Release; partner: bound_worker_main's acquire loads */
    _Atomic int word;
    _Atomic int asleep; /* 1: parked while its region is open, a call for help wakes it.
                           exchanged by the helper-caller, set by the worker */
    pthread_t handle;
    struct gomp_worker *next; /* in the list of idle nested workers */
};

/* Makes a worker with implicit task `id` of the region; ends the program if the system gives none. */
extern struct gomp_worker *gomp_worker_start (struct gomp_region *, unsigned id);
/* Makes bound workers which wait for their first implicit task, `wanted` of them or as many as limits
 * allow.  Returns a list. */
extern struct gomp_worker *gomp_workers_make (unsigned wanted);
/* Assigns implicit task `id` of the region to the bound worker, and wakes it. */
extern void gomp_worker_assign (struct gomp_worker *, struct gomp_region *, unsigned id);
/* Tells the worker to end. */
extern void gomp_worker_quit (struct gomp_worker *);
/* Bound workers of nested teams are kept, by the pool, and used again. */
extern struct gomp_worker *gomp_nested_worker (struct gomp_worker **idle, struct gomp_region *,
                                               unsigned id);
extern void gomp_nested_worker_return (struct gomp_worker **idle, struct gomp_worker *);
/* Take `wanted` of them for the next nested region of the calling thread, or as many as there are
 * and can be made; returns how many.  gomp_nested_worker uses these first; then the second function
 * returns the workers that are left over. */
extern unsigned gomp_nested_workers_take (struct gomp_worker **idle, unsigned wanted);
extern void gomp_nested_workers_return (struct gomp_worker **idle);
/* Wake up to `count` sleeping threads that could execute a task: the master at the end of the
 * region, and bound workers whose implicit task is over.  False: no such thread sleeps. */
extern bool gomp_region_call_helpers (struct gomp_region *, int count);
/* For the child of a fork. */
extern void gomp_bound_forget (void);

#pragma GCC visibility pop
#endif
