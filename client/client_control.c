/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client_control.c - one connection per request. */
#define _GNU_SOURCE
#include "client/client_control.h"
#include "client/client.h"
#include "libinvasive/table/socket.h"
#include "rmd/loop/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_S = 2, CHUNKS_MAX = 1 << 26 };

static void close_all(int fd, int passed, int error)
{
    if (passed >= 0)
        close(passed);
    if (fd >= 0)
        close(fd);
    errno = error;
}

/* The connection, or -1 with errno. */
static int ask_rmd(const char *name, const struct inv_request *request, size_t bytes,
                   struct inv_reply *reply, unsigned timeout_s)
{
    int passed, fd = inv_socket_connect(name, timeout_s);
    fd = rmd_client_ask(fd, request, bytes, ECONNRESET, reply, &passed);
    if (passed < 0)
        return fd;
    close_all(fd, passed, EPROTO);
    return -1;
}

bool rmd_client_control(const char *name, struct inv_control *command, struct inv_outcome *outcome)
{
    struct inv_reply reply;
    command->request = inv_request_of(INV_CONTROL);
    int fd = ask_rmd(name, &command->request, sizeof *command, &reply,
                     command->wait_ms / 1000 + 1 + PATIENCE_S);
    if (fd < 0)
        return false;
    ssize_t n = recv(fd, outcome, sizeof *outcome, 0);
    close_all(fd, -1, n < 0 ? errno : n ? EPROTO : ECONNRESET);
    outcome->text[sizeof outcome->text - 1] = '\0';
    return n == (ssize_t)sizeof *outcome;
}

int rmd_client_events(const char *name, uint64_t since, bool follow)
{
    struct inv_reply reply;
    struct inv_watch watch = {
        .request = inv_request_of(INV_EVENTS), .since = since, .follow = follow};
    int fd = ask_rmd(name, &watch.request, sizeof watch, &reply, PATIENCE_S);
    const struct timeval for_ever = {0};
    if (fd >= 0 && follow)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
    return fd;
}

/* Receives an answer of several messages, followed by a byte 0.  NULL with errno. */
static char *receive_chunks(const char *name, const struct inv_request *request,
                            size_t request_bytes, size_t *bytes)
{
    struct inv_reply reply;
    int fd = ask_rmd(name, request, request_bytes, &reply, PATIENCE_S);
    if (fd < 0)
        return NULL;
    size_t size = (size_t)reply.count * INV_CHUNK, got = 0;
    char *text = size < CHUNKS_MAX ? malloc(size + 1) : NULL;
    ssize_t n = -1;
    for (unsigned i = 0; text && i < reply.count; i++, got += (size_t)n)
        if ((n = recv(fd, text + got, size - got, 0)) <= 0)
            break;
    int error = n < 0 ? errno : EPROTO;
    close(fd);
    if (text && n > 0) {
        text[got] = '\0';
        *bytes = got;
        return text;
    }
    errno = text ? error : ENOMEM;
    free(text);
    return NULL;
}

char *rmd_client_metrics(const char *name)
{
    const struct inv_request request = inv_request_of(INV_METRICS);
    size_t bytes;
    return receive_chunks(name, &request, sizeof request, &bytes);
}

static bool is_complete(const struct inv_admin_snapshot *o, size_t bytes)
{
    return bytes >= sizeof *o && o->nusers <= bytes && o->nprocs <= bytes && o->nunmanaged <= bytes &&
           bytes == sizeof *o + o->nusers * sizeof(struct inv_admin_user) +
                        o->nprocs * sizeof(struct inv_admin_process) +
                        o->nunmanaged * sizeof(struct inv_admin_unmanaged) &&
           o->nusers && o->ncores <= INV_MAX_CORES;
}

struct inv_admin_snapshot *rmd_client_admin_snapshot(const char *name, uint32_t uid)
{
    const struct inv_about about = {.request = inv_request_of(INV_ADMIN_SNAPSHOT), .uid = uid};
    size_t bytes;
    struct inv_admin_snapshot *o =
        (void *)receive_chunks(name, &about.request, sizeof about, &bytes);
    if (!o || !is_complete(o, bytes)) {
        if (o)
            errno = EPROTO;
        free(o);
        return NULL;
    }
    struct inv_admin_user *users = (void *)(o + 1);
    for (unsigned i = 0; i < o->nusers; i++)
        rmd_copy_name(users[i].policy, users[i].policy);
    struct inv_admin_unmanaged *unmanaged = (void *)(uintptr_t)rmd_admin_unmanaged(o);
    for (unsigned i = 0; i < o->nunmanaged; i++)
        rmd_copy_name(unmanaged[i].program, unmanaged[i].program);
    return o;
}
