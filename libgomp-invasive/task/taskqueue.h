/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskqueue.h - the deque of tasks that a thread number has created and no thread has started.
 *
 * The idea is Chase and Lev's (SPAA 2005), the memory orders are those that Le, Pop, Cohen and
 * Zappa Nardelli have proved for C11 (PPoPP 2013).  The owner pushes and pops at the bottom without
 * a lock, thieves take the oldest entry at the top by CAS.  Three differences.  The owner changes
 * bottom by a seq_cst exchange and reads top after it by a seq_cst load, where the paper has a store,
 * a fence and a load: the same order, and on x86 no instruction more.  Push is a seq_cst exchange
 * too: the owner looks for sleepers after it, by seq_cst loads, and sleepers look for tasks after
 * they have said that they sleep.  (An exchange is no fence: relaxed loads after it may be carried
 * out before its store is visible, on ARM for instance.)  And a thief may look at an entry before it
 * takes it (`allowed`), so that a task that it must not run stays where it is.
 *
 * Owner: the kernel thread that has the thread number now.  The code that hands the number over to
 * another kernel thread orders the two.  Entries are pointers to memory that is never unmapped.
 */
#ifndef GOMP_TASKQUEUE_H
#define GOMP_TASKQUEUE_H 1

#include <libinvasive/base/assertion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* Entries; powers of two.  A task that finds no room is run at once, on its creator's stack, so
 * there is room for more than the cut-off ever queues: for the chains of task.c, nests_deep. */
enum { GOMP_QUEUE_FIRST = 32, GOMP_QUEUE_MAX = 1 << 20 };

struct gomp_queue_ring {
    int64_t mask;                   /* entries - 1 */
    struct gomp_queue_ring *former; /* smaller rings: thieves may still read them */
    _Atomic (void *) entry[];
};

struct gomp_queue {
    /* Raised by thieves and by the owner when it takes the last entry; CAS, seq_cst. */
    _Atomic int64_t top __attribute__((aligned(64)));
    /* Written by the owner only. */
    _Atomic int64_t bottom __attribute__((aligned(64)));
    _Atomic (struct gomp_queue_ring *) ring;
};

/* Makes the queue empty.  False: no memory. */
extern bool gomp_queue_init (struct gomp_queue *);
/* Frees the memory of a queue that no thread uses any more. */
extern void gomp_queue_free (struct gomp_queue *);
/* Make room for another entry: false when the queue is as large as it may be. */
extern bool gomp_queue_grow (struct gomp_queue *);

/* How many entries; exact for the owner as long as no thread steals. */
static inline int64_t gomp_queue_size (struct gomp_queue *q)
{
    return atomic_load_explicit(&q->bottom, memory_order_relaxed) -
           atomic_load_explicit(&q->top, memory_order_relaxed);
}

/* The owner: where the next entry goes.  What is pushed from now on is at this index or above. */
static inline int64_t gomp_queue_mark (struct gomp_queue *q)
{
    return atomic_load_explicit(&q->bottom, memory_order_relaxed);
}

/* Is there an entry?  seq_cst, for a thread that has said that it sleeps (seq_cst): partner is the
 * exchange of gomp_queue_push, after which the owner looks for sleepers. */
static inline bool gomp_queue_visible (struct gomp_queue *q)
{
    return atomic_load(&q->bottom) > atomic_load_explicit(&q->top, memory_order_relaxed);
}

/* The owner: add an entry; false when there is no room.  The owner's seq_cst loads after it see a
 * thread that sleeps, or the sleeper sees the entry. */
static inline bool gomp_queue_push (struct gomp_queue *q, void *task)
{
    int64_t b = atomic_load_explicit(&q->bottom, memory_order_relaxed);
    int64_t t = atomic_load_explicit(&q->top, memory_order_acquire);
    struct gomp_queue_ring *ring = atomic_load_explicit(&q->ring, memory_order_relaxed);
    if (__builtin_expect(b - t > ring->mask, 0)) {
        if (!gomp_queue_grow(q))
            return false;
        ring = atomic_load_explicit(&q->ring, memory_order_relaxed);
    }
    inv_assert(task && b >= t && b - t <= ring->mask); /* top only rises: there is room still */
    atomic_store_explicit(&ring->entry[b & ring->mask], task, memory_order_relaxed);
    /* Release: partner is the thief's acquire load of bottom.  seq_cst: partner is a sleeper, which
     * counts itself asleep and then looks here (taskrun.c, help.c). */
    atomic_exchange(&q->bottom, b + 1);
    return true;
}

/* The owner: take the newest entry that is at index `mark` or above, or NULL. */
static inline void *gomp_queue_pop (struct gomp_queue *q, int64_t mark)
{
    int64_t b = atomic_load_explicit(&q->bottom, memory_order_relaxed) - 1;
    if (b < mark || b < atomic_load_explicit(&q->top, memory_order_relaxed))
        return NULL; /* top only grows: empty is empty */
    struct gomp_queue_ring *ring = atomic_load_explicit(&q->ring, memory_order_relaxed);
    /* seq_cst, both: partner is the thief's fence between its looks at top and at bottom.  Either
     * the thief sees that this entry is taken, or the load sees the CAS of the thief before it. */
    atomic_exchange(&q->bottom, b);
    int64_t t = atomic_load(&q->top);
    void *task = NULL;
    inv_assert(t <= b + 1 && b - t <= ring->mask);
    if (t <= b) {
        task = atomic_load_explicit(&ring->entry[b & ring->mask], memory_order_relaxed);
        if (t < b)
            return task;
        /* The last entry: the thread that raises top has it. */
        if (!atomic_compare_exchange_strong_explicit(&q->top, &t, t + 1, memory_order_seq_cst,
                                                     memory_order_relaxed))
            task = NULL;
    }
    /* release: partner is the thief's acquire load of bottom, which then sees top as it is now; the
     * relaxed store would end the release sequence of the exchanges before it */
    atomic_store_explicit(&q->bottom, b + 1, memory_order_release);
    return task;
}

/* Any thread: take the oldest entry if allowed(entry, arg) (NULL: any), or NULL.  `allowed` is
 * called with an entry that another thread may take meanwhile. */
static inline void *gomp_queue_steal (struct gomp_queue *q,
                                      bool (*allowed) (const void *, const void *),
                                      const void *arg)
{
    int64_t t = atomic_load_explicit(&q->top, memory_order_acquire);
    /* A look without the fence: most attempts find nothing.  A thread that must not miss an entry,
     * since it is about to sleep, has made a seq_cst fence before (taskrun.c). */
    if (t >= atomic_load_explicit(&q->bottom, memory_order_relaxed))
        return NULL;
    atomic_thread_fence(memory_order_seq_cst);
    int64_t b = atomic_load_explicit(&q->bottom, memory_order_acquire);
    if (t >= b)
        return NULL;
    /* acquire for the ring that gomp_queue_grow has copied the entries to */
    struct gomp_queue_ring *ring = atomic_load_explicit(&q->ring, memory_order_acquire);
    void *task = atomic_load_explicit(&ring->entry[t & ring->mask], memory_order_relaxed);
    /* If the ring has grown after a thief had taken entry t, it holds nothing there: then top, read
     * after the ring, is past t (gomp_queue_grow has read it before it published the ring). */
    if (allowed && (atomic_load_explicit(&q->top, memory_order_relaxed) != t || !allowed(task, arg)))
        return NULL;
    if (!atomic_compare_exchange_strong_explicit(&q->top, &t, t + 1, memory_order_seq_cst,
                                                 memory_order_relaxed))
        return NULL;
    return task;
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
