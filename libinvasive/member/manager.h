/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * manager.h - finding this process's resource manager, and asking it.
 *
 * On the node where the launch began that is the rmd which INVASIVE_SOCKET names.  On each other
 * node it is an rmd that the first process there starts (launch.h).
 */
#ifndef INV_MANAGER_H
#define INV_MANAGER_H

#include "libinvasive/table/protocol.h"

/* One line on stderr, in one write, so that lines of several ranks do not mix. */
void inv_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Was the process launched to be managed, and is its rmd there?  Found out once.  Thread safe. */
bool inv_manager_is_there(void);
/* The number of cores where the environment does not say it: that of a further node's rmd, or of a
 * Slurm step.  0: not known.  Any thread. */
unsigned inv_manager_cores(void);

/* Sends rmd a request and waits for the answer; tries again if an rmd that is being started anew
 * has hung up.  False: there is no rmd, or no answer of its protocol, and stderr has been told.
 * *table_fd: a descriptor that came with the answer, for the caller to close; -1: none came.
 * *where: the name of the socket.  Thread safe. */
bool inv_manager_ask(const struct inv_request *request, struct inv_reply *reply, int *table_fd,
                     const char **where);
/* Sends rmd the first `bytes` bytes of the request.  True: rmd answers INV_OK. */
bool inv_send_to_manager(const struct inv_request *request, size_t bytes);
/* Is this process a task of a Slurm step in which invade is not (invade srun ...)?  The step's CPUs
 * then differ from those of invade.  An invade that runs in the step names the launch after it. */
bool inv_is_confined(void);

#endif
