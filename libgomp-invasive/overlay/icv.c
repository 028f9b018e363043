/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * icv.c - internal control variables: upstream's functions, of which four concern the default size
 * of teams.  The size is decided when the program first asks for it.  A program that has enabled
 * nested regions by then gets teams no larger than the cores: each thread of a large team would
 * begin a large team.
 */
#include "libgomp.h"
#include "parallel.h"
/* As omp.h declares them, for upstream's aliases. */
extern int upstream_get_max_threads (void) __attribute__((nothrow));
extern void upstream_set_num_threads (int) __attribute__((nothrow));
extern void upstream_set_nested (int) __attribute__((nothrow));
extern void upstream_set_max_active_levels (int) __attribute__((nothrow));
#define omp_get_max_threads upstream_get_max_threads
#define omp_set_num_threads upstream_set_num_threads
#define omp_set_nested upstream_set_nested
#define omp_set_max_active_levels upstream_set_max_active_levels
#include <../libgomp/icv.c>
#undef omp_get_max_threads
#undef omp_set_num_threads
#undef omp_set_nested
#undef omp_set_max_active_levels

/* Defined here, where upstream's own aliases of these names find them. */
int omp_get_max_threads (void)
{
    gomp_ensure_default_team();
    if (__builtin_expect(gomp_team_settings.tuned, 0))
        gomp_tuned_team_is_told();
    return upstream_get_max_threads();
}

/* From here on the program itself has chosen the thread's team size. */
void omp_set_num_threads (int n)
{
    upstream_set_num_threads(n);
    gomp_icv(true)->size_is_asked_for = true;
    if (gomp_thread()->ts.level == 0)
        gomp_team_default_known = true;
}

static void levels_have_changed (void)
{
    if (!gomp_team_default_known && gomp_thread()->ts.level == 0 &&
        gomp_icv(false)->max_active_levels_var > 1)
        gomp_decide_default_team(GOMP_TEAM_SMALL);
}

void omp_set_nested (int nested)
{
    upstream_set_nested(nested);
    levels_have_changed();
}

void omp_set_max_active_levels (int levels)
{
    upstream_set_max_active_levels(levels);
    levels_have_changed();
}
