/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * places.c - which place each thread number of a team gets (OpenMP 5.1, section 2.6.2,
 * "Controlling OpenMP Thread Affinity"), in closed form, so that whichever kernel thread
 * becomes thread number i computes it by itself.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "places.h"
#include "region.h"
#include "proc.h"
#include <pthread.h>

/* Index of group i when `items` are cut into groups, the first `rest` of them of
 * size + 1 and the others of size: the start of group i. */
static unsigned group_start (unsigned i, unsigned size, unsigned rest)
{
    return i * size + (i < rest ? i : rest);
}

/* More threads than places: so many in each place, in order; the rest one by one again
 * from the first. */
static unsigned packed_index (unsigned id, unsigned nthreads, unsigned places)
{
    unsigned each = nthreads / places, rest = nthreads % places;
    return id < nthreads - rest ? id / each : id - (nthreads - rest);
}

static struct gomp_place_choice spread_place (const struct gomp_region_start *s, unsigned id)
{
    unsigned places = s->partition_len, off = s->partition_off;
    unsigned master = s->master_place - 1 - off;
    if (s->nthreads > places) {
        unsigned p = off + (master + packed_index(id, s->nthreads, places)) % places;
        return (struct gomp_place_choice){p + 1, p, 1};
    }
    unsigned size = places / s->nthreads, rest = places % s->nthreads;
    unsigned mine = master < rest * (size + 1) ? master / (size + 1)
                                               : rest + (master - rest * (size + 1)) / size;
    unsigned group = (mine + id) % s->nthreads;
    unsigned start = off + group_start(group, size, rest);
    return (struct gomp_place_choice){id == 0 ? s->master_place : start + 1, start,
                                      size + (group < rest)};
}

struct gomp_place_choice gomp_place_of (const struct gomp_region_start *s, unsigned id)
{
    struct gomp_place_choice same = {s->master_place, s->partition_off, s->partition_len};
    switch (s->bind) {
    case omp_proc_bind_true:
    case omp_proc_bind_close: {
        unsigned places = s->partition_len, i = id;
        if (s->nthreads > places)
            i = packed_index(id, s->nthreads, places);
        same.place = s->partition_off + (s->master_place - 1 - s->partition_off + i) % places + 1;
        return same;
    }
    case omp_proc_bind_spread:
        return spread_place(s, id);
    case omp_proc_bind_master:
        return same;
    default:
        same.place = 0;
        return same;
    }
}

void gomp_bind_self (unsigned place)
{
    if (place > 0)
        pthread_setaffinity_np(pthread_self(), gomp_cpuset_size,
                               (cpu_set_t *)gomp_places_list[place - 1]);
}
