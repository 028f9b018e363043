/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * run.h - implicit tasks that no thread has started, as a source of work: for free workers, and for the
 * master at the end of its region.
 */
#ifndef GOMP_RUN_H
#define GOMP_RUN_H 1

#include "region.h"
#include "source.h"

#pragma GCC visibility push(hidden)
extern const struct gomp_source gomp_implicit_tasks;
/* Is there something that the region's master, the caller, should begin itself? */
extern bool gomp_master_has_work (struct gomp_region *);
/* It runs implicit tasks that no thread has started, as long as the core is its own to do so. */
extern void gomp_master_share (struct gomp_region *);
#pragma GCC visibility pop
#endif
