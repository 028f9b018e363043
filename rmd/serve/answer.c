/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * answer.c - what clients are told: a reply, and after some kinds of request a report, events, or a
 * text.  What a socket has no room for is sent when it has.
 */
#define _GNU_SOURCE
#include "rmd/serve/server_inside.h"
#include "libinvasive/table/socket.h"
#include "rmd/domain/replaced.h"
#include "rmd/domain/trace.h"
#include "rmd/host/procstat.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
#include "rmd/policy/limit.h"
#include "rmd/serve/admin_snapshot.h"
#include "rmd/serve/metrics.h"
#include "rmd/users/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(SO_PEERPIDFD) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PEERPIDFD 77 /* Linux 6.5; older headers do not have it */
#endif

static void send_reply(int fd, enum inv_status status, unsigned slot, unsigned count, int pass_fd,
                       const char *message)
{
    struct inv_reply r = {.magic = INV_PROTOCOL_MAGIC,
                          .version = INV_PROTOCOL_VERSION,
                          .status = status,
                          .slot = slot,
                          .count = count};
    snprintf(r.message, sizeof r.message, "%s", message);
    if (inv_socket_send(fd, &r, sizeof r, pass_fd, MSG_DONTWAIT) < 0)
        rmd_debug("a client went away before its answer: %s", strerror(errno));
}

void rmd_server_refuse(struct connection *c, enum inv_status status, const char *message)
{
    rmd_debug("refused process %d: %s", (int)c->peer.pid, message);
    send_reply(c->source.fd, status, 0, 0, -1, message);
}

/* A descriptor of the process that connected.  Where the kernel cannot tell it for the socket the
 * pid may be another process's by now: a child may have inherited the client's end and keep it open
 * when the client is dead. */
static int pidfd_of_peer(const struct connection *c)
{
#ifdef SO_PEERPIDFD
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    if (!getsockopt(c->source.fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) || errno != ENOPROTOOPT)
        return pidfd;
#endif
    return (int)syscall(SYS_pidfd_open, c->peer.pid, 0);
}

/* Does the client still run as its user, or has it called exec for a set-uid program (false, with
 * errno)?  An rmd of one user can do nothing to processes of others, and need not check. */
static bool runs_as_its_user(const struct connection *c)
{
    uid_t owner;
    if (!rmd_server.access_for.several)
        return true;
    bool seen = rmd_owner(c->peer.pid, &owner);
    errno = seen ? ESRCH : EACCES;
    return seen && owner == c->peer.uid;
}

/* A pidfd of the client if it lives and runs as its user.  rmd moves members to their user's cores,
 * so a process of another user must not become one.  Without SO_PEERPIDFD it may be another process
 * of the same user, which is no danger: that user may do the same to it. */
static int pidfd_of_client(const struct connection *c)
{
    int pidfd = pidfd_of_peer(c), error = 0;
    if (pidfd < 0)
        return -1;
    /* in this order: while it lives, no other process has its pid */
    if (!runs_as_its_user(c))
        error = errno;
    if (!rmd_alive(pidfd))
        error = ESRCH;
    if (!error)
        return pidfd;
    close(pidfd);
    errno = error;
    return -1;
}

static void answer_join(struct connection *c, const struct inv_request *request)
{
    int pidfd = pidfd_of_client(c);
    if (pidfd < 0) {
        char why[sizeof((struct inv_reply *)0)->message];
        bool gone = errno == ESRCH || errno == EINVAL; /* of Linux 6.5 */
        snprintf(why, sizeof why, "cannot watch process %d: %s", (int)c->peer.pid,
                 gone              ? "it has ended, or is another user's by now"
                 : errno == EACCES ? "/proc does not show it to rmd"
                                   : strerror(errno));
        rmd_server_refuse(c, INV_E_PROTOCOL, why);
        return;
    }
    struct inv_request allowed = *request;
    if (allowed.priority > RMD_PRIORITY + 1 && !c->operator)
        allowed.priority = 0;
    int slot = rmd_users_join(c->peer.uid, c->peer.pid, pidfd, &allowed);
    if (slot >= 0) {
        int own = rmd_replaced_begin(c->domain, (unsigned)slot);
        send_reply(c->source.fd, INV_OK, (unsigned)slot, 0,
                   own < 0 ? rmd_domain_table_fd(c->domain) : own, "");
        if (own >= 0)
            close(own);
    } else
        rmd_server_refuse(
            c, INV_E_FULL,
            errno == ENOSPC   ? "the domain has no slot left"
            : errno == EDQUOT ? "other user IDs of yours have all cores of your share already"
            : errno == EUSERS ? "every core has a user already"
            : errno == EXDEV  ? "Slurm has bound it to none of our CPUs"
            : errno == EFBIG  ? "ulimit -f (RLIMIT_FSIZE) of rmd is smaller than a core table"
                              : "rmd cannot make a core table");
}

/* Is there a domain to show?  If not, the client has been refused: no domain is made for another
 * user because an operator looks. */
static bool has_domain_to_show(struct connection *c)
{
    char why[sizeof((struct inv_reply *)0)->message];
    if (c->about == c->peer.uid || (c->domain && rmd_domain_live(c->domain)))
        return true;
    snprintf(why, sizeof why,
             "user %u has no managed process now: rmctl status lists the users that have some",
             (unsigned)c->about);
    rmd_server_refuse(c, INV_E_USER, why);
    return false;
}

static void answer_observe(struct connection *c)
{
    if (!has_domain_to_show(c))
        return;
    int fd = rmd_domain_observe(c->domain);
    if (fd < 0) {
        rmd_server_refuse(c, INV_E_FULL, "rmd cannot show the core table");
        return;
    }
    unsigned ncores = rmd_domain_topology(c->domain)->ncores;
    unsigned granted = rmd_domain_granted(c->domain);
    bool all = rmd_server.access_for.several || !granted;
    send_reply(c->source.fd, INV_OK, 0, all ? ncores : granted, fd, "");
    close(fd);
}

static ssize_t send_report(int fd, struct rmd_report *r)
{
    struct iovec parts[] = {{&r->report, sizeof r->report},
                            {(void *)r->record, r->report.record_bytes}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = r->record ? 2 : 1};
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Send as many reports as the socket takes.  True when there are no more. */
static bool send_reports(struct connection *c)
{
    struct rmd_report r;
    while (rmd_domain_next_report(c->domain, &c->reports, &r)) {
        bool sent = send_report(c->source.fd, &r) >= 0;
        int error = errno;
        free(r.record);
        if (!sent)
            return error != EAGAIN;
        rmd_report_cursor_advance(&c->reports);
    }
    return true;
}

static bool answer_report(struct connection *c)
{
    c->sending = true;
    send_reply(c->source.fd, INV_OK, 0, rmd_domain_begin_reports(c->domain, &c->reports), -1, "");
    if (send_reports(c))
        return true;
    return rmd_watch(&c->source, EPOLLOUT) != 0;
}

static void answer_submit(struct connection *c, const struct inv_remote_report *remote,
                          size_t bytes)
{
    if (rmd_domain_submit_report(c->domain, c->peer.pid, remote, bytes))
        rmd_server_refuse(c, INV_E_PROTOCOL, "no report, or not from a member");
    else
        send_reply(c->source.fd, INV_OK, 0, 0, -1, "");
}

static void answer_policy(struct connection *c, const char *name)
{
    const struct rmd_policy *policy = *name ? rmd_policy_named(name) : rmd_users_policy(c->about);
    char message[sizeof((struct inv_reply *)0)->message];
    if (!policy) {
        snprintf(message, sizeof message, "no such policy: use %.100s",
                 rmd_policy_names().text);
        rmd_server_refuse(c, INV_E_PROTOCOL, message);
        return;
    }
    if (*name && !rmd_users_choose(c->about, policy)) {
        rmd_server_refuse(c, INV_E_FULL, "rmd has no memory");
        return;
    }
    if (*name)
        rmd_debug("process %d of user %u chooses policy %s for user %u", (int)c->peer.pid,
                  (unsigned)c->peer.uid, policy->name, (unsigned)c->about);
    send_reply(c->source.fd, INV_OK, 0, 0, -1, policy->name);
}

/* The trace's thread takes the file, and answers. */
static void answer_trace_start(struct connection *c)
{
    if (!has_domain_to_show(c))
        return;
    rmd_unwatch(&c->source);
    if (!rmd_trace_start(c->domain, c->peer.uid, c->source.fd))
        c->source.fd = -1;
    else if (errno == EBUSY)
        rmd_server_refuse(c, INV_E_STATE, "a trace is being taken already");
    else
        rmd_server_refuse(c, INV_E_FULL, strerror(errno));
}

/* The trace's thread answers when all is in the file. */
static void answer_trace_stop(struct connection *c)
{
    rmd_unwatch(&c->source);
    rmd_trace_stop(c->domain, c->source.fd);
    c->source.fd = -1;
}

static void answer_trace(struct connection *c, const struct inv_request *request, bool carries)
{
    uid_t taker = 0;
    if (carries)
        answer_trace_start(c);
    else if (rmd_starts_trace(request))
        rmd_server_refuse(c, INV_E_PROTOCOL, "no file came with it");
    else if (strcmp(request->program, "stop") || !c->domain ||
             !rmd_trace_taker(c->domain, &taker))
        rmd_server_refuse(c, INV_E_STATE, "no trace is being taken");
    else if (!c->operator && taker != c->peer.uid)
        rmd_server_refuse(c, INV_E_STATE, "an operator has begun this trace, and ends it");
    else
        answer_trace_stop(c);
}

/* --- rmctl: commands, events, metrics */

static void send_outcome(void *client, const struct inv_outcome *outcome)
{
    struct connection *c = client;
    send_reply(c->source.fd, INV_OK, 0, 1, -1, "");
    if (send(c->source.fd, outcome, sizeof *outcome, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        rmd_debug("a client went away before its answer: %s", strerror(errno));
    c->answered = true;
    if (c->waiting) {
        c->waiting = false;
        rmd_server_close_connection(c);
    }
}

static bool answer_control(struct connection *c, const void *message)
{
    struct inv_control command;
    memcpy(&command, message, sizeof command);
    const struct rmd_requester requester = {c->peer.uid, c->operator, c, send_outcome};
    rmd_control(&rmd_server.control, &command, &requester);
    c->waiting = !c->answered;
    return c->answered;
}

void rmd_server_send_end_event(struct connection *c, const char *why)
{
    struct inv_event end = {.kind = INV_EVENT_END, .uid = INV_UNSAID, .rank = -1};
    snprintf(end.text, sizeof end.text, "%s", why);
    send(c->source.fd, &end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool rmd_server_send_events(struct connection *c)
{
    struct inv_event event;
    for (;;) {
        uint64_t next = c->next_event;
        bool is = rmd_events_next(&rmd_users_shared()->events, &next, c->peer.uid, c->operator,
                                  &event);
        if (!is && c->follows) {
            c->next_event = next; /* what is not for it need not be looked at again */
            return rmd_watch(&c->source, EPOLLIN) != 0;
        }
        if (!is)
            event = (struct inv_event){.kind = INV_EVENT_END, .uid = INV_UNSAID, .rank = -1};
        if (send(c->source.fd, &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return errno != EAGAIN || rmd_watch(&c->source, EPOLLIN | EPOLLOUT);
        if (!is)
            return true;
        c->next_event = next;
        c->sent++;
    }
}

static bool answer_events(struct connection *c, const void *message)
{
    struct inv_watch watch;
    memcpy(&watch, message, sizeof watch);
    c->follows = watch.follow;
    c->next_event = watch.since ? watch.since : 1;
    c->sending = true;
    send_reply(c->source.fd, INV_OK, 0, 0, -1, "");
    return rmd_server_send_events(c);
}

static bool send_text(struct connection *c)
{
    while (c->sent < c->text_bytes) {
        size_t left = c->text_bytes - c->sent;
        size_t chunk = left < INV_CHUNK ? left : INV_CHUNK;
        if (send(c->source.fd, c->text + c->sent, chunk, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return errno != EAGAIN || rmd_watch(&c->source, EPOLLOUT);
        c->sent += (unsigned)chunk;
    }
    return true;
}

/* `text` is of c->text_bytes bytes, and ours from here on. */
static bool answer_text(struct connection *c, char *text)
{
    c->text = text;
    if (!c->text) {
        rmd_server_refuse(c, INV_E_FULL, "rmd has no memory");
        return true;
    }
    c->sending = true;
    send_reply(c->source.fd, INV_OK, 0, (unsigned)((c->text_bytes + INV_CHUNK - 1) / INV_CHUNK), -1,
               "");
    return send_text(c);
}

static bool answer_admin_snapshot(struct connection *c)
{
    bool all = c->operator && c->about == c->peer.uid;
    return !has_domain_to_show(c) ||
           answer_text(c, rmd_admin_snapshot(c->domain, all, &c->text_bytes));
}

bool rmd_server_continue_sending(struct connection *c, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR) || (c->next_event && events & EPOLLIN))
        return true; /* a client that follows sends no more */
    if (c->text)
        return send_text(c);
    if (c->next_event)
        return rmd_server_send_events(c);
    c->domain = rmd_users_domain(c->peer.uid); /* it may have been forgotten since */
    return !c->domain || send_reports(c);
}

bool rmd_server_answer(struct connection *c, const struct inv_remote_report *message,
                           size_t bytes, bool carries)
{
    const struct inv_request *request = &message->request;
    switch (request->kind) {
    case INV_SUBMIT_REPORT:
        answer_submit(c, message, bytes);
        return true;
    case INV_JOIN:
        answer_join(c, request);
        return true;
    case INV_OBSERVE:
        answer_observe(c);
        return true;
    case INV_LEAVE:
        rmd_domain_leave(c->domain, c->peer.pid);
        send_reply(c->source.fd, INV_OK, 0, 0, -1, "");
        return true;
    case INV_SAY:
        send_reply(c->source.fd, INV_OK, 0, rmd_domain_says_first(c->domain, request->launch),
                   -1, "");
        return true;
    case INV_REPORT:
        return answer_report(c);
    case INV_POLICY:
        answer_policy(c, request->program);
        return true;
    case INV_CONTROL:
        return answer_control(c, message);
    case INV_EVENTS:
        return answer_events(c, message);
    case INV_METRICS:
        return answer_text(c, rmd_metrics_text(c->peer.uid, c->operator,
                                               rmd_server.control.executed, &c->text_bytes));
    case INV_ADMIN_SNAPSHOT:
        return answer_admin_snapshot(c);
    case INV_TRACE:
        answer_trace(c, request, carries);
        return true;
    default:
        rmd_server_refuse(c, INV_E_PROTOCOL, "unknown kind of request");
        return true;
    }
}
