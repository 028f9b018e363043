/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_taskqueue_stress.c - the deque of tasks and the free lists under fire: owners push and pop,
 * thieves steal one task or several, for the number of milliseconds in argv[1] (default 2000).
 *
 * What it checks:
 *  - every task that was pushed is taken exactly once, by the owner or by one thief;
 *  - a task's contents, not atomic, are seen by the thread that takes it (ThreadSanitizer watches);
 *  - the owner finds nothing below its mark, and a thief takes nothing that it is not allowed to;
 *  - a block of the free lists has one user at a time, and comes back with its class's size;
 *  - the numbers of created and of completed tasks, read as the barrier reads them, are never equal
 *    while a task is outstanding.
 */
#define _GNU_SOURCE
#include "taskpool.h"
#include "taskqueue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OWNERS = 2, THIEVES = 2, THREADS = OWNERS + THIEVES, BURST = 200 };

struct task {
    _Atomic uint32_t kind; /* looked at by thieves, also when the block is another task by now */
    int class;
    unsigned owner;
    unsigned long number;
    char filler[64];
};

static struct gomp_queue queue[THREADS]; /* thieves have what they took with another task */
static struct {
    _Atomic uint64_t created, completed;
} count[THREADS];
static _Atomic bool stopping;
static _Atomic uint64_t stolen;

static _Noreturn void fail (const char *what)
{
    fprintf(stderr, "taskqueue: %s\n", what);
    abort();
}

static void add (_Atomic uint64_t *counter, memory_order order)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, order);
}

static struct task *make_task (unsigned self, unsigned long number)
{
    int class = number % 3 == 0 ? 1 : 0;
    struct task *task = gomp_pool_alloc(class);
    atomic_store_explicit(&task->kind, number % 4 == 0, memory_order_relaxed);
    task->class = class;
    task->owner = self;
    task->number = number;
    memset(task->filler, (int)(number & 0x7f), sizeof task->filler);
    return task;
}

static void run_task (unsigned self, struct task *task)
{
    for (size_t i = 0; i < sizeof task->filler; i++)
        if (task->filler[i] != (char)(task->number & 0x7f))
            fail("a task's content is not what was pushed: two users of one block?");
    memset(task->filler, -1, sizeof task->filler);
    gomp_pool_free(task->class, task);
    add(&count[self].completed, memory_order_release);
}

/* As gomp_tasks_outstanding. */
static bool outstanding (void)
{
    uint64_t created = 0, completed = 0;
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < THREADS; i++)
        completed += atomic_load_explicit(&count[i].completed, memory_order_acquire);
    for (int i = 0; i < THREADS; i++)
        created += atomic_load_explicit(&count[i].created, memory_order_acquire);
    return created != completed;
}

static void push (unsigned self, unsigned long *number)
{
    struct task *task = make_task(self, ++*number);
    add(&count[self].created, memory_order_relaxed);
    if (!gomp_queue_push(&queue[self], task))
        run_task(self, task);
}

static void *owner_main (void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg, seed = self * 77 + 1;
    unsigned long number = 0;
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        unsigned n = (unsigned)rand_r(&seed) % BURST;
        int64_t mark = 0;
        for (unsigned i = 0; i < n; i++) {
            push(self, &number);
            if (i == n / 2)
                mark = gomp_queue_mark(&queue[self]);
            struct task *task;
            if (rand_r(&seed) % 4 == 0 && (task = gomp_queue_pop(&queue[self], INT64_MIN)))
                run_task(self, task);
        }
        struct task *task;
        int64_t above = gomp_queue_mark(&queue[self]) - mark, got = 0;
        while ((task = gomp_queue_pop(&queue[self], mark))) {
            got++;
            run_task(self, task);
        }
        if (got > (above > 0 ? above : 0))
            fail("the owner took tasks below its mark");
        while ((task = gomp_queue_pop(&queue[self], INT64_MIN)))
            run_task(self, task);
    }
    gomp_pool_donate();
    return NULL;
}

static bool odd_ones (const void *entry, const void *arg)
{
    (void)arg;
    return atomic_load_explicit(&((struct task *)entry)->kind, memory_order_relaxed) == 0;
}

static struct task *steal_any (unsigned first, unsigned self, bool picky, struct gomp_queue **from)
{
    struct task *task = NULL;
    for (unsigned i = 0; i < THREADS && !task; i++)
        if ((first + i) % THREADS != self) {
            *from = &queue[(first + i) % THREADS];
            task = gomp_queue_steal(*from, picky ? odd_ones : NULL, NULL);
        }
    if (task && picky && !odd_ones(task, NULL))
        fail("a thief got what it is not allowed to take");
    return task;
}

/* As steal_siblings: more of the same queue, into the thief's own, from where others may take them. */
static void steal_more (unsigned self, struct gomp_queue *from, unsigned most)
{
    struct task *task;
    for (unsigned i = 0; i < most && (task = gomp_queue_steal(from, odd_ones, NULL)); i++)
        if (!gomp_queue_push(&queue[self], task))
            run_task(self, task);
}

static void *thief_main (void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg, seed = self;
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        struct gomp_queue *from;
        bool picky = rand_r(&seed) % 2;
        struct task *task = steal_any((unsigned)rand_r(&seed) % THREADS, self, picky, &from);
        if (task) {
            if (picky)
                steal_more(self, from, (unsigned)rand_r(&seed) % 16);
            atomic_fetch_add_explicit(&stolen, 1, memory_order_relaxed);
            /* this thread has a task that is not complete */
            if (rand_r(&seed) % 16 == 0 && !outstanding())
                fail("the counts are even while a task is outstanding");
            run_task(self, task);
            while ((task = gomp_queue_pop(&queue[self], INT64_MIN)))
                run_task(self, task);
        }
    }
    gomp_pool_donate();
    return NULL;
}

int main (int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 2000;
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (!gomp_queue_init(&queue[i]))
            fail("no memory");
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, i < OWNERS ? owner_main : thief_main, (void *)i))
            fail("pthread_create");
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    struct task *task;
    for (int i = 0; i < THREADS; i++) {
        while ((task = gomp_queue_steal(&queue[i], NULL, NULL)))
            run_task(OWNERS, task);
        gomp_queue_free(&queue[i]);
    }
    if (outstanding())
        fail("tasks were lost or run twice");
    printf("taskqueue: all tasks taken once, %s stolen\n", atomic_load(&stolen) ? "some" : "none");
    return 0;
}
