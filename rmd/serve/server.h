/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * server.h - rmd's socket: accepts, checks and answers the requests of protocol.h, each for the
 * domain of the user that asks (users.h).
 */
#ifndef RMD_SERVER_H
#define RMD_SERVER_H

#include "rmd/config/settings.h"
#include "rmd/serve/control.h"

/* The users that may connect, besides root and the user that rmd runs as. */
struct rmd_access {
    bool several;         /* there may be other users */
    enum rmd_group group; /* RMD_GROUP_DEFAULT: no other user */
    gid_t gid;
};

/*
 * rmd_server_open - listens on a new socket, to which the users of `access` may connect.
 *   name  "@NAME" for an abstract socket, else a path.  With access->several a missing directory is
 *         made.  A stale path, on which no process listens, is taken over
 *   lock_tries  see socket_path.h
 * Returns 0; or -1, and has logged the reason.
 */
int rmd_server_open(const char *name, const struct rmd_access *access, unsigned *lock_tries);
/* Makes the directory of a socket's path, if it is missing; rmd_server_open does it, too. */
void rmd_server_make_directory(const char *name);
/* As rmd_server_open, with a socket on which the process that started rmd listens already.  That
 * process removes its path. */
int rmd_server_inherit(int fd, const struct rmd_access *access);
/* The state of rmctl's commands, for metrics. */
const struct rmd_control *rmd_server_control(void);
/* Stops listening, if rmd does, and removes rmd's path. */
void rmd_server_close(void);

#endif
