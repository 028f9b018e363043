/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client.h - asking an rmd, for the tools (invade, rmctl).  Members of a domain do not
 * use this: they join through libinvasive. */
#ifndef RMD_CLIENT_H
#define RMD_CLIENT_H

#include "rmd/config/control_protocol.h"

/* All: name is "@NAME" or a path.  An rmd that does not answer within two seconds counts
 * as one that is not there, and so does one that belongs to neither us nor root. */

/* The user of the domain that a request is about.  Only an operator may name another user, and that
 * user must have processes.  Else errno is EACCES, and `why` rmd's message; in all other cases
 * "". */
struct rmd_client_user {
    uint32_t uid; /* INV_UNSAID: ours */
    char why[sizeof((struct inv_reply *)0)->message];
};

/*
 * Sends a request of so many bytes and takes the answer.  Returns the connection, which is fd; or
 * closes it and returns -1 with errno: EPERM another user's rmd, EACCES not this user's domain,
 * hung_up when rmd has closed the connection, EPROTO otherwise refused.  fd -1: errno stays.
 *   passed  a descriptor that came with the answer, the caller's; -1 none
 */
int rmd_client_ask(int fd, const struct inv_request *request, size_t bytes, int hung_up,
                   struct inv_reply *reply, int *passed);

/* Map the table of that rmd, read-only; of NULL: our own user's.  NULL with errno; EPERM: it serves
 * another user. */
struct inv_table *rmd_client_observe(const char *name, struct rmd_client_user *of);
/* The same; a service that is being started again is waited for, for a second. */
struct inv_table *rmd_client_await(const char *name);

/* How many cores its processes may use, of an rmd for one user.  0 with errno. */
unsigned rmd_client_cores(const char *name);

/* The name of the policy that decides there, after `wanted` has been chosen unless it is NULL.
 * False with errno; EPROTO: it knows no such policy. */
bool rmd_client_policy(const char *name, struct rmd_client_user *of, const char *wanted,
                       char policy[INV_NAME_BYTES]);

/* The report of a process, and its record (the part with the sites in use) or NULL.  The values in
 * the record are not checked. */
struct rmd_client_report {
    struct inv_report report;
    struct inv_record *record;
    unsigned sites; /* that the record's memory has room for */
};

/* Its reports; the caller frees them with rmd_client_reports_free.  *count 0 and NULL when there
 * are none; -1 in *error (0 otherwise) with errno when it cannot be asked. */
struct rmd_client_report *rmd_client_reports(const char *name, unsigned *count, int *error);
void rmd_client_reports_free(struct rmd_client_report *reports, unsigned count);

#endif
