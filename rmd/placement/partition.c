/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * partition.c - partitioned scheduling of the processes, by the rule "longest processing time
 * first": the process with the largest load goes to the core with the least so far (Graham 1969,
 * doi:10.1137/0117039).  Of cores with the same load a process prefers the one where it is.
 *
 * Without an even division the kernel's own placement is better: it moves threads in time.
 */
#include "rmd/placement/partition.h"
#include "libinvasive/base/assertion.h"

#include <math.h>
#include <stdbool.h>

enum { MOST_CORES = 1024 };
static const double EVEN = 1.1; /* times the mean: the most that a core may have */
static const double ALIKE = 1e-9;

static bool is_known(double load) { return load > 0 && isfinite(load); }

static bool is_valid(int core, unsigned cores) { return core >= 0 && (unsigned)core < cores; }

static double sum_of(const double *load, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += is_known(load[i]) ? load[i] : NAN;
    return sum;
}

/* The largest load of a core; infinite where a process is nowhere. */
static double largest_load(const double *load, unsigned n, unsigned cores, const int *core)
{
    double on[MOST_CORES] = {0}, most = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!is_valid(core[i], cores))
            return INFINITY;
        on[core[i]] += load[i];
        most = fmax(most, on[core[i]]);
    }
    return most;
}

/* Larger loads first, by insertion: n is a few hundred at most. */
static void sort_by_load(const double *load, unsigned n, unsigned *order)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned k = i;
        for (; k > 0 && load[order[k - 1]] < load[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static unsigned least_loaded_core(const double *on, unsigned cores, int prefers)
{
    unsigned best = 0;
    inv_assert(cores > 0 && cores <= MOST_CORES);
    for (unsigned c = 1; c < cores; c++)
        if (on[c] < on[best])
            best = c;
    bool stays = is_valid(prefers, cores) && on[prefers] <= on[best] * (1 + ALIKE);
    return stays ? (unsigned)prefers : best;
}

static void assign_longest_first(const double *load, unsigned n, unsigned cores, int *core,
                                 unsigned *order)
{
    double on[MOST_CORES] = {0};
    sort_by_load(load, n, order);
    for (unsigned i = 0; i < n; i++) {
        unsigned process = order[i];
        inv_assert(process < n);
        core[process] = (int)least_loaded_core(on, cores, core[process]);
        on[core[process]] += load[process];
    }
}

void rmd_partition(const double *load, unsigned n, unsigned cores, int *core, unsigned *order)
{
    cores = cores < MOST_CORES ? cores : MOST_CORES;
    double most = EVEN * sum_of(load, n) / cores; /* not a number: a load is unknown */
    if (most > 0 && largest_load(load, n, cores, core) <= most)
        return;
    if (most > 0)
        assign_longest_first(load, n, cores, core, order);
    if (most > 0 && largest_load(load, n, cores, core) <= most)
        return;
    for (unsigned i = 0; i < n; i++)
        core[i] = RMD_NO_PART;
}
