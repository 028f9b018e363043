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
 *   HOME    the node on which invade started one itself, as inv_node_id gives it; 0 for none
 *   WORD    of rmd's command line; none has a slash in it
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
    uint64_t node;    /* inv_node_id of the one on which invade runs */
    int nwords;
    const char *word[INV_LAUNCH_WORDS]; /* in text */
    char text[INV_LAUNCH_BYTES];
};

/* What `text`, the value of INVASIVE_LAUNCH, says.  False, and *launch void, when it is NULL or
 * makes no sense. */
bool inv_launch_parse(struct inv_launch *launch, const char *text);

/* The running kernel, on whatever machine: its boot's identity, to be mixed with more (hash.h). */
uint64_t inv_boot_hash(void);

/* This node: the running kernel and the network namespace.  Never 0. */
uint64_t inv_node_id(void);

/*
 * A name for the MPI job on this node whose rank this process is, the same in all of its ranks
 * here: letters, digits and dashes.  False when there is no job, or none that can be told from
 * other jobs.
 */
bool inv_job_name(char *name, size_t bytes);

/*
 * A number for that job, or where there is none for the launch, the NAME in INVASIVE_LAUNCH.  0:
 * there is neither.  A process that asks again is told the same, though MPI is finalized by then.
 * rmd tells jobs and launches of one user apart by it; a process that lies can only mix up jobs of
 * its own user.  Thread safe while no thread changes the environment.
 */
uint64_t inv_launch_mark(void);

enum inv_started {
    INV_STARTED,       /* processes may connect to launch->socket */
    INV_START_RACED,   /* another process has the name, and may not listen yet: connect again */
    INV_START_FAILED,
};
/*
 * Start `rmd`, a path, for this node.  It is not our child, is in a session of its own, has no
 * descriptor of ours, and ends by itself some seconds after its last process.  It may use the
 * CPUs that the launcher of this process had, or in a Slurm step those of the step's tasks (step.h):
 * this process may be bound to a part of them.
 * `why` says what went wrong.  Thread safe; no signal, exit status or child of it is seen in
 * this process.
 */
enum inv_started inv_launch_start(const struct inv_launch *launch, const char *rmd, char *why,
                                  size_t why_bytes);

#endif
