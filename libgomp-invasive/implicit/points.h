/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * points.h - scheduling points of threads that could go on: they let implicit tasks, or threads, that need the
 * core go first.
 */
#ifndef GOMP_POINTS_H
#define GOMP_POINTS_H 1

#include <stdbool.h>

#pragma GCC visibility push(hidden)
/* A scheduling point of a thread that goes on: gives a core back that its owner asks for
 * and queues for another one. */
extern void gomp_hold_checkpoint (void);
/* A scheduling point of a thread that waits without sleeping: lets other threads compute. */
extern void gomp_yield_point (void);
/* The program calls sched_yield (struct inv_give_way.yield): a scheduling point, if implicit tasks of the function wait
 * for each other in such loops (enum gomp_yields). */
extern bool gomp_program_yields (void);
/* Would a yield point let another thread of this process run? */
extern bool gomp_others_could_run (void);
#pragma GCC visibility pop
#endif
