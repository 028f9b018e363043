/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * regions.c - what it costs to enter and leave a parallel region, and to meet at barriers inside: an
 * empty one, or one with work of a certain length, over and over, with the team size that
 * OMP_NUM_THREADS says; or of nested regions, of which each thread of a region begins one.  Plain
 * OpenMP.  Prints the median of some batches, so that a batch that was interrupted does not count.
 */
#include <argp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 15 };

struct options {
    double batch_ms; /* about how long a batch goes on */
    int barriers;    /* barriers inside the region */
    double work_us;  /* of all threads between two of them, on both of two cores */
    int nested;      /* threads of the region that each thread begins inside; 0: none */
    double pause_us; /* in which the initial thread computes alone, before each region */
};

static const struct argp_option option_table[] = {
    {"batch-ms", 'm', "MS", 0, "Length of each of the 15 batches (default 20)", 0},
    {"barriers", 'b', "N", 0, "Barriers inside the region (default 0)", 0},
    {"work-us", 'w', "US", 0, "Work before, between and after the barriers: each thread has 2/N of it "
                              "(default 0)", 0},
    {"nested", 'n', "N", 0, "Each thread of a region begins a nested region of N threads, which has the "
                            "barriers and the work (default 0: none)", 0},
    {"pause-us", 'p', "US", 0, "Work of the initial thread alone before each region, which is not counted "
                               "(default 0)", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    char *end = NULL;
    switch (key) {
    case 'm':
        o->batch_ms = strtod(arg, &end);
        break;
    case 'b':
        o->barriers = (int)strtol(arg, &end, 10);
        break;
    case 'w':
        o->work_us = strtod(arg, &end);
        break;
    case 'n':
        o->nested = (int)strtol(arg, &end, 10);
        break;
    case 'p':
        o->pause_us = strtod(arg, &end);
        break;
    case ARGP_KEY_ARG:
        argp_usage(state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (end == arg || *end || !(o->batch_ms > 0) || o->barriers < 0 || o->nested < 0 ||
        !(o->work_us >= 0) || !(o->pause_us >= 0))
        argp_error(state, "'%s' is not a number, or too small", arg);
    return 0;
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void work(double seconds)
{
    if (seconds <= 0)
        return;
    double end = now_s() + seconds;
    while (now_s() < end)
        ;
}

/* What each thread of a team does. */
static void meet_and_work(const struct options *o, double mine_s)
{
    work(mine_s);
    for (int b = 0; b < o->barriers; b++) {
#pragma omp barrier
        work(mine_s);
    }
    __asm__ volatile("" ::: "memory");
}

/* What the regions of a batch take, without the pauses. */
static double batch_s(long regions, const struct options *o)
{
    double start = now_s(), paused = 0;
    for (long i = 0; i < regions; i++) {
        if (o->pause_us > 0) {
            double before = now_s();
            work(1e-6 * o->pause_us);
            paused += now_s() - before;
        }
#pragma omp parallel
        {
            double mine_s = 2e-6 * o->work_us / omp_get_num_threads();
            if (o->nested == 0)
                meet_and_work(o, mine_s);
            else {
#pragma omp parallel num_threads(o->nested)
                meet_and_work(o, mine_s / omp_get_num_threads());
            }
        }
    }
    return now_s() - start - paused;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct options o = {.batch_ms = 20};
    const struct argp argp = {.options = option_table, .parser = parse_option,
                              .doc = "Cost of a parallel region and of barriers inside."};
    argp_parse(&argp, argc, argv, 0, NULL, &o);

    if (o.nested > 0)
        omp_set_max_active_levels(2);
    long regions = 16;
    double t = batch_s(regions, &o); /* makes the threads */
    while ((t = batch_s(regions, &o)) * 1e3 < o.batch_ms)
        regions = t * 1e3 < o.batch_ms / 10 ? regions * 4 : regions * 2;

    double us[BATCHES];
    for (int i = 0; i < BATCHES; i++)
        us[i] = batch_s(regions, &o) / (double)regions * 1e6;
    qsort(us, BATCHES, sizeof us[0], ascending);
    printf("regions: %d threads, %d batches of %ld regions\nus_per_region %.4f\nus_min %.4f\n",
           omp_get_max_threads(), BATCHES, regions, us[BATCHES / 2], us[0]);
    printf("us_above %.4f\n", us[BATCHES / 2] - o.work_us * (o.barriers + 1));
    return 0;
}
