/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * socket.h - asking rmd (protocol.h).  Its socket has a name: "@NAME", an abstract one, or a path.
 */
#ifndef INV_SOCKET_H
#define INV_SOCKET_H

#include "libinvasive/table/protocol.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Sets *address to the socket address of `name`, and returns its size in bytes.  0 with errno:
 * EINVAL when the name is shorter than two characters, ENAMETOOLONG when it does not fit. */
socklen_t inv_socket_address(struct sockaddr_un *address, const char *name);

enum { INV_SOCKET_UNFIT = 420 }; /* bytes of a text of inv_socket_unfit, its NUL included */

/* Writes why inv_socket_address refuses `name`, such as "socket path '/...' has 131 bytes, at most
 * 107 fit".  A name of more than 300 bytes is cut, and ends in "...".  Returns the text, or NULL if
 * the name fits.  Keeps errno. */
const char *inv_socket_unfit(const char *name, char text[INV_SOCKET_UNFIT]);

/*
 * Connects to the rmd at `name`.  Sending and receiving fail after timeout_s seconds.
 * Returns a descriptor for the caller to close; or -1 with errno: inv_socket_address's, connect's,
 * and EPERM when the listener is neither our user nor root.  Thread safe.
 */
int inv_socket_connect(const char *name, unsigned timeout_s);

/* The same with a time limit of timeout_ms milliseconds, which is not 0. */
int inv_socket_connect_ms(const char *name, unsigned timeout_ms);

/* The same as inv_socket_connect; but if the path exists and no process listens, a service is being
 * started again: waits for it, for a second at most. */
int inv_socket_connect_service(const char *name, unsigned timeout_s);

/* True: the listener at the other end is our user, by real and effective id, or root.
 * False with errno: EPERM, getsockopt's. */
bool inv_socket_serves_us(int fd);

/*
 * inv_socket_send sends a message of n bytes, and with it the descriptor pass_fd, which stays the
 * caller's; -1: no descriptor.  inv_socket_receive receives a message of at most `size` bytes;
 * *passed is the descriptor that came with it (close-on-exec, the caller closes it), -1: none.  If
 * several come, only the first is taken.
 * Flags, result and errno are those of send and recv.  A signal interrupts neither; if the other
 * end has gone there is no SIGPIPE.
 */
ssize_t inv_socket_send(int fd, const void *bytes, size_t n, int pass_fd, int flags);
ssize_t inv_socket_receive(int fd, void *room, size_t size, int *passed, int flags);

/*
 * Sends the first `bytes` bytes of the request, and receives one answer.  *passed: the descriptor
 * that came with the answer, for the caller to close; -1: none.  False, with *passed -1 and errno:
 * send's, recv's (EAGAIN: the timeout has passed), ENODATA when the other end has hung up, EPROTO
 * when the answer is no reply of this version.
 */
bool inv_socket_ask(int fd, const struct inv_request *request, size_t bytes,
                    struct inv_reply *reply, int *passed);

#endif
