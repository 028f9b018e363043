/* SPDX-License-Identifier: GPL-3.0-or-later */
/* server.h - rmd's socket: accepts, checks and answers the requests of protocol.h. */
#ifndef RMD_SERVER_H
#define RMD_SERVER_H

#include "domain.h"

/*
 * rmd_server_open - listen for processes of our own user.
 *   name  "@NAME" for an abstract socket, else a path; a path that no one listens on any
 *         more is taken over
 * Returns 0; or -1, and has said why.
 */
int rmd_server_open(const char *name, struct rmd_domain *domain);
/* The same with a socket that the starter listens on already, an abstract one. */
int rmd_server_inherit(int fd, struct rmd_domain *domain);
/* Stop listening; a path is removed. */
void rmd_server_close(void);

#endif
