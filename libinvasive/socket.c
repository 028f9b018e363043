/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* socket.c - rmd's socket by its name. */
#define _GNU_SOURCE
#include "socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

socklen_t inv_socket_address(struct sockaddr_un *address, const char *name)
{
    size_t length = strlen(name);
    bool abstract = name[0] == '@';
    if (length < 2 || length >= sizeof address->sun_path) {
        errno = length < 2 ? EINVAL : ENAMETOOLONG;
        return 0;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, name, length);
    if (abstract)
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !abstract);
}

/* Anybody can listen on an abstract name. */
static bool serves_us(int fd)
{
    struct ucred server;
    socklen_t size = sizeof server;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size))
        return false;
    errno = EPERM;
    return server.uid == getuid() || server.uid == 0;
}

int inv_socket_connect(const char *name, unsigned patience_s)
{
    struct sockaddr_un address;
    socklen_t size = inv_socket_address(&address, name);
    int fd = size ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return -1;
    const struct timeval limit = {.tv_sec = patience_s};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, size) < 0 || !serves_us(fd)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}
