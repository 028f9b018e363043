/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * work_source.c - see work_source.h.
 */
#include "work_source.h"
#include <stddef.h>

bool gomp_work_source_has_none (void)
{
    return false;
}

static bool run_none (enum gomp_run which)
{
    (void)which;
    return false;
}

void gomp_work_source_keeps_none (void)
{
}

void gomp_work_source_ignores (const int *addr)
{
    (void)addr;
}

static const struct gomp_work_source none = {.waits = gomp_work_source_has_none,
                                             .in_sight = gomp_work_source_has_none,
                                             .unstarted = gomp_work_source_has_none,
                                             .unheld_may_run = gomp_work_source_has_none,
                                             .asks_for_unstarted = gomp_work_source_has_none,
                                             .run = run_none,
                                             .publish = gomp_work_source_has_none,
                                             .sleeps = gomp_work_source_ignores,
                                             .rest = gomp_work_source_keeps_none,
                                             .leave = gomp_work_source_keeps_none,
                                             .in_use = gomp_work_source_has_none};

struct gomp_work_sources gomp_work_sources = {&none, &none};

void gomp_work_sources_set (const struct gomp_work_source *of_implicit, const struct gomp_work_source *of_explicit)
{
    gomp_work_sources = (struct gomp_work_sources){of_implicit, of_explicit};
}
