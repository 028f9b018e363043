/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * metrics_http.c - as much of HTTP as a collector of metrics needs: the head of one request, one
 * answer, and the connection is closed.  rmd closes a connection after five seconds, and the oldest
 * of more than CLIENTS_MAX.  It makes the text at most every tenth of a second.  The clients are
 * unknown, so one rate limit, that of a user of the main socket (rate_limit.h), holds for all
 * together.  Above it no connection is accepted; connected clients have one request each.
 */
#define _GNU_SOURCE
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/serve/metrics.h"
#include "rmd/config/metrics_address.h"
#include "libinvasive/base/now.h"
#include "rmd/host/peer.h"
#include "rmd/host/rate_limit.h"
#include "rmd/config/socket_path.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 16, HEAD_MAX = 4096, TIMEOUT_S = 5, FRESH_NS = 100000000 };
enum { FULL_NS = 100000000 }; /* back-off of the listener when there is no room for a client */

struct rmd_metrics_client {
    struct rmd_source source;
    struct rmd_metrics_server *of;
    struct rmd_metrics_client *next;
    uint64_t until_ns;
    char head[HEAD_MAX + 1]; /* of the request */
    size_t got;
    char *answer;
    size_t bytes, sent;
};

static void close_socket(const struct rmd_metrics_server *h, int fd)
{
    if (h->local)
        rmd_peer_close(fd);
    else
        close(fd);
}

static void drop_client(struct rmd_metrics_client *c)
{
    struct rmd_metrics_server *h = c->of;
    struct rmd_metrics_client **link = &h->clients;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    h->nclients--;
    rmd_unwatch(&c->source);
    close_socket(h, c->source.fd);
    free(c->answer);
    free(c);
}

static struct rmd_metrics_client *oldest_client(const struct rmd_metrics_server *h)
{
    struct rmd_metrics_client *c = h->clients;
    while (c && c->next)
        c = c->next;
    return c;
}

static void set_timeout_timer(const struct rmd_metrics_server *h)
{
    const struct rmd_metrics_client *c = oldest_client(h);
    uint64_t at = c ? c->until_ns : 0;
    if (h->backoff_until_ns && (!at || h->backoff_until_ns < at))
        at = h->backoff_until_ns;
    rmd_ring_at(&h->timeout_timer, at);
}

static void timeout_expired(struct rmd_source *source, uint32_t events)
{
    struct rmd_metrics_server *h =
        (void *)((char *)source - offsetof(struct rmd_metrics_server, timeout_timer));
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    for (struct rmd_metrics_client *c;
         (c = oldest_client(h)) != NULL && c->until_ns <= inv_now_ns();)
        drop_client(c);
    if (h->backoff_until_ns && h->backoff_until_ns <= inv_now_ns() &&
        !rmd_watch(&h->listener, EPOLLIN))
        h->backoff_until_ns = 0;
    set_timeout_timer(h);
}

/* --- the answer */

static const char *get_page(struct rmd_metrics_server *h)
{
    if (h->page && inv_now_ns() - h->page_ns < FRESH_NS)
        return h->page;
    free(h->page);
    h->page = rmd_metrics_text(0, true, h->control->executed, &h->page_bytes);
    h->page_ns = inv_now_ns();
    return h->page;
}

static void set_answer(struct rmd_metrics_client *c, const char *status, const char *more,
                       const char *body, size_t bytes, bool with_body)
{
    char head[512];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                     "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
                     status, bytes, more);
    size_t sent_bytes = with_body ? bytes : 0;
    c->answer = malloc((size_t)n + sent_bytes);
    if (!c->answer)
        return;
    memcpy(c->answer, head, (size_t)n);
    memcpy(c->answer + n, body, sent_bytes);
    c->bytes = (size_t)n + sent_bytes;
}

static void set_error_answer(struct rmd_metrics_client *c, const char *status, const char *more)
{
    char body[128];
    int n = snprintf(body, sizeof body, "%s: only GET /metrics is served\n", status);
    set_answer(c, status, more, body, (size_t)n, true);
}

static bool starts_with(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* "GET /metrics HTTP/1.1", or with ?NAME=VALUE..., which says nothing to us. */
static void answer_request(struct rmd_metrics_client *c)
{
    bool get = starts_with(c->head, "GET "), only_head = starts_with(c->head, "HEAD ");
    const char *target = strchr(c->head, ' '), *end = target ? strchr(target + 1, ' ') : NULL;
    size_t line = strcspn(c->head, "\r\n");
    if (!end || end > c->head + line || !starts_with(end, " HTTP/1.")) {
        set_error_answer(c, "400 Bad Request", "");
        return;
    }
    if (!get && !only_head) {
        set_error_answer(c, "405 Method Not Allowed", "Allow: GET, HEAD\r\n");
        return;
    }
    size_t length = strcspn(target + 1, " ?");
    if (length != strlen("/metrics") || strncmp(target + 1, "/metrics", length) != 0) {
        set_error_answer(c, "404 Not Found", "");
        return;
    }
    const char *text = get_page(c->of);
    if (text)
        set_answer(c, "200 OK", "", text, c->of->page_bytes, get);
    else
        set_error_answer(c, "503 Service Unavailable", "");
}

/* --- connections */

/* True when there is nothing more to do for the client. */
static bool send_answer(struct rmd_metrics_client *c)
{
    while (c->sent < c->bytes) {
        ssize_t n = send(c->source.fd, c->answer + c->sent, c->bytes - c->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno != EAGAIN || rmd_watch(&c->source, EPOLLOUT);
        c->sent += (size_t)n;
    }
    /* Bytes that the client has sent after its head are read, or a reset of the connection may lose
     * the answer. */
    char rest[4096];
    bool carries = false;
    shutdown(c->source.fd, SHUT_WR);
    for (int i = 0; i < 16 && !carries; i++)
        if (rmd_peer_receive(c->source.fd, rest, sizeof rest, 0, &carries) <= 0)
            break;
    return true;
}

/* True when the whole head is there, or will never be. */
static bool receive_head(struct rmd_metrics_client *c, bool *gone)
{
    bool carries; /* descriptors: then the client is dropped */
    ssize_t n = rmd_peer_receive(c->source.fd, c->head + c->got, HEAD_MAX - c->got, 0, &carries);
    *gone = carries || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n <= 0 || carries)
        return false;
    c->got += (size_t)n;
    c->head[c->got] = '\0';
    return c->got == HEAD_MAX || strlen(c->head) < c->got || strstr(c->head, "\r\n\r\n") ||
           strstr(c->head, "\n\n");
}

static void back_off_until(struct rmd_metrics_server *h, uint64_t at_ns)
{
    rmd_unwatch(&h->listener);
    if (h->backoff_until_ns < at_ns)
        h->backoff_until_ns = at_ns;
    set_timeout_timer(h);
}

/* begun: rmd_rate_limit_clock at the beginning of the event. */
static void charge_clients(struct rmd_metrics_server *h, uint64_t begun)
{
    h->due_ns = rmd_rate_limit_add_event(h->due_ns, rmd_rate_limit_clock() - begun);
    if (h->due_ns > inv_now_ns())
        back_off_until(h, h->due_ns);
}

static void handle_events(struct rmd_metrics_client *c, uint32_t events)
{
    bool gone = events & EPOLLERR;
    if (!c->answer && !gone && receive_head(c, &gone)) {
        if (c->got == HEAD_MAX || strlen(c->head) < c->got)
            set_error_answer(c, "400 Bad Request", "");
        else
            answer_request(c);
        gone = !c->answer;
    }
    if (gone || (c->answer && send_answer(c))) {
        struct rmd_metrics_server *h = c->of;
        drop_client(c);
        set_timeout_timer(h);
    }
}

static void handle_client(struct rmd_source *source, uint32_t events)
{
    uint64_t begun = rmd_rate_limit_clock();
    struct rmd_metrics_client *c = (struct rmd_metrics_client *)source;
    struct rmd_metrics_server *h = c->of;
    handle_events(c, events); /* it may be no more */
    charge_clients(h, begun);
}

static void add_client(struct rmd_metrics_server *h, int fd)
{
    struct rmd_metrics_client *c = calloc(1, sizeof *c);
    if (c)
        c->source = (struct rmd_source){.fd = fd, .ready = handle_client};
    if (!c || rmd_watch(&c->source, EPOLLIN)) {
        close_socket(h, fd);
        free(c);
        return;
    }
    c->of = h;
    c->until_ns = inv_now_ns() + TIMEOUT_S * UINT64_C(1000000000);
    c->next = h->clients;
    h->clients = c;
    if (++h->nclients > CLIENTS_MAX)
        drop_client(oldest_client(h));
    set_timeout_timer(h);
}

static void accept_client(struct rmd_source *source, uint32_t events)
{
    struct rmd_metrics_server *h = (struct rmd_metrics_server *)source; /* its first member */
    uint64_t begun = rmd_rate_limit_clock();
    (void)events;
    int fd = rmd_peer_accept(source->fd);
    if (fd >= 0)
        add_client(h, fd);
    else if (rmd_peer_full())
        back_off_until(h, inv_now_ns() + FULL_NS);
    charge_clients(h, begun);
}

/* --- the listener */

int rmd_metrics_serve(struct rmd_metrics_server *h, const char *where,
                      const struct rmd_control *control, unsigned *lock_tries)
{
    union rmd_metrics_address a;
    socklen_t size = rmd_metrics_address(where, &a);
    int one = 1;
    rmd_peer_begin();
    h->control = control;
    h->local = a.any.sa_family == AF_UNIX;
    h->listener = (struct rmd_source){
        socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), accept_client};
    if (h->listener.fd >= 0 && a.any.sa_family != AF_UNIX)
        setsockopt(h->listener.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool good = size && h->listener.fd >= 0 &&
                !rmd_timer_open(&h->timeout_timer, timeout_expired) &&
                !rmd_path_listen(h->listener.fd, &a.any, size, CLIENTS_MAX, lock_tries) &&
                !rmd_watch(&h->listener, EPOLLIN);
    if (!good) {
        rmd_error("cannot serve metrics at %s: %s%s", where, rmd_path_error(errno),
                  errno == EAFNOSUPPORT ? ": for rmd.service see metrics.conf in rmd(8)" : "");
        return -1;
    }
    if (*where == '/')
        snprintf(h->path, sizeof h->path, "%s", where);
    return 0;
}

void rmd_metrics_close(struct rmd_metrics_server *h)
{
    while (h->clients)
        drop_client(h->clients);
    if (*h->path)
        rmd_path_remove(h->path);
    if (h->listener.ready && h->listener.fd >= 0)
        close(h->listener.fd);
    free(h->page);
    h->page = NULL;
    h->listener.fd = -1;
}
