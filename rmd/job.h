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

#endif
