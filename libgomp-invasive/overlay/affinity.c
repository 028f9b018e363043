/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * affinity.c - lists of places: upstream's; but loading the library binds nothing (use.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "libgomp.h"
#define gomp_init_affinity upstream_init_affinity
#include <config/linux/affinity.c>
#undef gomp_init_affinity

/* The list is there from the beginning; threads take their place when they need it. */
void gomp_init_affinity (void)
{
    if (gomp_places_list == NULL && !gomp_affinity_init_level(1, ULONG_MAX, true))
        return;
    if (gomp_use_loading())
        return;
    gomp_default_icv(); /* to ask for places is a use of OpenMP */
    gomp_take_first_place();
}
