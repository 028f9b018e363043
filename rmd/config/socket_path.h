/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * socket_path.h - the paths of our sockets, which an rmd that was killed leaves behind.
 *
 * Only sockets are removed: to connect to an ordinary file fails as to a stale socket.  If several
 * rmd find a stale path at the same moment, one of them gets it.  The directory is locked, if
 * possible, from the check to listen(), so that no rmd removes the new socket of another one.  Only
 * the main thread calls these.
 */
#ifndef RMD_SOCKET_PATH_H
#define RMD_SOCKET_PATH_H

#include <sys/socket.h>

/* Tries to lock a directory, for a second in all. */
enum { RMD_PATH_LOCK_TRIES = 100 };

/* bind() and listen(), of a socket of any family.  Takes over a stale path, on which no process
 * listens.  0, or -1 with errno, and no file is left; ENOTSOCK: the path is no socket.
 *   lock_tries  that are left, RMD_PATH_LOCK_TRIES at first.  Any process that may read a directory
 *               can lock it, so an rmd has one such number for all of its sockets */
int rmd_path_listen(int fd, const struct sockaddr *address, socklen_t size, int backlog,
                    unsigned *lock_tries);

/* For a message: why rmd_path_listen failed with this errno, and what to do. */
const char *rmd_path_error(int error);

/* Removes the socket at this path, but no other kind of file.  Called before the socket is closed:
 * after that another rmd may have taken the path. */
void rmd_path_remove(const char *path);

#endif
