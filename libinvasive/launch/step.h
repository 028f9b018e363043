/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * step.h - the cores of a Slurm job step on this node.
 *
 * Where Slurm has no control groups (TaskPlugin=task/affinity alone), it binds each task of a step to
 * cores of the step's job, and nothing but that binding keeps the step off the cores of other jobs.
 * Their parent, slurmstepd, has all cores of the node.  So the cores of the step are the union of
 * what its tasks were bound to.
 *
 * Linked into libinvasive-process.so and into invade.
 */
#ifndef INV_STEP_H
#define INV_STEP_H

#include "libinvasive/base/cpus.h"

#include <stdbool.h>

/* Is this process of a step?  By its environment. */
bool inv_step_is_ours(void);

/*
 * The CPUs of the tasks of this process's step that are on this node, and of this process.  False: it
 * is in no step, *cpus void.  Waits for tasks that slurmstepd has not bound yet, a quarter of a
 * second and one look at /proc at most.  Thread safe.
 */
bool inv_step_cpus(struct inv_cpus *cpus);

#endif
