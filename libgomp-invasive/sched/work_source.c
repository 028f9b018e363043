/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * source.c - see source.h.
 */
#include "source.h"
#include <stddef.h>

bool gomp_source_has_none (void)
{
    return false;
}

static bool run_none (enum gomp_run which)
{
    (void)which;
    return false;
}

void gomp_source_keeps_none (void)
{
}

void gomp_source_ignores (const int *addr)
{
    (void)addr;
}

static const struct gomp_source none = {.waits = gomp_source_has_none,
                                        .in_sight = gomp_source_has_none,
                                        .unstarted = gomp_source_has_none,
                                        .unheld_may_run = gomp_source_has_none,
                                        .asks_for_unstarted = gomp_source_has_none,
                                        .run = run_none,
                                        .publish = gomp_source_has_none,
                                        .sleeps = gomp_source_ignores,
                                        .rest = gomp_source_keeps_none,
                                        .leave = gomp_source_keeps_none,
                                        .in_use = gomp_source_has_none};

struct gomp_sources gomp_sources = {&none, &none};

void gomp_sources_set (const struct gomp_source *of_implicit, const struct gomp_source *of_explicit)
{
    gomp_sources = (struct gomp_sources){of_implicit, of_explicit};
}
