/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * run.h - implicit tasks that no thread has started, as a source of work: for free workers, and for the
 * master at the end of its region.
 */
#ifndef GOMP_RUN_H
#define GOMP_RUN_H 1

#include "region.h"
#include "work_source.h"

#pragma GCC visibility push(hidden)
/* The source of work for free workers (work_source.h). */
extern const struct gomp_work_source gomp_implicit_tasks;
/* Should the caller, the region's master, start implicit tasks itself?  Not while another thread
 * waits for its core. */
extern bool gomp_master_has_work (struct gomp_region *);
/* The master runs implicit tasks that no thread has started, as long as gomp_master_has_work says
 * so. */
extern void gomp_master_share (struct gomp_region *);
#pragma GCC visibility pop
#endif
