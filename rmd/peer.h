/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * peer.h - the sockets of clients whom nobody trusts: to let them in, to hear them, and to close
 * their ends, none of which may block.
 *
 * A message may carry descriptors, and who has the last reference to one waits until its file is
 * closed: for as long as a TCP connection lingers, or for ever for the user's own file system.  So
 * a descriptor is taken by who is in no hurry only (trace.c), and what was sent with one is looked
 * at where it is.
 */
#ifndef RMD_PEER_H
#define RMD_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Before anybody is let in. */
void rmd_peer_begin(void);

/* The next client of this socket, closed by exec and non-blocking; -1 none.  Without a descriptor
 * for it a client would stay in the queue and be an event for ever: it is hung up on. */
int rmd_peer_accept(int listening);

/* Nobody is let in: there is no descriptor to hang up with, or too many sockets wait to be closed.
 * The client stays in the queue, so look again after a while only. */
bool rmd_peer_full(void);

/* Receives a message as recv does with MSG_DONTWAIT and these flags.  *carries: it carries
 * descriptors; then it stays in the socket. */
ssize_t rmd_peer_receive(int fd, void *buffer, size_t size, int flags, bool *carries);

/* Instead of close(), of a local socket: whatever is in it that nobody has taken. */
void rmd_peer_close(int fd);

#endif
