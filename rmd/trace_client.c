/* SPDX-License-Identifier: GPL-3.0-or-later */
/* trace_client.c - the request for a trace carries the file's descriptor. */
#define _GNU_SOURCE
#include "trace_client.h"
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_S = 20 }; /* for the last of a long trace, on a slow disk */

static bool send_request(int fd, const char *what, int file)
{
    struct inv_request request = inv_request_of(INV_TRACE);
    snprintf(request.program, sizeof request.program, "%s", what);
    return inv_socket_send(fd, &request, sizeof request, file, 0) == (ssize_t)sizeof request;
}

static bool take_reply(int fd, struct inv_reply *reply)
{
    int passed;
    ssize_t n = inv_socket_receive(fd, reply, sizeof *reply, &passed, 0);
    if (passed >= 0)
        close(passed);
    if (n >= 0 && (n != (ssize_t)sizeof *reply || reply->magic != INV_PROTOCOL_MAGIC))
        errno = EPROTO;
    reply->message[sizeof reply->message - 1] = '\0';
    return n == (ssize_t)sizeof *reply && reply->magic == INV_PROTOCOL_MAGIC;
}

static bool ask(const char *socket, const char *what, int file, struct inv_reply *reply,
                char why[RMD_TRACE_WHY])
{
    int fd = inv_socket_connect(socket, PATIENCE_S);
    bool good = fd >= 0 && send_request(fd, what, file) && take_reply(fd, reply);
    if (good)
        snprintf(why, RMD_TRACE_WHY, "%s", reply->message);
    else
        snprintf(why, RMD_TRACE_WHY, "cannot ask rmd at %.60s: %.40s", socket,
                 errno == EAGAIN ? "it does not answer" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return good && reply->status == INV_OK;
}

bool rmd_trace_ask_start(const char *socket, int file, char why[RMD_TRACE_WHY])
{
    struct inv_reply reply;
    return ask(socket, "start", file, &reply, why);
}

bool rmd_trace_ask_stop(const char *socket, unsigned *lost, char why[RMD_TRACE_WHY])
{
    struct inv_reply reply = {.count = 0};
    bool good = ask(socket, "stop", -1, &reply, why);
    *lost = good ? reply.count : 0;
    return good;
}
