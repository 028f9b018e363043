/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sharedqueue.h - the tasks of a team that lie in no thread number's deque: those with a priority,
 * and those that threads outside the team have queued.
 *
 * The order is by falling priority, then by age.  A list for each level of priority, and a lock
 * that is held for some instructions.  Threads that have nothing to do with such tasks never take
 * it: a relaxed load of `count` tells that there is none, and a task that waits for its descendants
 * has GOMP_TRAIT_SHARED only if one of these was queued here (taskrun.c, shared_in_sight).
 */
#ifndef GOMP_SHAREDQUEUE_H
#define GOMP_SHAREDQUEUE_H 1

#include "spinlock.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

struct gomp_task;

/* Priorities below GOMP_LEVELS_EXACT have a level each, those above have one for each power of two,
 * in which the tasks are sorted. */
enum { GOMP_LEVELS_EXACT = 16, GOMP_LEVELS = 43 };

/* Zero is empty. */
struct gomp_shared_queue {
    /* Tasks in the queue.  Changed under the lock; added to by seq_cst, see
     * gomp_shared_queue_insert. */
    _Atomic unsigned count;
    struct gomp_spinlock lock;
    /* under the lock */
    uint64_t levels; /* bit i: level[i] has a task */
    struct {
        struct gomp_task *first, *last; /* `last` only counts if there is a first one */
    } level[GOMP_LEVELS];
};

/* The level of a priority of 0 or more; rises with it, or stays the same. */
extern unsigned gomp_priority_level (int priority);

/* Any thread: add a task by its priority, and tell its ancestors.  The time does not depend on how
 * many there are, unless a level has several priorities and a higher one comes later.
 * The caller's seq_cst loads after it see a thread that sleeps, or the sleeper, which loads `count`
 * after it has said so, sees the task (taskrun.c, gomp_tasks_visible). */
extern void gomp_shared_queue_insert (struct gomp_shared_queue *, struct gomp_task *);

/* Any thread: take the first task of at least that level for which allowed(task, arg) is true
 * (NULL: any), or NULL.  Looks at all tasks if none is allowed. */
extern struct gomp_task *gomp_shared_queue_take (struct gomp_shared_queue *,
                                                 bool (*allowed) (const void *, const void *),
                                                 const void *arg, unsigned least);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
