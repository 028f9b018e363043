/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client.c - one connection per request, as protocol.h has it. */
#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { REPORTS_MAX = 1 << 16 };

static int fail(int fd, int error)
{
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static int connect_to(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if (length < 2 || length >= sizeof a.sun_path)
        return fail(-1, EINVAL);
    memcpy(a.sun_path, name, length);
    if (name[0] == '@')
        a.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const struct timeval patience = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@'));
    if (connect(fd, (struct sockaddr *)&a, size))
        return fail(fd, errno);
    /* Anybody can listen on an abstract name. */
    struct ucred server;
    size = sizeof server;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) ||
        (server.uid != getuid() && server.uid != 0))
        return fail(fd, EPERM);
    return fd;
}

static int take_fd(struct msghdr *m)
{
    int fd = -1;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
            h->cmsg_len == CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(h), sizeof fd);
    return fd;
}

/* Send a request of this kind and take the answer; returns the connection. */
static int ask(const char *name, enum inv_request_kind kind, struct inv_reply *reply, int *passed)
{
    int fd = connect_to(name);
    if (fd < 0)
        return -1;
    struct inv_request request = {.magic = INV_PROTOCOL_MAGIC,
                                  .version = INV_PROTOCOL_VERSION,
                                  .kind = kind,
                                  .rank = -1,
                                  .size = -1,
                                  .local_size = -1,
                                  .local_rank = -1};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {reply, sizeof *reply};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    if (send(fd, &request, sizeof request, MSG_NOSIGNAL) < 0)
        return fail(fd, errno);
    ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return fail(fd, errno == EAGAIN ? ETIMEDOUT : errno);
    *passed = take_fd(&m);
    if (n == sizeof *reply && reply->magic == INV_PROTOCOL_MAGIC &&
        reply->version == INV_PROTOCOL_VERSION && reply->status == INV_OK)
        return fd;
    if (*passed >= 0)
        close(*passed);
    return fail(fd, n == sizeof *reply && reply->status == INV_E_UID ? EPERM : EPROTO);
}

struct inv_table *rmd_client_observe(const char *name)
{
    struct inv_reply reply;
    int table_fd = -1, fd = ask(name, INV_OBSERVE, &reply, &table_fd);
    if (fd < 0)
        return NULL;
    struct inv_table *table = NULL;
    if (table_fd < 0)
        errno = EPROTO;
    else
        table = inv_table_map(table_fd, false);
    int saved = errno;
    close(fd);
    if (table_fd >= 0)
        close(table_fd);
    errno = saved;
    return table;
}

/* The next report; false when what comes is none. */
static bool take_report(int fd, struct rmd_client_report *r)
{
    size_t room = sizeof r->report + INV_RECORD_BYTES(INV_SITES);
    char *message = malloc(room);
    ssize_t n = message ? recv(fd, message, room, MSG_TRUNC) : -1;
    bool good = n >= (ssize_t)sizeof r->report && (size_t)n <= room;
    size_t more = good ? (size_t)n - sizeof r->report : 0;
    if (good)
        memcpy(&r->report, message, sizeof r->report);
    if (good && more >= INV_RECORD_BYTES(0) && more == r->report.record_bytes) {
        r->sites = (unsigned)((more - INV_RECORD_BYTES(0)) / sizeof(struct inv_site));
        r->record = aligned_alloc(_Alignof(struct inv_record), sizeof *r->record);
        if (r->record)
            memcpy((void *)r->record, message + sizeof r->report, more);
    }
    free(message);
    return good;
}

struct rmd_client_report *rmd_client_reports(const char *name, unsigned *count, int *error)
{
    struct inv_reply reply;
    int unused = -1, fd = ask(name, INV_REPORT, &reply, &unused);
    *count = 0;
    *error = fd < 0 || reply.count > REPORTS_MAX ? -1 : 0;
    struct rmd_client_report *all = NULL;
    if (!*error && reply.count && (all = calloc(reply.count, sizeof *all)) != NULL)
        while (*count < reply.count && take_report(fd, &all[*count]))
            (*count)++;
    if (unused >= 0)
        close(unused);
    if (fd >= 0)
        close(fd);
    return all;
}

void rmd_client_reports_free(struct rmd_client_report *all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        free(all[i].record);
    free(all);
}
