/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sharedqueue.c - see sharedqueue.h.
 */
#include "sharedqueue.h"
#include "libgomp.h"
#include <libinvasive/base/assertion.h>

unsigned gomp_priority_level (int priority)
{
    if (priority < GOMP_LEVELS_EXACT)
        return priority > 0 ? (unsigned)priority : 0;
    unsigned power = 31 - (unsigned)__builtin_clz((unsigned)priority); /* 4 for the first ones */
    inv_assert(GOMP_LEVELS_EXACT + power - 4 < GOMP_LEVELS);
    return GOMP_LEVELS_EXACT + power - 4;
}

/* With the lock held. */
static void level_insert (struct gomp_shared_queue *q, unsigned level, struct gomp_task *task)
{
    struct gomp_task **link = &q->level[level].first;
    if (*link && q->level[level].last->priority >= task->priority)
        link = &q->level[level].last->own.link;
    else
        while (*link && (*link)->priority >= task->priority)
            link = &(*link)->own.link;
    inv_assert(!*link || (*link)->priority < task->priority);
    task->own.link = *link;
    if (!*link)
        q->level[level].last = task;
    *link = task;
    q->levels |= UINT64_C(1) << level;
}

/* The first allowed task of the level, taken off, or NULL; with the lock held. */
static struct gomp_task *level_take (struct gomp_shared_queue *q, unsigned level,
                                     bool (*allowed) (const void *, const void *), const void *arg)
{
    struct gomp_task *before = NULL, *task = q->level[level].first;
    inv_assert(task);
    while (task && allowed && !allowed(task, arg)) {
        before = task;
        task = task->own.link;
    }
    if (!task)
        return NULL;
    *(before ? &before->own.link : &q->level[level].first) = task->own.link;
    if (q->level[level].last == task)
        q->level[level].last = before;
    if (!q->level[level].first)
        q->levels &= ~(UINT64_C(1) << level);
    return task;
}

/* If a task has the trait its ancestors have it, or another thread is about to give it to them, and
 * wakes what sleeps when it has queued its own task.  So most calls look at one task.  The
 * ancestors stay while the new task is not complete: they are released after their children. */
static void mark_ancestors (struct gomp_task *task)
{
    do {
        task = task->parent;
        if (gomp_task_has_trait(&task->own, GOMP_TRAIT_SHARED))
            return;
        gomp_task_add_trait(&task->own, GOMP_TRAIT_SHARED);
    } while (task->own.depth > 0);
}

void gomp_shared_queue_insert (struct gomp_shared_queue *q, struct gomp_task *task)
{
    mark_ancestors(task); /* before it is counted: a thread that sees the count sees the traits */
    gomp_spinlock_lock(&q->lock);
    level_insert(q, gomp_priority_level(task->priority), task);
    /* seq_cst: partners are those of gomp_queue_push, see after_queueing in taskrun.c */
    atomic_fetch_add(&q->count, 1);
    gomp_spinlock_unlock(&q->lock);
}

struct gomp_task *gomp_shared_queue_take (struct gomp_shared_queue *q,
                                          bool (*allowed) (const void *, const void *),
                                          const void *arg, unsigned least)
{
    struct gomp_task *task = NULL;
    gomp_spinlock_lock(&q->lock);
    for (uint64_t left = q->levels & -(UINT64_C(1) << least); left && !task;) {
        unsigned level = 63 - (unsigned)__builtin_clzll(left);
        left &= ~(UINT64_C(1) << level);
        task = level_take(q, level, allowed, arg);
    }
    if (task) {
        unsigned before = atomic_fetch_sub_explicit(&q->count, 1, memory_order_relaxed);
        inv_assert(before > 0);
    }
    gomp_spinlock_unlock(&q->lock);
    return task;
}
