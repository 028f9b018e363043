/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client_control.h - the requests of control_protocol.h, for the tools; as client.h. */
#ifndef RMD_CLIENT_CONTROL_H
#define RMD_CLIENT_CONTROL_H

#include "rmd/config/control_protocol.h"

/* Fills in command->request and sends the command; waits for the outcome, command->wait_ms and a
 * little more.  False with errno; EPROTO: the rmd does not know such commands; EPERM: it serves
 * another user. */
bool rmd_client_control(const char *name, struct inv_control *command,
                        struct inv_outcome *outcome);

/* A descriptor from which the caller receives events (INV_EVENTS), one at a time, and which it
 * closes; -1 with errno. */
int rmd_client_events(const char *name, uint64_t since, bool follow);

/* The text of the metrics, for the caller to free; NULL with errno. */
char *rmd_client_metrics(const char *name);

/* The admin snapshot, followed by its users, processes and unmanaged processes; the caller frees
 * it.
 *   uid  the user of the domain; INV_UNSAID: our own user
 * The numbers of users and processes have been checked, strings end, and ncores is in range.  NULL
 * with errno.  EACCES: it is another user's domain and we are no operator, or it has no process. */
struct inv_admin_snapshot *rmd_client_admin_snapshot(const char *name, uint32_t uid);
static inline const struct inv_admin_user *rmd_admin_users(const struct inv_admin_snapshot *o)
{
    return (const void *)(o + 1);
}
static inline const struct inv_admin_process *
rmd_admin_processes(const struct inv_admin_snapshot *o)
{
    return (const void *)(rmd_admin_users(o) + o->nusers);
}
static inline const struct inv_admin_unmanaged *
rmd_admin_unmanaged(const struct inv_admin_snapshot *o)
{
    return (const void *)(rmd_admin_processes(o) + o->nprocs);
}

#endif
