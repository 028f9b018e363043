/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * launch.h - one resource manager for each node of a launch.
 *
 * `invade` starts rmd on the node where it runs.  Ranks on another node find none there: the
 * first of them starts one.  What it needs for that travels with the environment of the ranks,
 * in one variable:
 *
 *   INVASIVE_LAUNCH=NAME/HOME/WORD/WORD...
 *
 *   NAME    of the abstract socket of every rmd that is started so, without '@'.  Abstract
 *           sockets belong to a network namespace, so the same name serves every node, and
 *           the process that binds it starts rmd
 *   HOME    inv_node_id of the node on which invade itself has started an rmd; 0: on none
 *   WORD    a word of rmd's command line, without a slash
 *
 * Linked into libinvasive-process.so and into invade.
 */
#ifndef INV_LAUNCH_H
#define INV_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INV_LAUNCH_WORDS = 16, INV_LAUNCH_BYTES = 4096 };

struct inv_launch {
    char socket[108]; /* "@NAME" */
    uint64_t node;    /* HOME */
    int nwords;
    const char *word[INV_LAUNCH_WORDS]; /* in text */
    char text[INV_LAUNCH_BYTES];
};

/* Parses `text`, the value of INVASIVE_LAUNCH.  False, and *launch void, when it is NULL or
 * malformed. */
bool inv_launch_parse(struct inv_launch *launch, const char *text);

/* A number for this boot of the machine's kernel, to be hashed with more (hash.h). */
uint64_t inv_boot_hash(void);

/* A number for this node: for the running kernel and the network namespace.  Never 0. */
uint64_t inv_node_id(void);

/*
 * Writes a name of this process's MPI job, of at most bytes - 1 letters, digits and dashes: the
 * same in all ranks of the job on this node.  False when there is no job, or none that can be told
 * from other jobs.
 */
bool inv_job_name(char *name, size_t bytes);

/*
 * A number for that job; where there is no job, for the launch (NAME in INVASIVE_LAUNCH); 0: there
 * is neither.  Each call returns the same, also after MPI_Finalize.  rmd tells jobs and launches of
 * one user apart by it; a process that lies can only mix up jobs of its own user.  Thread safe
 * while no thread changes the environment.
 */
uint64_t inv_launch_mark(void);

enum inv_started {
    INV_STARTED,       /* processes may connect to launch->socket */
    INV_START_RACED,   /* another process has the name, and may not listen yet: connect again */
    INV_START_FAILED,
};
/*
 * Starts `rmd`, a path, for this node.  The rmd is not our child, is in a session of its own, has
 * no descriptor of ours, and ends by itself some seconds after its last process.  It may use the
 * CPUs that the launcher of this process had, or in a Slurm step those of the step's tasks
 * (step.h): this process may be bound to a part of them.
 * INV_START_FAILED: `why`, a buffer of why_bytes bytes, has the reason.  Thread safe; this process
 * sees no signal, exit status or child of the rmd.
 */
enum inv_started inv_launch_start(const struct inv_launch *launch, const char *rmd, char *why,
                                  size_t why_bytes);

#endif
