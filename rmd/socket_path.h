/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * socket_path.h - the paths of our sockets, which an rmd that was killed leaves behind.
 *
 * Nothing but a socket is ever removed: Linux answers who connects to an ordinary file as it does
 * where nobody listens.  And of several that find a stale path at the same moment one has it: from
 * the look to listen() the directory is locked, where it can be, or the second would remove what
 * the first has just made.  Of the main thread.
 */
#ifndef RMD_SOCKET_PATH_H
#define RMD_SOCKET_PATH_H

#include <sys/socket.h>

/* bind() and listen(), of a socket of any family: takes over a path on which nobody listens any
 * more.  0, or -1 with errno and nothing left behind; ENOTSOCK: something else is there.
 * Anybody who may read a directory may lock it, so that all waits of a process for that together
 * take a second at most. */
int rmd_path_listen(int fd, const struct sockaddr *address, socklen_t size, int backlog);

/* Why that failed, and what to do. */
const char *rmd_path_error(int error);

/* The socket at this path, no other kind of file; before it is closed, or another rmd may have the
 * path by now. */
void rmd_path_remove(const char *path);

#endif
