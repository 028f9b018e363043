/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client.h - asking an rmd, for the tools (invade, rmctl).  Members of a domain do not
 * use this: they join through libinvasive. */
#ifndef RMD_CLIENT_H
#define RMD_CLIENT_H

#include "rmd/config/control_protocol.h"

/* In all functions `name` is that of rmd's socket, "@NAME" or a path.  An rmd that does not answer
 * within two seconds, or that runs neither as our user nor as root, counts as not there. */

/* The user of the domain that a request is about.  Only an operator may name another user, and that
 * user must have processes.  Else errno is EACCES, and `why` rmd's message; in all other cases
 * "". */
struct rmd_client_user {
    uint32_t uid; /* INV_UNSAID: ours */
    char why[sizeof((struct inv_reply *)0)->message];
};

/*
 * Sends a request of `bytes` bytes and receives the answer.  Returns the connection, which is fd;
 * or closes it and returns -1 with errno: EPERM it is another user's rmd, EACCES the domain is not
 * this user's, `hung_up` rmd has closed the connection, EPROTO it has refused for another reason.
 * fd -1: does nothing, and errno stays.
 *   *passed  a descriptor that came with the answer, for the caller to close; -1: none
 */
int rmd_client_ask(int fd, const struct inv_request *request, size_t bytes, int hung_up,
                   struct inv_reply *reply, int *passed);

/* Maps the core table of the user `of` (NULL: our own user), read-only.  NULL with errno; EPERM:
 * the rmd serves another user. */
struct inv_table *rmd_client_observe(const char *name, struct rmd_client_user *of);
/* The same for our own user; waits for a service that is being started again, for a second. */
struct inv_table *rmd_client_await(const char *name);

/* How many cores the processes of an rmd for one user may use.  0 with errno. */
unsigned rmd_client_cores(const char *name);

/* Chooses the policy `wanted`, unless it is NULL.  *policy: the name of the policy that decides
 * then.  False with errno; EPROTO: the rmd knows no such policy. */
bool rmd_client_policy(const char *name, struct rmd_client_user *of, const char *wanted,
                       char policy[INV_NAME_BYTES]);

/* The report of a process, and its record (the part with the sites in use) or NULL.  The values in
 * the record are not checked. */
struct rmd_client_report {
    struct inv_report report;
    struct inv_record *record;
    unsigned sites; /* that the record's memory has room for */
};

/* The reports of our own user's domain; the caller frees them with rmd_client_reports_free.  NULL,
 * with *count 0, when there are none.  *error: 0; -1, with errno, when the rmd cannot be asked. */
struct rmd_client_report *rmd_client_reports(const char *name, unsigned *count, int *error);
void rmd_client_reports_free(struct rmd_client_report *reports, unsigned count);

#endif
