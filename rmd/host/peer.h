/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * peer.h - sockets of untrusted clients (peers): accept, receive and close, none of which may
 * block.
 *
 * A message may carry descriptors.  To close the last reference to one may take long: until a TCP
 * connection has lingered, or for ever for a file in the user's own file system.  So only a thread
 * that may block takes a descriptor (trace_writer.c).  A message with one is read without removing
 * it.
 */
#ifndef RMD_PEER_H
#define RMD_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* To be called before the first accept. */
void rmd_peer_begin(void);

/* Accepts the next client; its socket is non-blocking and close-on-exec.  -1: none.  If there is no
 * descriptor for a client, it is rejected: in the queue it would be an event for ever. */
int rmd_peer_accept(int listening);

/* True: no client can be accepted now.  There is no descriptor to reject one with, or too many
 * sockets wait to be closed.  Clients stay in the queue, so the caller should back off. */
bool rmd_peer_full(void);

/* Receives a message as recv does with MSG_DONTWAIT and these flags.  *carries: it carries
 * descriptors; then it stays in the socket. */
ssize_t rmd_peer_receive(int fd, void *buffer, size_t size, int flags, bool *carries);

/* Instead of close(), for a local socket: does not block, whatever unread messages it has. */
void rmd_peer_close(int fd);

#endif
