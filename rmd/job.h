/* SPDX-License-Identifier: GPL-3.0-or-later */
/* job.h - which processes of a user belong together. */
#ifndef RMD_JOB_H
#define RMD_JOB_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The job of a process: its launch, where `invade` started it (INVASIVE_LAUNCH in the environment
 * that the process was given), else its session.  The user chooses both, so it tells jobs of one
 * user apart, and never users.  0 when the process has gone.
 */
uint64_t rmd_job_of(pid_t pid);

/*
 * The same in the ranks that one mpiexec (or srun) has on this node, another one in those of
 * another, though one invade may have started both, and though each rank may have an invade, and a
 * session, of its own: by what MPI's launchers put into the environment.  Where there is nothing of
 * that, by the launch that INVASIVE_LAUNCH names.  0: no word of either.
 */
uint64_t rmd_mpiexec_of(pid_t pid);

#endif
