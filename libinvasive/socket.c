/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* socket.c - asking rmd on its socket. */
#define _GNU_SOURCE
#include "socket.h"

#include <errno.h>
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

/* The descriptor that has come with a message, -1 none. */
static int descriptor_in(struct msghdr *message)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

bool inv_socket_ask(int fd, const struct inv_request *request, size_t bytes,
                    struct inv_reply *reply, int *passed)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n;
    *passed = -1;
    if (send(fd, request, bytes, MSG_NOSIGNAL) < 0)
        return false;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0) {
        errno = n ? errno : ENODATA;
        return false;
    }
    *passed = descriptor_in(&message);
    if (n == (ssize_t)sizeof *reply && reply->magic == INV_PROTOCOL_MAGIC &&
        reply->version == INV_PROTOCOL_VERSION) {
        reply->message[sizeof reply->message - 1] = '\0';
        return true;
    }
    if (*passed >= 0)
        close(*passed);
    *passed = -1;
    errno = EPROTO;
    return false;
}
