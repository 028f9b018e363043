/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_tickets_stress.c - tickets and the gate under fire: a master opens one region after another,
 * for the number of milliseconds in argv[1] (default 2000), and workers take their implicit tasks.
 * Compiled with region/tickets.c; the gate is used here as region.h has it, and workers sleep
 * and are called as cores.c has it.
 *
 * What it checks:
 *  - every implicit task is run once, and by a thread that sees what the master has written,
 *    which is not atomic (ThreadSanitizer watches): also when workers come late, from another
 *    region, when two believe that they hold the same core, and when they have no core or one
 *    without a portion;
 *  - dealt among cores, each core has neighbouring ones, the same in every region, and others take
 *    from its end;
 *  - the master leaves a region after the last access of the last worker;
 *  - an implicit task may wait for another one of the same batch although all workers sleep that
 *    found nothing before the batch was in its portion: a run that hangs is ended by an alarm.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "cores.h"
#include "process.h"
#include "tickets.h"
#include <libinvasive/base/futex.h>

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 3, MOST = 300, HANG_S = 40 };
#define UNFINISHED_ONE (UINT64_C(1) << 32)
#define INSIDE_ONE UINT64_C(1)

struct inv_process inv_process = {.managed = true, .ncores = 2};

static struct gomp_tickets tickets;
static _Atomic uint64_t gate;
/* Of the open region: written by the master, read by threads that run its implicit tasks. */
static struct {
    unsigned nthreads, waits; /* `waits` waits for the next one; nthreads: none does */
} region;
static unsigned char marks[MOST];
static _Atomic bool next_is_done;
static _Atomic bool want, over;
static _Atomic uint32_t bell;
static _Atomic unsigned long together, dealt, slept;

static _Noreturn void fail (const char *what, unsigned id)
{
    fprintf(stderr, "tickets: %s (%u of %u)\n", what, id, region.nthreads);
    abort();
}

static void ring (void)
{
    atomic_fetch_add(&bell, 1);
    inv_futex_wake(&bell, INT_MAX, false);
}

/* As in cores.c: a thread queues work before it looks whether cores are wanted. */
void gomp_want_cores (void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_exchange(&want, true))
        ring();
}

/* A worker has found nothing. */
static void sleep_until_wanted (void)
{
    uint32_t seen = atomic_load(&bell);
    atomic_store(&want, false);
    atomic_thread_fence(memory_order_seq_cst);
    if (gomp_tickets_any(&tickets))
        gomp_want_cores();
    else if (!atomic_load(&over)) {
        atomic_fetch_add_explicit(&slept, 1, memory_order_relaxed);
        inv_futex_wait(&bell, seen, -1, false);
    }
}

static void run (unsigned id)
{
    if (id >= region.nthreads)
        fail("no such implicit task", id);
    if (marks[id]++)
        fail("run twice", id);
    if (id == region.waits)
        while (!atomic_load(&next_is_done))
            sched_yield();
    if (id == region.waits + 1)
        atomic_store(&next_is_done, true);
}

/* The last access to the region. */
static void leave_gate (unsigned done)
{
    atomic_fetch_sub(&gate, done * UNFINISHED_ONE);
}

static void take_tickets (int hold, unsigned *seed)
{
    unsigned id, done = 0;
    while (gomp_ticket_take(&tickets, hold, done > 0, &id)) {
        run(id);
        done++;
        if ((unsigned)rand_r(seed) % 32 == 0)
            break;
    }
    if (done > 0)
        leave_gate(done);
}

/* A core with a portion, most often; two threads may have the same; a core without; none. */
static int some_hold (unsigned *seed)
{
    static const int holds[] = {
        0, 1, 1, GOMP_TICKET_PORTIONS - 1, GOMP_TICKET_PORTIONS, INV_HOLD_NONE, 2, 0};
    return holds[(unsigned)rand_r(seed) % (sizeof holds / sizeof holds[0])];
}

static void *worker_main (void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&over)) {
        if (gomp_tickets_any(&tickets))
            take_tickets(some_hold(&seed), &seed);
        else if ((unsigned)rand_r(&seed) % 4 == 0)
            sleep_until_wanted();
    }
    return NULL;
}

/* Sometimes none; one, as where implicit tasks are left to one core; or several.  Most often those of the last
 * region of the kind, so that nothing is written of what they are. */
static const struct gomp_dealt_cores *some_cores (struct gomp_dealt_cores last[GOMP_DEALS], bool *alone, unsigned *seed)
{
    unsigned kind = (unsigned)rand_r(seed) % 3;
    int hold = some_hold(seed);
    unsigned own = gomp_portion_of(hold, inv_process.ncores);
    *alone = kind == 1;
    if (kind == 0 || own == GOMP_TICKET_PORTIONS)
        return NULL;
    struct gomp_dealt_cores *to = &last[*alone ? GOMP_DEAL_ALONE : GOMP_DEAL_ALL];
    if ((unsigned)rand_r(seed) % 4 > 0 && to->cores[to->first] > 0)
        return to;
    memset(to->cores, 0, sizeof to->cores);
    to->first = own;
    to->cores[own] = 1;
    for (unsigned i = 0; kind == 2 && i < 6; i++)
        to->cores[(unsigned)rand_r(seed) % GOMP_TICKET_PORTIONS] += i % 3;
    return to;
}

static void run_region (uint32_t epoch, unsigned *seed)
{
    static const uint32_t task_ns[] = {0, 5, 30, 300, 1500, 5000};
    static unsigned n = 2;
    static struct gomp_dealt_cores last[GOMP_DEALS];
    bool alone;
    if ((unsigned)rand_r(seed) % 2)
        n = 2 + (unsigned)rand_r(seed) % (MOST - 1);
    memset(marks, 0, sizeof marks);
    region.nthreads = n;
    region.waits = rand_r(seed) % 2 ? (unsigned)rand_r(seed) % (n - 1) : n;
    atomic_store(&next_is_done, false);
    atomic_store_explicit(&gate, n * UNFINISHED_ONE + INSIDE_ONE, memory_order_release);
    const struct gomp_dealt_cores *to = some_cores(last, &alone, seed);
    struct gomp_ticket_ways ways = {.together = (unsigned)rand_r(seed) % 4 == 0,
                                    .odd_first = (unsigned)rand_r(seed) % 2,
                                    .alone = alone};
    ways.apart = ways.together || rand_r(seed) % 2;
    gomp_tickets_open(&tickets, epoch, n, task_ns[(unsigned)rand_r(seed) % 6], ways, to);
    gomp_want_cores();
    run(0);
    leave_gate(1);
    while (gomp_tickets_any(&tickets))
        take_tickets(some_hold(seed), seed);
    while (atomic_load_explicit(&gate, memory_order_acquire) != INSIDE_ONE)
        if (gomp_tickets_any(&tickets))
            take_tickets(some_hold(seed), seed);
        else
            sched_yield();
    atomic_store(&gate, 0);
    if (to)
        dealt++;
    else if (atomic_load(&tickets.filled))
        together++;
    if (gomp_tickets_count(&tickets, epoch) != 0)
        fail("left over", 0);
    for (unsigned id = 0; id < n; id++)
        if (marks[id] != 1)
            fail("not run", id);
}

static void expect (uint32_t epoch, int hold, unsigned wanted)
{
    unsigned id;
    if (!gomp_ticket_take(&tickets, hold, false, &id) || id != wanted)
        fail("not where it belongs", wanted);
    if (gomp_tickets_count(&tickets, epoch) == 0 && gomp_ticket_take(&tickets, hold, false, &id))
        fail("one too many", id);
}

/* 14 implicit tasks on cores 5, 6, 7 and 2, whose master is on 5 and has 0 to 2; core 9 has been borrowed. */
static void check_dealt (uint32_t epoch)
{
    struct gomp_dealt_cores to = {.first = 5, .cores = {[2] = 1, [5] = 1, [6] = 1, [7] = 1}};
    unsigned id;
    region.nthreads = 14;
    gomp_tickets_open(&tickets, epoch, 14, 0, (struct gomp_ticket_ways){0}, &to);
    expect(epoch, 6, 3);
    expect(epoch, 2, 10);
    expect(epoch, 9, 13); /* the next portion after its own is core 2's */
    expect(epoch, 7, 7);
    expect(epoch, 5, 1);
    expect(epoch, 5, 2);
    if (gomp_ticket_take(&tickets, 5, true, &id))
        fail("of another portion, before the own is counted", id);
    expect(epoch, 5, 6); /* core 6's, from the end */
    expect(epoch, 6, 4);
    expect(epoch, INV_HOLD_NONE, 12);
    expect(epoch, 2, 11);
    expect(epoch, 6, 5);
    expect(epoch, 6, 9);
    expect(epoch, 7, 8);
    if (gomp_tickets_any(&tickets))
        fail("left over", 0);
}

int main (int argc, char **argv)
{
    uint64_t ms = (uint64_t)(argc > 1 ? atol(argv[1]) : 2000);
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    uint32_t epoch = UINT32_MAX - 100; /* wraps */
    check_dealt(++epoch); /* what the portions begin with is written, */
    check_dealt(++epoch); /* and is there */
    struct timespec ts;
    pthread_t threads[WORKERS];
    alarm(HANG_S);
    for (uintptr_t i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, worker_main, (void *)(i + 1)) != 0)
            fail("no thread", 0);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t now, end = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + ms;
    unsigned long regions = 0;
    do {
        run_region(++epoch, &seed);
        regions++;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
    } while (now < end);
    atomic_store(&over, true);
    ring();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("tickets: %lu regions, %lu with batches, %lu dealt, slept %lu times\n", regions, together, dealt,
           slept);
    return regions < 10 || together == 0 || dealt == 0 || slept == 0;
}
