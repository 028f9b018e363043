/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* socket.c - asking rmd on its socket. */
#define _GNU_SOURCE
#include "libinvasive/table/socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { RESTART_MS = 1000, RESTART_PAUSE_MS = 20 };
enum { NAME_MIN = 2, NAME_MAX_BYTES = sizeof((struct sockaddr_un *)0)->sun_path - 1 };
enum { NAME_SHOWN = 300 }; /* bytes */

static bool is_valid_length(size_t length)
{
    return length >= NAME_MIN && length <= NAME_MAX_BYTES;
}

socklen_t inv_socket_address(struct sockaddr_un *address, const char *name)
{
    size_t length = strlen(name);
    bool abstract = name[0] == '@';
    if (!is_valid_length(length)) {
        errno = length < NAME_MIN ? EINVAL : ENAMETOOLONG;
        return 0;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, name, length);
    if (abstract)
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !abstract);
}

const char *inv_socket_unfit(const char *name, char text[INV_SOCKET_UNFIT])
{
    size_t length = strlen(name);
    bool is_short = length < NAME_MIN;
    if (is_valid_length(length))
        return NULL;
    snprintf(text, INV_SOCKET_UNFIT, "socket %s '%.*s%s' has %zu byte%s, at %s %d %s",
             name[0] == '@' ? "name" : "path", NAME_SHOWN, name, length > NAME_SHOWN ? "..." : "",
             length, length == 1 ? "" : "s", is_short ? "least" : "most",
             is_short ? NAME_MIN : NAME_MAX_BYTES, is_short ? "are needed" : "fit");
    return text;
}

/* Any user can listen on an abstract name.  A process whose real and effective users differ trusts
 * neither. */
bool inv_socket_serves_us(int fd)
{
    struct ucred server;
    socklen_t size = sizeof server;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size))
        return false;
    errno = EPERM;
    return server.uid == 0 || (server.uid == getuid() && server.uid == geteuid());
}

int inv_socket_connect_ms(const char *name, unsigned timeout_ms)
{
    struct sockaddr_un address;
    socklen_t size = inv_socket_address(&address, name);
    int fd = size ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return -1;
    const struct timeval limit = {.tv_sec = timeout_ms / 1000,
                                  .tv_usec = timeout_ms % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, size) < 0 || !inv_socket_serves_us(fd)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int inv_socket_connect(const char *name, unsigned timeout_s)
{
    return inv_socket_connect_ms(name, timeout_s * 1000);
}

int inv_socket_connect_service(const char *name, unsigned timeout_s)
{
    const struct timespec pause = {.tv_nsec = RESTART_PAUSE_MS * 1000000};
    int fd = inv_socket_connect(name, timeout_s);
    for (int ms = 0; fd < 0 && *name == '/' && errno == ECONNREFUSED && ms < RESTART_MS;
         ms += RESTART_PAUSE_MS) {
        nanosleep(&pause, NULL);
        fd = inv_socket_connect(name, timeout_s);
    }
    return fd;
}

/* Aligned as the kernel wants it, with room for one descriptor. */
union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

ssize_t inv_socket_send(int fd, const void *bytes, size_t n, int pass_fd, int flags)
{
    union control control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                                        .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (pass_fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &pass_fd, sizeof pass_fd);
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

/* The kernel closes descriptors for which there is no room: so the room is exactly that of one
 * descriptor.  (CMSG_SPACE's would take two.) */
ssize_t inv_socket_receive(int fd, void *room, size_t size, int *passed, int flags)
{
    union control control;
    struct iovec iov = {room, size};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n;
    *passed = -1;
    do
        n = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
        h->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(passed, CMSG_DATA(h), sizeof *passed);
    return n;
}

bool inv_socket_ask(int fd, const struct inv_request *request, size_t bytes,
                    struct inv_reply *reply, int *passed)
{
    *passed = -1;
    if (inv_socket_send(fd, request, bytes, -1, 0) < 0)
        return false;
    ssize_t n = inv_socket_receive(fd, reply, sizeof *reply, passed, 0);
    if (n == (ssize_t)sizeof *reply && reply->magic == INV_PROTOCOL_MAGIC &&
        reply->version == INV_PROTOCOL_VERSION) {
        reply->message[sizeof reply->message - 1] = '\0';
        return true;
    }
    int error = n < 0 ? errno : n ? EPROTO : ENODATA;
    if (*passed >= 0)
        close(*passed);
    *passed = -1;
    errno = error;
    return false;
}
