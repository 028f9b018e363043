/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * member.h - a thread becomes a thread number of a region's team, and runs that one's implicit task.
 */
#ifndef GOMP_MEMBER_H
#define GOMP_MEMBER_H 1

#include "region.h"

#pragma GCC visibility push(hidden)
/* The calling thread becomes thread number `id` of the region's team. */
extern void gomp_member_become (struct gomp_region *, unsigned id);
/* The calling thread belongs to no team any more. */
extern void gomp_member_forget (void);
/* The place of thread number `id`, which the caller is.  If the thread holds a core, that core gives the place. */
extern void gomp_member_take_place (struct gomp_region *, unsigned id);
/* The thread is a member already: run the implicit task of its number. */
extern void gomp_member_run (struct gomp_region *, unsigned id);
/* Take an implicit task that no thread has started, and run it; its number goes to *id.
 *   first  the caller has run no implicit task of the region except those that are counted as done
 * False: there is none. */
extern bool gomp_member_run_next (struct gomp_region *, bool first, unsigned *id);
#pragma GCC visibility pop
#endif
