/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * iter.c - upstream's claiming of chunks, with a scheduling point before each claim for
 * which the thread holds no lock.
 */
#include "loops.h"

#define gomp_iter_dynamic_next upstream_iter_dynamic_next
#define gomp_iter_guided_next upstream_iter_guided_next
static bool upstream_iter_dynamic_next (long *, long *);
static bool upstream_iter_guided_next (long *, long *);
#include <../libgomp/iter.c>
#undef gomp_iter_dynamic_next
#undef gomp_iter_guided_next

bool gomp_iter_dynamic_next (long *pstart, long *pend)
{
    gomp_loop_checkpoint();
    return upstream_iter_dynamic_next(pstart, pend);
}

bool gomp_iter_guided_next (long *pstart, long *pend)
{
    gomp_loop_checkpoint();
    return upstream_iter_guided_next(pstart, pend);
}
