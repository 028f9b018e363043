/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * socket.h - rmd's socket by its name: "@NAME", which is abstract, or a path.
 */
#ifndef INV_SOCKET_H
#define INV_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

/* Sets *address to that of `name`; returns its size in bytes.  0 with errno EINVAL when the name is
 * shorter than two characters, ENAMETOOLONG when it does not fit. */
socklen_t inv_socket_address(struct sockaddr_un *address, const char *name);

/*
 * Connect to the rmd at `name`.  Sending and receiving fail after patience_s seconds.
 * Returns a descriptor for the caller to close; or -1 with errno: inv_socket_address's, connect's,
 * and EPERM when who listens is neither our user nor root.  Thread safe.
 */
int inv_socket_connect(const char *name, unsigned patience_s);

#endif
