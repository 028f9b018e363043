/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* tune.c - see tune.h. */
#include "libinvasive/base/tune.h"
#include "libinvasive/base/assertion.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SAMPLES = 5,
    WIDE = 4,   /* if high / low is at least this, values differ by a factor, else by a step */
    SELDOM = 10, /* iterations between two searches, over those of the search before */
};
/* A value is better than the best one if its median is below WORTH times the best's, and the
 * difference is more than twice the errors of both.  It is clearly worse, with few samples, above
 * CLEARLY times the best's.  A median with a relative error of at most EXACT needs no more
 * samples. */
static const double WORTH = 0.99, CLEARLY = 1.5, EXACT = 0.005;
/* Times have changed for good after two blocks of samples whose medians differ by at least this
 * factor. */
static const double CHANGED = 1.2;

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_of(const uint64_t *times, unsigned count)
{
    uint64_t sorted[INV_TUNE_SAMPLES];
    inv_assert(count > 0 && count <= INV_TUNE_SAMPLES);
    memcpy(sorted, times, count * sizeof *times);
    qsort(sorted, count, sizeof *sorted, compare_times);
    return ((double)sorted[(count - 1) / 2] + (double)sorted[count / 2]) / 2;
}

/* The standard error of the median, by the median deviation from it. */
static double error_of(const struct inv_tune *t, double median)
{
    uint64_t deviation[INV_TUNE_SAMPLES];
    for (unsigned i = 0; i < t->samples; i++) {
        double d = (double)t->sample[i] - median;
        deviation[i] = (uint64_t)(d < 0 ? -d : d);
    }
    double spread = 1.86 * median_of(deviation, t->samples); /* of a normal distribution */
    unsigned root = 1;
    while ((root + 1) * (root + 1) <= t->samples)
        root++;
    return spread / root;
}

/* --- values */

/* Values from low to high, each the one before times `factor` plus `stride`, but at least 1 more.  Returns
 * how many there are, also of those without room. */
static unsigned fill_values(struct inv_tune *t, int low, int high, double factor, double stride)
{
    double next = low;
    long long v = low;
    for (unsigned n = 0;; n++) {
        if (n < INV_TUNE_VALUES)
            t->value[n] = (int)v;
        if (v >= high)
            return n + 1;
        next = next * factor + stride;
        long long rounded = low + (long long)(next - low + 0.5);
        v = rounded > v ? rounded : v + 1;
        next = v > next ? (double)v : next;
        v = v < high ? v : high;
    }
}

void inv_tune_begin(struct inv_tune *t, int low, int high, int own)
{
    inv_assert(low <= high);
    *t = (struct inv_tune){.searches = 1, .side = 1};
    own = own < low ? low : own > high ? high : own;
    double factor = 1, stride = ((double)high - low) / (INV_TUNE_VALUES - 1);
    if (low > 0 && high / low >= WIDE)
        for (stride = 0; fill_values(t, low, high, factor, 0) > INV_TUNE_VALUES;)
            factor += 0.01;
    t->count = fill_values(t, low, high, factor, stride);
    inv_assert(t->count <= INV_TUNE_VALUES);
    for (unsigned i = 1; i < t->count; i++)
        if (llabs((long long)t->value[i] - own) <= llabs((long long)t->value[t->first] - own))
            t->first = i;
    t->value[t->first] = own;
    t->at = t->best = t->first;
    t->step = t->count / 2;
}

void inv_tune_begin_list(struct inv_tune *t, const int *values, unsigned count, int own)
{
    inv_assert(count > 0 && count <= INV_TUNE_VALUES);
    *t = (struct inv_tune){.searches = 1, .side = 1, .count = count, .confirms = true};
    memcpy(t->value, values, count * sizeof *values);
    while (t->value[t->first] != own && t->first + 1 < count)
        t->first++;
    inv_assert(t->value[t->first] == own);
    t->at = t->best = t->first;
    t->step = count / 2;
}

/* --- the search */

static void use(struct inv_tune *t, unsigned index)
{
    t->at = index;
    t->samples = 0;
    t->warm = false;
}

/* A neighbour of the best that has not been tried.  False: there is none at this step. */
static bool try_neighbour(struct inv_tune *t)
{
    for (int turn = 0; turn < 2; turn++, t->side = -t->side) {
        int next = (int)t->best + t->side * (int)t->step;
        if (next < 0 || next >= (int)t->count || t->median_ns[next] > 0)
            continue;
        use(t, (unsigned)next);
        return true;
    }
    return false;
}

static void narrow_search(struct inv_tune *t)
{
    for (; t->step; t->step /= 2)
        if (try_neighbour(t))
            return;
    if (t->confirms && t->best != t->first) {
        t->confirms = false;
        t->again = true;
        use(t, t->first);
        return;
    }
    use(t, t->best);
    t->settled = true;
    t->since = 0;
    t->usual_ns = 0;
    t->unusual = 0;
}

/* Judges the value in use by the median time of its iterations, and that median's error (ns). */
static void judge(struct inv_tune *t, double median, double error)
{
    double best = t->median_ns[t->best];
    bool better = median < WORTH * best && best - median > 2 * (error + t->error_ns);
    if (t->again) { /* is the program's own value no worse after all? */
        bool clear = median > CLEARLY * best;
        better = !clear && (best > WORTH * median || median - best < 2 * (error + t->error_ns));
        t->again = false;
    }
    t->median_ns[t->at] = median;
    if (t->at == t->best || better) {
        t->best = t->at;
        t->error_ns = error;
    }
    inv_assert(t->median_ns[t->best] > 0);
    narrow_search(t);
}

static bool search_on(struct inv_tune *t)
{
    double median = median_of(t->sample, t->samples), best = t->median_ns[t->best];
    double error = error_of(t, median);
    bool clear = t->samples >= 2 && best > 0 && median > CLEARLY * best;
    if (!clear && (t->samples < LEAST_SAMPLES ||
                   (t->samples < INV_TUNE_SAMPLES && error > EXACT * median)))
        return false;
    judge(t, median > 0 ? median : 1, error);
    return true;
}

static void search_again(struct inv_tune *t)
{
    memset(t->median_ns, 0, sizeof t->median_ns);
    t->step = t->count / 2;
    t->settled = false;
    t->searching = 0;
    t->searches++;
    use(t, t->best);
}

/* Judges a block of iterations after the search is over.  True: something has changed. */
static bool watch(struct inv_tune *t)
{
    double median = median_of(t->sample, t->samples);
    t->samples = 0;
    bool usual = t->usual_ns > 0 && median < CHANGED * t->usual_ns && t->usual_ns < CHANGED * median;
    t->unusual = usual || !(t->usual_ns > 0) ? 0 : t->unusual + 1;
    if (t->usual_ns > 0 && t->unusual < 2)
        return false;
    bool again = t->unusual && t->count > 1 && t->since > SELDOM * t->searching;
    t->usual_ns = t->median_ns[t->at] = median > 0 ? median : 1;
    t->unusual = 0;
    if (again)
        search_again(t);
    return true;
}

bool inv_tune_add(struct inv_tune *t, uint64_t ns)
{
    t->iterations[t->at]++;
    *(t->settled ? &t->since : &t->searching) += 1;
    if (!t->warm) {
        t->warm = true;
        return false;
    }
    t->sample[t->samples++] = ns;
    if (!t->settled)
        return search_on(t);
    return t->samples == INV_TUNE_SAMPLES && watch(t);
}
