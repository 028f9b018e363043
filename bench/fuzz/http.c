/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * http.c - what a client sends to the address of the metrics, in pieces: one byte of the input says how
 * long the next piece is.  Checks that the server closes each connection, that an answer is HTTP and as
 * long as its header says, and that only clients that asked for the page get the page.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/serve/metrics.h"
#include "libinvasive/base/now.h"
#include "rmd/host/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static ssize_t fuzz_receive(void *to, size_t room, bool *carries);
static ssize_t fuzz_send(const void *what, size_t bytes);
static char *fuzz_page(size_t *bytes);

#define rmd_peer_receive(fd, to, room, flags, carries)                                             \
    ((void)(fd), (void)(flags), fuzz_receive(to, room, carries))
#define send(fd, what, bytes, flags) ((void)(fd), (void)(flags), fuzz_send(what, bytes))
#define shutdown(fd, how) ((void)(fd), (void)(how))
#define close(fd) ((void)(fd), 0)
#define timerfd_settime(fd, flags, to, old) ((void)(fd), (void)(to))
#define rmd_watch(source, events) ((void)(source), 0)
#define rmd_unwatch(source) ((void)(source))
#define rmd_metrics_text(uid, all, commands, bytes) ((void)(commands), fuzz_page(bytes))
#include "../../rmd/serve/metrics_http.c"

enum { ANSWER_MAX = 1024, NO_MORE_YET = 0xff, NO_ROOM_YET = 0xfe, CARRIES = 0xfd };
static const char the_page[] = "invasive_cores 8\n";

static struct fuzz_input input;
static char answer[ANSWER_MAX + 1];
static size_t answer_bytes;

static ssize_t fuzz_receive(void *to, size_t room, bool *carries)
{
    uint32_t bytes = fuzz_number(&input, 1);
    *carries = bytes == CARRIES;
    errno = EAGAIN;
    if (bytes == NO_MORE_YET && input.left)
        return -1;
    bytes = bytes < input.left ? bytes : (uint32_t)input.left;
    bytes = bytes < room ? bytes : (uint32_t)room;
    fuzz_take(&input, to, bytes);
    return (ssize_t)bytes;
}

static ssize_t fuzz_send(const void *what, size_t bytes)
{
    uint32_t most = fuzz_number(&input, 1);
    errno = EAGAIN;
    if (most == NO_ROOM_YET)
        return -1;
    if (most && most < bytes)
        bytes = most;
    if (answer_bytes + bytes > ANSWER_MAX)
        abort();
    memcpy(answer + answer_bytes, what, bytes);
    answer_bytes += bytes;
    return (ssize_t)bytes;
}

static char *fuzz_page(size_t *bytes)
{
    *bytes = sizeof the_page - 1;
    return strdup(the_page);
}

static void check(const char *head)
{
    unsigned status, length;
    answer[answer_bytes] = '\0';
    const char *body = strstr(answer, "\r\n\r\n"), *says = strstr(answer, "Content-Length: ");
    if (sscanf(answer, "HTTP/1.1 %u ", &status) != 1 || !body || !says ||
        sscanf(says, "Content-Length: %u\r\n", &length) != 1)
        abort();
    bool only_head = starts_with(head, "HEAD /metrics");
    if (strlen(body + 4) != length && !(only_head && !body[4]))
        abort();
    if (status == 200 && !starts_with(head, "GET /metrics") && !only_head)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char head[HEAD_MAX + 1];
    input = (struct fuzz_input){data, bytes};
    answer_bytes = 0;
    static const struct rmd_control control;
    static struct rmd_metrics_server http = {.control = &control};
    struct rmd_metrics_client *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->source = (struct rmd_source){.fd = -1, .ready = handle_client};
    c->of = &http;
    http.clients = c;
    http.nclients = 1;
    bool complete = false;
    while (http.clients) {
        size_t sent = c->sent;
        bool room = !input.left;
        c->source.ready(&c->source, EPOLLIN);
        complete |= http.clients && c->answer;
        if (http.clients)
            memcpy(head, c->head, sizeof head);
        if (http.clients && room && c->answer && c->sent == sent)
            abort(); /* nothing is sent */
    }
    if (complete && answer_bytes)
        check(head);
    return 0;
}
