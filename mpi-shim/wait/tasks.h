/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* tasks.h - tasks in waits (tasks.c). */
#ifndef SHIM_TASKS_H
#define SHIM_TASKS_H

#include "mpi-shim/wait/wait.h"

#pragma GCC visibility push(hidden)

/* Sets shim_world.tasks_wanted, from the environment.  Called in set-up. */
void shim_tasks_start(void);
/* Waits until done(), and runs tasks meanwhile.  False, at once: no OpenMP runtime offers tasks. */
bool shim_tasks_wait(struct shim_wait *w, const void *call_site);

#pragma GCC visibility pop
#endif
