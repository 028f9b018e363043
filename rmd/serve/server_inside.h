/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * server_inside.h - connections and the state of the server, only for connections.c (which
 * connections are served, and when) and answer.c (the answers to clients).
 */
#ifndef RMD_SERVER_INSIDE_H
#define RMD_SERVER_INSIDE_H

#include "rmd/serve/server.h"
#include "libinvasive/table/protocol.h"
#include "rmd/domain/domain.h"
#include "rmd/journal/report.h"
#include "rmd/loop/loop.h"
#include "rmd/serve/control.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct connection {
    struct rmd_source source;
    struct connection *next;
    struct ucred peer;
    uid_t about;               /* the user whose domain the request is about, mostly the client's */
    struct rmd_domain *domain; /* that domain, while the request is answered; NULL: there is none */
    struct rmd_report_cursor reports; /* being sent */
    unsigned sent;           /* number of reports, or bytes of `text`, that have been sent */
    bool sending;
    bool operator;           /* the client is root, or rmd's own user */
    bool answered, waiting;  /* INV_CONTROL: it has been answered; it will be */
    bool follows;            /* INV_EVENTS: it also gets later events */
    bool held;               /* it is served later, */
    uint32_t events;         /* with these epoll events */
    uint64_t next_event;     /* number of the next event for it; 0: it gets none */
    char *text;              /* a text or an admin snapshot that is being sent */
    size_t text_bytes;
};

/* Only the loop's thread reads and writes it. */
extern struct rmd_server {
    struct rmd_source listener, later;
    struct rmd_access access_for;
    struct sockaddr_un address;
    struct connection *connections; /* newest first */
    unsigned nconnections;
    uint64_t backoff_until_ns; /* no connection is accepted before; 0: the listener is watched */
    uint64_t later_ns;         /* when the timer rings; 0: never */
    struct rmd_control control;
    struct inv_remote_report message; /* being read; most messages are only the request */
} rmd_server;

/* Closes and frees the connection. */
void rmd_server_close_connection(struct connection *c);

/* Does the request begin a trace?  Then a file comes with it. */
static inline bool rmd_starts_trace(const struct inv_request *r)
{
    return r->kind == INV_TRACE && !strcmp(r->program, "start");
}

/*
 * answer.c
 * rmd_server_refuse - tells the client why there is no answer.
 * rmd_server_answer - answers a well-formed request of an admitted client.  carries: a file for a
 *                     trace came with it.
 * rmd_server_continue_sending - sends the next part of an answer that is being sent.
 * rmd_server_send_events - sends the events that the client has not got, as far as its socket has
 *                     room.
 * rmd_server_send_end_event - sends the last event to a client that follows, if its socket has
 *                     room.  why: "": rmd ends.
 * True: the connection has done its work, and the caller closes it.
 */
void rmd_server_refuse(struct connection *c, enum inv_status status, const char *message);
bool rmd_server_answer(struct connection *c, const struct inv_remote_report *message, size_t bytes,
                       bool carries);
bool rmd_server_continue_sending(struct connection *c, uint32_t events);
bool rmd_server_send_events(struct connection *c);
void rmd_server_send_end_event(struct connection *c, const char *why);

#endif
