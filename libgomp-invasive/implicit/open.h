/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * open.h - the master opens a region: how its implicit tasks are handed out, and which cores are called.
 */
#ifndef GOMP_OPEN_H
#define GOMP_OPEN_H 1

#include "region.h"

#pragma GCC visibility push(hidden)
/* The master opens the region, whose `start` it has filled in.
 *   elastic  any thread may take an implicit task, by ticket; else each is assigned to a bound
 * worker */
extern void gomp_region_open (struct gomp_region *, bool elastic);
/* May implicit tasks run in contexts in this process? */
extern bool gomp_regions_may_be_light (void);
#pragma GCC visibility pop
#endif
