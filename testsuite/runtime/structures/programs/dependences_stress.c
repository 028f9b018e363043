/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dependences_stress.c - task/taskdeps.c under fire: a parent enters one child after another, for
 * the number of milliseconds in argv[1] (default 2000), while threads run and complete them.
 *
 * What it checks, of each address that a child names:
 *  - the child sees what the last writer before it has written, which is not atomic
 *    (ThreadSanitizer watches), and all that the children of the sets before it have done;
 *  - the children of a mutexinoutset do not overlap;
 *  - a taskwait that names an address is over when that is true of the parent, and is woken: a run
 *    that hangs is ended by an alarm;
 *  - every child runs once, and no node is left when the parent has ended.
 */
#include "dependences.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3, ADDRESSES = 5, MOST_NAMED = 3, CHILDREN = 200, MOST_OPEN = 40, HANG_S = 200 };
enum kind { OUT, MUTEX, IN, INOUTSET, KINDS };

/* What children leave at an address. */
struct seen {
    unsigned writer; /* the number of the last one */
    unsigned mutex;  /* since then: children of mutexinoutsets, */
    unsigned joined; /* and of inoutsets */
};

struct data {
    struct seen seen;
    _Atomic unsigned joined; /* in place of seen.joined: these children overlap */
};
static struct data data[ADDRESSES];

struct child {
    struct gomp_task task; /* first */
    struct child *next;    /* in the list of those that may run */
    unsigned number, named;
    struct {
        enum kind kind;
        unsigned address;
        struct seen expected; /* is there when it runs */
    } name[MOST_NAMED];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct child *ready; /* under lock */
static _Atomic bool over, woken;
static _Atomic unsigned complete;

static _Noreturn void fail (const char *what, unsigned number)
{
    fprintf(stderr, "dependences: %s (child %u)\n", what, number);
    abort();
}

static void schedule (struct child *child)
{
    pthread_mutex_lock(&lock);
    child->next = ready;
    ready = child;
    pthread_mutex_unlock(&lock);
}

static void schedule_all (struct gomp_task *first)
{
    for (struct gomp_task *next; first; first = next) {
        next = first->own.link;
        schedule((struct child *)first);
    }
}

static void look (unsigned number, unsigned address, enum kind kind, const struct seen *expected)
{
    struct data *d = &data[address];
    if (d->seen.writer != expected->writer)
        fail("not what the last writer wrote", number);
    if (kind != MUTEX && d->seen.mutex != expected->mutex)
        fail("a mutexinoutset before it is not complete", number);
    if (kind != INOUTSET &&
        atomic_load_explicit(&d->joined, memory_order_relaxed) != expected->joined)
        fail("an inoutset before it is not complete", number);
}

static void run (struct child *child)
{
    for (unsigned i = 0; i < child->named; i++) {
        enum kind kind = child->name[i].kind;
        struct data *d = &data[child->name[i].address];
        look(child->number, child->name[i].address, kind, &child->name[i].expected);
        if (kind == OUT) {
            d->seen = (struct seen){.writer = child->number};
            atomic_store_explicit(&d->joined, 0, memory_order_relaxed);
        } else if (kind == MUTEX)
            d->seen.mutex++;
        else if (kind == INOUTSET)
            atomic_fetch_add_explicit(&d->joined, 1, memory_order_relaxed);
    }
    schedule_all(gomp_deps_leave(&child->task));
    free(child);
    atomic_fetch_add(&complete, 1);
}

static bool run_one (void)
{
    pthread_mutex_lock(&lock);
    struct child *child = ready;
    if (child)
        ready = child->next;
    pthread_mutex_unlock(&lock);
    if (child)
        run(child);
    return child != NULL;
}

static void *worker_main (void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        if (!run_one())
            sched_yield();
    return NULL;
}

void gomp_task_wake_parked (struct gomp_task *task)
{
    (void)task;
    atomic_store(&woken, true);
}

void gomp_task_wait (enum gomp_wait_for what, bool (*done) (const void *), const void *arg)
{
    if (what != GOMP_WAIT_NODE)
        fail("no wait for a node", 0);
    while (!atomic_load(&woken))
        sched_yield();
    if (!done(arg))
        fail("a taskwait is woken too early", 0);
}

/* --- the parent */

static struct seen last[ADDRESSES]; /* what is there when all children so far are complete */

/* The array of releases since GCC 9. */
struct depend {
    void *array[5 + MOST_NAMED];
    void *object[MOST_NAMED][2];
};

static void encode (struct depend *to, const struct child *child)
{
    unsigned at = 5, objects = 0;
    *to = (struct depend){.array = {[1] = (void *)(uintptr_t)child->named}};
    for (enum kind kind = OUT; kind < KINDS; kind++)
        for (unsigned i = 0; i < child->named; i++)
            if (child->name[i].kind == kind) {
                void *address = &data[child->name[i].address];
                if (kind == INOUTSET) {
                    to->object[objects][0] = address;
                    to->object[objects][1] = (void *)(uintptr_t)5;
                    address = to->object[objects++];
                } else
                    to->array[2 + kind] = (char *)to->array[2 + kind] + 1;
                to->array[at++] = address;
            }
}

static void choose_names (struct child *child, unsigned *seed)
{
    child->named = 1 + (unsigned)rand_r(seed) % MOST_NAMED;
    unsigned first = (unsigned)rand_r(seed);
    for (unsigned i = 0; i < child->named; i++) {
        unsigned address = (first + i) % ADDRESSES;
        enum kind kind = (enum kind)((unsigned)rand_r(seed) % KINDS);
        child->name[i].kind = kind;
        child->name[i].address = address;
        child->name[i].expected = last[address];
        if (kind == OUT)
            last[address] = (struct seen){.writer = child->number};
        last[address].mutex += kind == MUTEX;
        last[address].joined += kind == INOUTSET;
    }
}

static void enter_child (struct gomp_task *parent, unsigned number, unsigned *seed)
{
    struct depend depend;
    struct gomp_task *others = NULL;
    struct child *child = gomp_malloc_cleared(sizeof *child);
    child->number = number;
    choose_names(child, seed);
    encode(&depend, child);
    if (gomp_deps_enter(parent, &child->task, depend.array, &others))
        schedule(child);
    schedule_all(others);
}

static void wait_for_address (unsigned address)
{
    void *depend[] = {(void *)(uintptr_t)1, (void *)(uintptr_t)1, &data[address]};
    atomic_store(&woken, false);
    GOMP_taskwait_depend(depend);
    look(0, address, OUT, &last[address]);
}

static void run_family (unsigned *seed)
{
    struct gomp_task parent = {.depend_hash = NULL};
    gomp_thread()->task = &parent;
    atomic_store(&complete, 0);
    unsigned entered = 0;
    while (entered < CHILDREN) {
        if (entered - atomic_load(&complete) >= MOST_OPEN)
            sched_yield();
        else
            enter_child(&parent, ++entered, seed);
        if ((unsigned)rand_r(seed) % 32 == 0)
            wait_for_address((unsigned)rand_r(seed) % ADDRESSES);
    }
    while (atomic_load(&complete) < entered)
        sched_yield();
    for (unsigned address = 0; address < ADDRESSES; address++)
        look(0, address, OUT, &last[address]);
    gomp_deps_free(&parent);
    if (atomic_load(&nodes) > 0)
        fail("a node is left", 0);
}

int main (int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 2000, families = 0;
    unsigned seed = 1;
    pthread_t thread[WORKERS];
    struct timespec begin, now;
    alarm(HANG_S);
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&thread[i], NULL, worker_main, NULL) != 0)
            fail("no thread", 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        run_family(&seed);
        families++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
    atomic_store(&over, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    printf("dependences: %ld families of %d children\n", families, CHILDREN);
    return 0;
}
