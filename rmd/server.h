/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * server.h - rmd's socket: accepts, checks and answers the requests of protocol.h, each for the
 * domain of the user that asks (users.h).
 */
#ifndef RMD_SERVER_H
#define RMD_SERVER_H

#include "settings.h"

/* Who may ask, beside root and the user that rmd runs as. */
struct rmd_access {
    bool several;         /* other users at all */
    enum rmd_group group; /* RMD_GROUP_DEFAULT: nobody else */
    gid_t gid;
};

/*
 * rmd_server_open - listen.
 *   name  "@NAME" for an abstract socket, else a path, whose directory is made when it is missing
 *         and `several`; a path that no one listens on any more is taken over.  The path can be
 *         reached by those that may ask
 * Returns 0; or -1, and has said why.
 */
int rmd_server_open(const char *name, const struct rmd_access *who);
/* The directory of a path, if it is missing; rmd_server_open does it too. */
void rmd_server_make_directory(const char *name);
/* The same with a socket that the starter listens on already, and removes. */
int rmd_server_inherit(int fd, const struct rmd_access *who);
/* Stop listening, if we do; our path is removed. */
void rmd_server_close(void);

#endif
