/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client_control.h - asking an rmd for what control_protocol.h has, as client.h. */
#ifndef RMD_CLIENT_CONTROL_H
#define RMD_CLIENT_CONTROL_H

#include "control_protocol.h"

/* Fills in command->request and asks; waits command->wait_ms and a little more.  False with errno;
 * EPROTO: it does not know such commands; EPERM: it serves another user. */
bool rmd_client_control(const char *name, struct inv_control *command,
                        struct inv_outcome *outcome);

/* A descriptor that events can be received from, one at a time; -1 with errno. */
int rmd_client_events(const char *name, uint64_t since, bool follow);

/* The text, for the caller to free; NULL with errno. */
char *rmd_client_metrics(const char *name);

/* What is ordered there (about this user: EACCES: not for us, or it has no processes): for the
 * caller to free, with its users and processes behind it.  Their numbers are right, strings end and
 * cores are some that there can be.  NULL with errno. */
struct inv_overview *rmd_client_overview(const char *name, uint32_t uid);
static inline const struct inv_overview_user *rmd_overview_users(const struct inv_overview *o)
{
    return (const void *)(o + 1);
}
static inline const struct inv_overview_process *rmd_overview_processes(const struct inv_overview *o)
{
    return (const void *)(rmd_overview_users(o) + o->nusers);
}

#endif
