/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workers.h - free workers: kernel threads that run any work that there is while they hold a core, and
 * are parked while they hold none.
 */
#ifndef GOMP_WORKERS_H
#define GOMP_WORKERS_H 1

#pragma GCC visibility push(hidden)
/* When the library is loaded: free workers that are started execute the loop. */
extern void gomp_workers_loaded (void);
#pragma GCC visibility pop
#endif
