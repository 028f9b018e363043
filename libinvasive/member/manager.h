/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * manager.h - finding this process's resource manager, and asking it.
 *
 * It is the rmd that INVASIVE_SOCKET names, or on another node than the launch's first that node's,
 * which the first process starts (launch.h).
 */
#ifndef INV_MANAGER_H
#define INV_MANAGER_H

#include "libinvasive/table/protocol.h"

/* One line on stderr, in one write so that lines of several ranks do not mix. */
void inv_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Are we asked to be managed, and is an rmd there to do it?  Looked up once.  Thread safe. */
bool inv_manager_is_there(void);
/* The number of cores that the environment does not say: of the rmd of a further node, or of a Slurm
 * step.  0: not known. */
unsigned inv_manager_cores(void);

/* One request, one answer; again where we were cut off.  Returns false when there is no rmd or
 * no sensible answer, and has said so.  *table_fd: what came with the answer, -1 nothing.  *where: the
 * name of its socket. */
bool inv_manager_ask(const struct inv_request *request, struct inv_reply *reply, int *table_fd,
                     const char **where);
/* Sends rmd the first `bytes` bytes of the request.  True: rmd answers INV_OK. */
bool inv_send_to_manager(const struct inv_request *request, size_t bytes);
/* Is this process a task of a Slurm step that invade is not in (invade srun ...)?  What invade may
 * use is not the step's then.  An invade in the step has named the launch after it. */
bool inv_is_confined(void);

#endif
