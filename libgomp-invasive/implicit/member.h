/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * member.h - a thread becomes a thread number of a region's team, and runs that one's implicit task.
 */
#ifndef GOMP_MEMBER_H
#define GOMP_MEMBER_H 1

#include "region.h"

#pragma GCC visibility push(hidden)
/* Make the calling thread thread number `id` of the region; and of none. */
extern void gomp_member_become (struct gomp_region *, unsigned id);
extern void gomp_member_forget (void);
/* The place of thread number `id`, which the caller is.  If the thread holds a core, that core gives the place. */
extern void gomp_member_take_place (struct gomp_region *, unsigned id);
/* The thread is a member already: run the implicit task of its number. */
extern void gomp_member_run (struct gomp_region *, unsigned id);
/* Take an implicit task that no thread has started, and run it; `first`: the thread has run none of
 * the region that is not counted done.  False: there is none. */
extern bool gomp_member_run_next (struct gomp_region *, bool first, unsigned *id);
#pragma GCC visibility pop
#endif
