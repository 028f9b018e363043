/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * iter_ull.c - upstream's claiming of chunks of unsigned long long loops, with a scheduling point
 * before each claim for which the thread holds no lock.
 */
#include "loops.h"

#define gomp_iter_ull_dynamic_next upstream_iter_ull_dynamic_next
#define gomp_iter_ull_guided_next upstream_iter_ull_guided_next
static bool upstream_iter_ull_dynamic_next (unsigned long long *, unsigned long long *);
static bool upstream_iter_ull_guided_next (unsigned long long *, unsigned long long *);
#include <../libgomp/iter_ull.c>
#undef gomp_iter_ull_dynamic_next
#undef gomp_iter_ull_guided_next

bool gomp_iter_ull_dynamic_next (unsigned long long *pstart, unsigned long long *pend)
{
    gomp_loop_checkpoint();
    return upstream_iter_ull_dynamic_next(pstart, pend);
}

bool gomp_iter_ull_guided_next (unsigned long long *pstart, unsigned long long *pend)
{
    gomp_loop_checkpoint();
    return upstream_iter_ull_guided_next(pstart, pend);
}
