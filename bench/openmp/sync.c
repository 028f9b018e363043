/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sync.c - what each OpenMP construct costs beyond the work in it, in nanoseconds.
 *
 * In the manner of the EPCC suite (Bull 1999): the construct is repeated around a delay of some
 * 100 ns; the time of the same delay without the construct is taken off.  Where every
 * thread delays and there are more threads than cores, that is one delay for each thread that
 * a core has to run.
 *
 * A construct that a runtime does not do as it must is left out, with a line that says so.
 *
 * sync [--cores=N] [--sample-us=T] [--budget-ms=T] [--warm-up-ms=T] [construct ...]
 */
#include "measure.h"

#include <omp.h>

enum { STEPS = 64 };

/* Which threads execute the delay within one repeat. */
enum share { ALL_THREADS, ONE_THREAD, NO_DELAY };

static void delays(long repeats, const void *what)
{
    (void)what;
    for (long i = 0; i < repeats; i++)
        delay(STEPS);
}

static void parallel(long repeats, const void *what)
{
    (void)what;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
        delay(STEPS);
    }
}

static void for_loop(long repeats, const void *what)
{
    (void)what;
#pragma omp parallel
    for (long i = 0; i < repeats; i++) {
#pragma omp for
        for (int k = 0; k < omp_get_num_threads(); k++)
            delay(STEPS);
    }
}

static void parallel_for(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads();
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel for
        for (int k = 0; k < threads; k++)
            delay(STEPS);
    }
}

static void barrier(long repeats, const void *what)
{
    (void)what;
#pragma omp parallel
    for (long i = 0; i < repeats; i++) {
        delay(STEPS);
#pragma omp barrier
    }
}

static void single(long repeats, const void *what)
{
    (void)what;
    long count = 0;
#pragma omp parallel
    for (long i = 0; i < repeats; i++) {
#pragma omp single
        {
            delay(STEPS);
            count++;
        }
    }
    demand(count == repeats, "single");
}

static void critical(long repeats, const void *what)
{
    (void)what;
    long count = 0;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < repeats; i++) {
#pragma omp critical
        {
            delay(STEPS);
            count++;
        }
    }
    demand(count == repeats, "critical");
}

static omp_lock_t the_lock;

static void lock(long repeats, const void *what)
{
    (void)what;
    long count = 0;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < repeats; i++) {
        omp_set_lock(&the_lock);
        delay(STEPS);
        count++;
        omp_unset_lock(&the_lock);
    }
    demand(count == repeats, "lock");
}

/* Set by a construct that the runtime did not do as it must: its time means nothing. */
static const char *not_comparable;

/* Round robin, so that every iteration is handed to another thread. */
static void ordered(long repeats, const void *what)
{
    (void)what;
    long next = 0, wrong = 0, elsewhere = 0;
#pragma omp parallel for ordered schedule(static, 1)
    for (long i = 0; i < repeats; i++) {
#pragma omp ordered
        {
            delay(STEPS);
            wrong += next != i;
            elsewhere += i % omp_get_num_threads() != omp_get_thread_num();
            next = i + 1;
        }
    }
    demand(wrong == 0, "ordered");
    if (elsewhere)
        not_comparable = "iterations are not dealt out as schedule(static, 1) says";
}

static void ordered_dynamic(long repeats, const void *what)
{
    (void)what;
    long next = 0, wrong = 0;
#pragma omp parallel for ordered schedule(dynamic, 1)
    for (long i = 0; i < repeats; i++) {
#pragma omp ordered
        {
            delay(STEPS);
            wrong += next != i;
            next = i + 1;
        }
    }
    demand(wrong == 0, "ordered_dynamic");
}

/* Of a type that the hardware has no atomic addition for, or the compiler would not need
 * the runtime.  No delay. */
static void atomic(long repeats, const void *what)
{
    (void)what;
    long double sum = 0;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < repeats; i++) {
#pragma omp atomic
        sum += 1;
    }
    demand(sum == (long double)repeats, "atomic");
}

static void reduction(long repeats, const void *what)
{
    (void)what;
    long sum = 0;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel reduction(+ : sum)
        {
            delay(STEPS);
            sum += 1;
        }
    }
    demand(sum == repeats * omp_get_max_threads(), "reduction");
}

/* Each construct as the only one in a short region, in which each thread meets it once. */

static void region_barrier(long repeats, const void *what)
{
    (void)what;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
        {
            delay(STEPS);
#pragma omp barrier
        }
    }
}

static void region_single(long repeats, const void *what)
{
    (void)what;
    long count = 0;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
#pragma omp single
        {
            delay(STEPS);
            count++;
        }
    }
    demand(count == repeats, "region_single");
}

static void region_critical(long repeats, const void *what)
{
    (void)what;
    long count = 0;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
#pragma omp critical
        count++;
    }
    demand(count == repeats * omp_get_max_threads(), "region_critical");
}

static void region_lock(long repeats, const void *what)
{
    (void)what;
    long count = 0;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
        {
            omp_set_lock(&the_lock);
            count++;
            omp_unset_lock(&the_lock);
        }
    }
    demand(count == repeats * omp_get_max_threads(), "region_lock");
}

static void region_ordered(long repeats, const void *what)
{
    (void)what;
    long next = 0, wrong = 0, threads = omp_get_max_threads();
    for (long i = 0; i < repeats; i++) {
        next = 0;
#pragma omp parallel for ordered schedule(static, 1)
        for (long k = 0; k < threads; k++) {
#pragma omp ordered
            wrong += next++ != k;
        }
    }
    demand(wrong == 0, "region_ordered");
}

/* The last iteration's value of a variable is the result of a loop that computes nothing else. */

static void region_static(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads(), last = -1;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel for schedule(static, 1) lastprivate(last)
        for (int k = 0; k < threads; k++) {
            delay(STEPS);
            last = omp_get_thread_num();
        }
        demand(last == threads - 1, "region_static");
    }
}

static void region_guided(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads(), last = -1;
    for (long i = 0; i < repeats; i++, last = -1) {
#pragma omp parallel for schedule(guided) lastprivate(last)
        for (int k = 0; k < threads; k++) {
            delay(STEPS);
            last = k;
        }
        demand(last == threads - 1, "region_guided");
    }
}

static void region_dynamic(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads();
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int k = 0; k < threads; k++)
            delay(STEPS);
    }
}

static void region_tasks(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads();
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel
#pragma omp single
        for (int k = 0; k < threads; k++) {
#pragma omp task
            delay(STEPS);
        }
    }
}

static void region_taskloop(long repeats, const void *what)
{
    (void)what;
    int threads = omp_get_max_threads(), last = -1;
    for (long i = 0; i < repeats; i++, last = -1) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1) lastprivate(last)
        for (int k = 0; k < threads; k++) {
            delay(STEPS);
            last = k;
        }
        demand(last == threads - 1, "region_taskloop");
    }
}

static void region_sections(long repeats, const void *what)
{
    (void)what;
    long first = 0, second = 0;
    for (long i = 0; i < repeats; i++) {
#pragma omp parallel sections
        {
#pragma omp section
            first++;
#pragma omp section
            second++;
        }
    }
    demand(first == repeats && second == repeats, "region_sections");
}

/* With more threads than cores, one that spins for its turn may keep the core that the thread whose
 * turn it is waits for, until the kernel takes it away.  Such a row would take minutes. */
static void region_doacross(long repeats, const void *what)
{
    (void)what;
    const double patience_ns = 1e7;
    long next = 0, wrong = 0, threads = omp_get_max_threads();
    double start = now_ns();
    if (not_comparable)
        return;
    for (long i = 0; i < repeats; i++) {
        next = 0;
#pragma omp parallel for ordered(1) schedule(static, 1)
        for (long k = 0; k < threads; k++) {
#pragma omp ordered depend(sink : k - 1)
            wrong += next++ != k;
#pragma omp ordered depend(source)
        }
    }
    demand(wrong == 0, "region_doacross");
    if (threads > omp_get_num_procs() && now_ns() - start > patience_ns * (double)repeats)
        not_comparable = "threads that wait keep cores for whole time slices";
}

static const struct construct {
    const char *name;
    sample_fn fn;
    enum share share;
} constructs[] = {
    {"parallel", parallel, ALL_THREADS},
    {"for", for_loop, ALL_THREADS},
    {"parallel_for", parallel_for, ALL_THREADS},
    {"barrier", barrier, ALL_THREADS},
    {"single", single, ONE_THREAD},
    {"critical", critical, ONE_THREAD},
    {"lock", lock, ONE_THREAD},
    {"ordered", ordered, ONE_THREAD},
    {"ordered_dynamic", ordered_dynamic, ONE_THREAD},
    {"atomic", atomic, NO_DELAY},
    {"reduction", reduction, ALL_THREADS},
    {"region_barrier", region_barrier, ALL_THREADS},
    {"region_single", region_single, ONE_THREAD},
    {"region_critical", region_critical, NO_DELAY},
    {"region_lock", region_lock, NO_DELAY},
    {"region_ordered", region_ordered, NO_DELAY},
    {"region_static", region_static, ALL_THREADS},
    {"region_guided", region_guided, ALL_THREADS},
    {"region_dynamic", region_dynamic, ALL_THREADS},
    {"region_tasks", region_tasks, ALL_THREADS},
    {"region_taskloop", region_taskloop, ALL_THREADS},
    {"region_sections", region_sections, NO_DELAY},
    {"region_doacross", region_doacross, NO_DELAY},
};

int main(int argc, char **argv)
{
    int cores = (int)option(argc, argv, "--cores", 2), threads = omp_get_max_threads();
    struct sampling how = {.sample_ns = 1e3 * option(argc, argv, "--sample-us", 500),
                           .budget_ns = 1e6 * option(argc, argv, "--budget-ms", 60)};
    int rounds = cores > 0 ? (threads + cores - 1) / cores : 1;
    warm_up(option(argc, argv, "--warm-up-ms", 100));
    omp_init_lock(&the_lock);
    for (size_t i = 0; i < sizeof constructs / sizeof constructs[0]; i++) {
        const struct construct *c = &constructs[i];
        if (!chosen(argc, argv, c->name))
            continue;
        double before_ns = handover_ns(cores);
        double delay_ns = stable_ns(delays, NULL, how);
        not_comparable = NULL;
        double took_ns = stable_ns(c->fn, NULL, how);
        double in_it_ns[] = {rounds * delay_ns, delay_ns, 0};
        if (not_comparable)
            printf("%s left out: %s\n", c->name, not_comparable);
        else
            print_row(c->name, took_ns - in_it_ns[c->share], before_ns, handover_ns(cores));
    }
    omp_destroy_lock(&the_lock);
    return 0;
}
