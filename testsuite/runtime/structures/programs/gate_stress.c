/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gate_stress.c - the gate of a region, and what the history has of it, under fire.  Two masters
 * open one region after another, each of a function of its own, for the number of milliseconds in
 * argv[1] (default 2000).  Workers run their implicit tasks.  Helpers enter regions, and take
 * thread numbers whose implicit tasks are over.  Compiled with region/region.c, history.c and
 * tickets.c.
 *
 * What it checks:
 *  - the region is over when each implicit task has been counted and each helper is outside, and
 *    not before: the master then writes what they have read, which is not atomic (ThreadSanitizer
 *    watches);
 *  - the last of them wakes a master that sleeps: a run that hangs is ended by an alarm;
 *  - no helper enters a region that is over, and none finds one over that it is inside of;
 *  - one helper at a time has a thread number, and none whose implicit task runs;
 *  - the history counts each sleep in the region, and no sleep of the master at its end.
 */
#define _GNU_SOURCE
#include "members.h"
#include "history.h"
#include "objects.h"
#include "region.h"
#include <libinvasive/base/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MASTERS = 2, WORKERS = 2, HELPERS = 2, MOST = 100, CORES = 2, HANG_S = 200 };

/* What a region's threads share; the master's while the region is closed. */
struct shared {
    struct gomp_team *team;
    unsigned nthreads;
    unsigned char runs[MOST];          /* how often each implicit task has run */
    _Atomic unsigned char taken[MOST]; /* by a helper */
    _Atomic unsigned sleeps, inside;
};

static struct shared shared[MASTERS];
static _Atomic bool over, masters_are_over;
static _Atomic unsigned long entered, refused, numbers, woken;

static _Noreturn void fail (const char *what, unsigned id)
{
    fprintf(stderr, "gate: %s (%u)\n", what, id);
    abort();
}

/* --- what the region's files call */

void gomp_unpark (int *addr, int count)
{
    (void)count;
    atomic_fetch_add_explicit(&woken, 1, memory_order_relaxed);
    inv_futex_wake((_Atomic uint32_t *)addr, 1, false);
}

void gomp_want_cores (void)
{
}

enum gomp_loops gomp_loops_near (void (*fn) (void *))
{
    (void)fn;
    return GOMP_LOOPS; /* regions go to all cores */
}

/* --- threads that are inside */

/* The calling thread is one of the region's. */
static void join_team (struct gomp_region *region)
{
    gomp_thread()->ts.team = region ? region->start.team : NULL;
}

static void sleep_inside (struct shared *of, unsigned *seed)
{
    static const int word;
    if ((unsigned)rand_r(seed) % 4)
        return;
    gomp_region_sleeps(&word);
    atomic_fetch_add_explicit(&of->sleeps, 1, memory_order_relaxed);
}

static void run (struct gomp_region *region, unsigned id, unsigned *seed)
{
    struct shared *of = region->start.data;
    if (id >= of->nthreads || of->runs[id]++)
        fail("runs twice, or is none", id);
    sleep_inside(of, seed);
}

static bool run_tickets (struct gomp_region *region, unsigned *seed)
{
    struct gomp_ended ended = {.count = 0};
    unsigned id;
    while (gomp_ticket_take(&region->tickets, INV_HOLD_NONE, ended.count > 0, &id)) {
        ended.region = region;
        join_team(region);
        run(region, id, seed);
        join_team(NULL);
        ended.count++;
        gomp_number_set(ended.numbers, id);
        if ((unsigned)rand_r(seed) % 8 == 0)
            break;
    }
    if (ended.count == 0)
        return false;
    gomp_region_count_ended(&ended);
    return true;
}

static void *worker_main (void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&masters_are_over)) {
        bool ran = false;
        for (unsigned i = 0; i < MASTERS; i++) {
            struct gomp_region *region = gomp_region_registered(i);
            ran |= region && gomp_region_has_tickets(region) && run_tickets(region, &seed);
        }
        if (!ran)
            sched_yield();
    }
    return NULL;
}

/* Inside the gate. */
static void help (struct gomp_region *region, unsigned *seed)
{
    struct shared *of = region->start.data;
    uint64_t freed[GOMP_VACANT_WORDS] = {0};
    atomic_fetch_add_explicit(&of->inside, 1, memory_order_relaxed);
    int id = gomp_number_take_vacant(region);
    if (id >= 0) {
        if ((unsigned)id >= of->nthreads || of->runs[id] != 1)
            fail("a number is vacant before its implicit task is over", (unsigned)id);
        if (atomic_exchange_explicit(&of->taken[id], 1, memory_order_relaxed))
            fail("two helpers have a number", (unsigned)id);
        atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
        join_team(region);
        sleep_inside(of, seed);
        join_team(NULL);
        atomic_store_explicit(&of->taken[id], 0, memory_order_relaxed);
        gomp_number_set(freed, (unsigned)id);
        gomp_numbers_vacate(region, freed);
    }
    atomic_fetch_sub_explicit(&of->inside, 1, memory_order_relaxed);
}

static void *helper_main (void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&masters_are_over)) {
        struct gomp_region *region = gomp_region_registered((unsigned)rand_r(&seed) % MASTERS);
        if (!region || !gomp_region_enter(region)) {
            atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
            sched_yield();
            continue;
        }
        atomic_fetch_add_explicit(&entered, 1, memory_order_relaxed);
        bool twice = (unsigned)rand_r(&seed) % 2;
        if (twice)
            gomp_region_ref(region);
        help(region, &seed);
        if (!gomp_region_is_open(region, region->epoch))
            fail("is over with a helper inside", 0);
        gomp_region_unref(region);
        if (twice) {
            help(region, &seed);
            gomp_region_unref(region);
        }
    }
    return NULL;
}

/* --- masters */

static void function_of_one (void *data)
{
    (void)data;
}

static void function_of_two (void *data)
{
    (void)data;
    atomic_signal_fence(memory_order_seq_cst);
}

static void open_region (struct gomp_region *region, struct shared *of, unsigned *seed)
{
    static const struct gomp_ticket_ways ways;
    unsigned n = 2 + (unsigned)rand_r(seed) % (MOST - 1);
    memset(of->runs, 0, sizeof of->runs);
    of->nthreads = region->start.nthreads = n;
    atomic_store_explicit(&of->sleeps, 0, memory_order_relaxed);
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        atomic_store_explicit(&region->vacant[word], 0, memory_order_relaxed);
    atomic_store_explicit(&region->epoch, region->epoch + 1, memory_order_relaxed);
    gomp_history_region_opens(region, false);
    region->inside = GOMP_INSIDE_UNKNOWN;
    atomic_store_explicit(&region->waited, false, memory_order_relaxed);
    atomic_store_explicit(&region->gate, n * GOMP_UNFINISHED_ONE + GOMP_INSIDE_ONE,
                          memory_order_release);
    gomp_tickets_open(&region->tickets, region->epoch, n, 0, ways, NULL);
}

/* As wait_for_end in task/help.c. */
static void wait_for_end (struct gomp_region *region)
{
    int word = atomic_load(&region->end_word);
    atomic_store(&region->master_waits, 1);
    if (atomic_load(&region->gate) != GOMP_INSIDE_ONE) {
        gomp_region_sleeps((int *)&region->end_word);
        inv_futex_wait((_Atomic uint32_t *)&region->end_word, (uint32_t)word, -1, false);
    }
    atomic_store(&region->master_waits, 0);
}

static void close_region (struct gomp_region *region, const struct shared *of)
{
    for (uint64_t open = GOMP_INSIDE_ONE; !atomic_compare_exchange_strong(&region->gate, &open, 0);
         open = GOMP_INSIDE_ONE)
        wait_for_end(region);
    for (unsigned id = 0; id < of->nthreads; id++)
        if (of->runs[id] != 1)
            fail("is over before an implicit task", id);
    if (atomic_load(&of->inside) > 0)
        fail("is over with a helper inside", 0);
    if (atomic_load(&region->sleeps) != atomic_load(&of->sleeps))
        fail("sleeps that are not counted", 0);
}

/* What the history has is the mean that follows from what it had. */
static void check_history (const struct gomp_region *region, uint32_t before)
{
    uint64_t now = (uint64_t)atomic_load(&region->sleeps) * GOMP_WAITS_ONE / region->start.nthreads;
    uint64_t wanted = before == 0 ? now : (3 * (uint64_t)before + now) / 4;
    const struct gomp_history *h = gomp_history_find(region->start.fn);
    bool looked = atomic_load(&region->sleeps) > 0 || region->began_ns != 0;
    if (looked && region->start.nthreads > CORES && (!h || h->waits != wanted))
        fail("the history has other sleeps", h ? h->waits : 0);
    if (atomic_load(&region->waited) && h->inside != GOMP_WAITS)
        fail("the history does not know that implicit tasks wait", 0);
}

static void *master_main (void *arg)
{
    struct shared *of = arg;
    unsigned seed = (unsigned)(of - shared) + 77;
    unsigned long regions = 0;
    while (!atomic_load(&over)) {
        struct gomp_region *region = gomp_region_alloc();
        if (!gomp_region_register(region))
            fail("no room for a region", 0);
        region->start.fn = of == shared ? function_of_one : function_of_two;
        region->start.data = of;
        region->start.team = of->team;
        region->elastic = true;
        of->team->barrier.region = region;
        const struct gomp_history *h = gomp_history_find(region->start.fn);
        uint32_t before = h ? h->waits : 0;
        open_region(region, of, &seed);
        join_team(region);
        run(region, 0, &seed);
        gomp_region_leave(region, GOMP_UNFINISHED_ONE);
        close_region(region, of);
        join_team(NULL);
        gomp_history_region_ends(region);
        check_history(region, before);
        gomp_region_free(region);
        regions++;
    }
    return (void *)regions;
}

int main (int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 2000;
    pthread_t thread[MASTERS + WORKERS + HELPERS];
    unsigned long regions = 0;
    become_member();
    add_cores(CORES, inv_own_name(), inv_own_name());
    alarm(HANG_S);
    for (int i = 0; i < MASTERS; i++)
        shared[i].team = gomp_malloc_cleared(sizeof *shared[i].team);
    for (uintptr_t i = 0; i < MASTERS + WORKERS + HELPERS; i++) {
        void *arg = i < MASTERS ? (void *)&shared[i] : (void *)i;
        void *(*helps) (void *) = i < MASTERS + WORKERS ? worker_main : helper_main;
        if (pthread_create(&thread[i], NULL, i < MASTERS ? master_main : helps, arg) != 0)
            fail("no thread", 0);
    }
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    do /* the process may have been stopped meanwhile */
        nanosleep(&time, NULL);
    while (entered < 10 || refused == 0 || numbers == 0 || woken == 0);
    atomic_store(&over, true);
    for (int i = 0; i < MASTERS; i++) {
        void *count;
        pthread_join(thread[i], &count);
        regions += (unsigned long)count;
    }
    atomic_store(&masters_are_over, true);
    for (int i = MASTERS; i < MASTERS + WORKERS + HELPERS; i++)
        pthread_join(thread[i], NULL);
    printf("gate: %lu regions, entered %lu times, refused %lu, %lu numbers, woken %lu times\n",
           regions, entered, refused, numbers, woken);
    return 0;
}
