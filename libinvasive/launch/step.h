/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * step.h - the cores of a Slurm job step on this node.
 *
 * Where Slurm has no control groups (TaskPlugin=task/affinity alone), it binds each task of a step to
 * cores of the step's job, and nothing but that binding keeps the step off the cores of other jobs.
 * The tasks' parent, slurmstepd, has all cores of the node.  So the cores of the step are the union
 * of those that its tasks were bound to.
 *
 * Linked into libinvasive-process.so and into invade.
 */
#ifndef INV_STEP_H
#define INV_STEP_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

/* Does the environment say that this process is a task of a Slurm step, or descends from one? */
bool inv_step_is_ours(void);

/*
 * The CPUs of this process and of the tasks of its step on this node.  False: it is in no step, and
 * *cpus is void.  Waits for tasks that slurmstepd has not bound yet, at most a quarter of a second
 * and one read of /proc.  Thread safe.
 */
bool inv_step_cpus(struct inv_cpus *cpus);

#endif
