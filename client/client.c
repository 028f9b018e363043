/* SPDX-License-Identifier: GPL-3.0-or-later */
/* client.c - one connection per request, as protocol.h has it. */
#define _GNU_SOURCE
#include "client/client.h"
#include "libinvasive/table/socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPORTS_MAX = 1 << 16, PATIENCE_S = 2 };

static int error_of(const struct inv_reply *refused)
{
    return refused->status == INV_E_UID    ? EPERM
           : refused->status == INV_E_USER ? EACCES
                                           : EPROTO;
}

int rmd_client_ask(int fd, const struct inv_request *request, size_t bytes, int hung_up,
                   struct inv_reply *reply, int *passed)
{
    int error;
    *passed = -1;
    if (fd < 0)
        return -1;
    if (!inv_socket_ask(fd, request, bytes, reply, passed))
        error = errno == EAGAIN ? ETIMEDOUT : errno == ENODATA ? hung_up : errno;
    else if (reply->status == INV_OK)
        return fd;
    else
        error = error_of(reply);
    if (*passed >= 0)
        close(*passed);
    *passed = -1;
    close(fd);
    errno = error;
    return -1;
}

/* The same about the domain of a user; NULL: our own. */
static int ask_about_user(int fd, struct rmd_client_user *of, const struct inv_request *request,
                          struct inv_reply *reply, int *passed)
{
    struct inv_about about = {.request = *request, .uid = of ? of->uid : INV_UNSAID};
    *reply = (struct inv_reply){.status = INV_OK};
    int asked = rmd_client_ask(fd, &about.request, sizeof about, EPROTO, reply, passed);
    int error = errno;
    if (of)
        snprintf(of->why, sizeof of->why, "%s",
                 reply->status == INV_E_USER ? reply->message : "");
    errno = error;
    return asked;
}

bool rmd_client_policy(const char *name, struct rmd_client_user *of, const char *wanted,
                       char policy[INV_NAME_BYTES])
{
    struct inv_reply reply;
    struct inv_request request = inv_request_of(INV_POLICY);
    snprintf(request.program, sizeof request.program, "%s", wanted ? wanted : "");
    int unused = -1, fd = inv_socket_connect(name, PATIENCE_S);
    fd = ask_about_user(fd, of, &request, &reply, &unused);
    if (unused >= 0)
        close(unused);
    if (fd < 0)
        return false;
    close(fd);
    reply.message[sizeof reply.message - 1] = '\0';
    snprintf(policy, INV_NAME_BYTES, "%.63s", reply.message);
    return true;
}

static struct inv_table *observe_table(int connection, struct rmd_client_user *of)
{
    struct inv_reply reply;
    const struct inv_request request = inv_request_of(INV_OBSERVE);
    int table_fd = -1;
    int fd = ask_about_user(connection, of, &request, &reply, &table_fd);
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

struct inv_table *rmd_client_observe(const char *name, struct rmd_client_user *of)
{
    return observe_table(inv_socket_connect(name, PATIENCE_S), of);
}

struct inv_table *rmd_client_await(const char *name)
{
    return observe_table(inv_socket_connect_service(name, PATIENCE_S), NULL);
}

unsigned rmd_client_cores(const char *name)
{
    struct inv_reply reply;
    const struct inv_request request = inv_request_of(INV_OBSERVE);
    int table_fd = -1;
    int fd =
        ask_about_user(inv_socket_connect(name, PATIENCE_S), NULL, &request, &reply, &table_fd);
    if (table_fd >= 0)
        close(table_fd);
    if (fd < 0)
        return 0;
    close(fd);
    return reply.count;
}

/* The next report; false when what comes is none. */
static bool receive_report(int fd, struct rmd_client_report *r)
{
    size_t size = sizeof r->report + INV_RECORD_BYTES(INV_SITES);
    char *message = malloc(size);
    ssize_t n = message ? recv(fd, message, size, MSG_TRUNC) : -1;
    bool good = n >= (ssize_t)sizeof r->report && (size_t)n <= size;
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
    const struct inv_request request = inv_request_of(INV_REPORT);
    int unused = -1, fd = inv_socket_connect(name, PATIENCE_S);
    fd = rmd_client_ask(fd, &request, sizeof request, EPROTO, &reply, &unused);
    *count = 0;
    *error = fd < 0 || reply.count > REPORTS_MAX ? -1 : 0;
    struct rmd_client_report *all = NULL;
    if (!*error && reply.count && (all = calloc(reply.count, sizeof *all)) != NULL)
        while (*count < reply.count && receive_report(fd, &all[*count]))
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
