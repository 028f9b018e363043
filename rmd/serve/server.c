/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * server.c - one request, one answer, then the connection is closed.
 *
 * The kernel tells uid, pid and pidfd of a client, never a message.  No client can make rmd wait:
 * every socket is non-blocking.  The number of connections is limited, in all and for each user, so
 * that clients which never send or read do not keep others out.  Requests of a user above the rate
 * limit are served later (rate_limit.h).
 */
#define _GNU_SOURCE
#include "rmd/serve/server.h"
#include "rmd/serve/admin_snapshot.h"
#include "rmd/serve/control.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "rmd/serve/metrics.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "rmd/host/peer.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/domain/replaced.h"
#include "rmd/journal/report.h"
#include "libinvasive/table/socket.h"
#include "rmd/config/socket_path.h"
#include "rmd/host/subuid.h"
#include "rmd/domain/trace.h"
#include "rmd/policy/limit.h"
#include "rmd/users/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(SO_PEERPIDFD) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PEERPIDFD 77 /* Linux 6.5; older headers do not have it */
#endif

#if !defined(SO_PEERGROUPS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

enum { CONNECTIONS_MAX = 256, CONNECTIONS_OF_USER = 128, RANK_MAX = 1 << 24 };
enum { GROUPS_MAX = 65536 }; /* NGROUPS_MAX of Linux */
/* The listener backs off for BACKOFF_FACTOR times the duration of an accept if the client has to
 * wait anyway, and for FULL_NS if there is no room for a client. */
enum { BACKOFF_FACTOR = 20, FULL_NS = 100000000 };

struct connection {
    struct rmd_source source;
    struct connection *next;
    struct ucred peer;
    uid_t about;               /* the user whose domain it asks for, mostly its own; */
    struct rmd_domain *domain; /* which this is, while it is answered; NULL: not known */
    struct rmd_report_cursor reports; /* being sent */
    unsigned sent;
    bool sending;
    bool operator;           /* root, or our own user */
    bool answered, waiting;  /* INV_CONTROL: has been; will be */
    bool follows;            /* INV_EVENTS: also those to come */
    bool held;               /* it is served later, */
    uint32_t events;         /* with these */
    uint64_t next_event;     /* of those that it gets; 0 it gets none */
    char *text;              /* or an admin snapshot: being sent; `sent` bytes of it have been */
    size_t text_bytes;
};

/* Only the loop's thread reads and writes it. */
static struct {
    struct rmd_source listener, later;
    struct rmd_access access_for;
    struct sockaddr_un address;
    struct connection *connections; /* newest first */
    unsigned nconnections;
    uint64_t backoff_until_ns; /* no connection is accepted before; 0: the listener is watched */
    uint64_t later_ns;         /* when the timer rings; 0: never */
    struct rmd_control control;
    struct inv_remote_report message; /* that is being read; most are only the request */
} server = {.listener.fd = -1, .later.fd = -1};

static void close_connection(struct connection *c)
{
    struct connection **link = &server.connections;
    while (*link != c) {
        inv_assert(*link != NULL); /* c is in the list */
        link = &(*link)->next;
    }
    *link = c->next;
    inv_assert(server.nconnections > 0);
    server.nconnections--;
    if (c->waiting)
        rmd_control_forget(&server.control, c);
    free(c->text);
    if (c->source.fd >= 0) {
        rmd_unwatch(&c->source);
        rmd_peer_close(c->source.fd);
    }
    rmd_report_cursor_free(&c->reports);
    free(c);
}

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

static void send_refusal(struct connection *c, enum inv_status status, const char *message)
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

/* Is it still its user's, which it is no more after exec of a set-uid program?  An rmd of one user
 * may do nothing to another's, and need not see all of its user's in /proc.  If not, with errno. */
static bool runs_as_its_user(const struct connection *c)
{
    uid_t owner;
    if (!server.access_for.several)
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
        send_refusal(c, INV_E_PROTOCOL, why);
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
        send_refusal(
            c, INV_E_FULL,
            errno == ENOSPC   ? "the domain has no slot left"
            : errno == EDQUOT ? "other user IDs of yours have all cores of your share already"
            : errno == EUSERS ? "every core has a user already"
            : errno == EXDEV  ? "Slurm has bound it to none of our CPUs"
            : errno == EFBIG  ? "ulimit -f (RLIMIT_FSIZE) of rmd is smaller than a core table"
                              : "rmd cannot make a core table");
}

/* Is there something to be seen?  Else it has been refused: another user gets no domain, and none
 * is shown as if there were one, because an operator looks. */
static bool has_domain_to_show(struct connection *c)
{
    char why[sizeof((struct inv_reply *)0)->message];
    if (c->about == c->peer.uid || (c->domain && rmd_domain_live(c->domain)))
        return true;
    snprintf(why, sizeof why,
             "user %u has no managed process now: rmctl status lists the users that have some",
             (unsigned)c->about);
    send_refusal(c, INV_E_USER, why);
    return false;
}

static void answer_observe(struct connection *c)
{
    if (!has_domain_to_show(c))
        return;
    int fd = rmd_domain_observe(c->domain);
    if (fd < 0) {
        send_refusal(c, INV_E_FULL, "rmd cannot show the core table");
        return;
    }
    unsigned ncores = rmd_domain_topology(c->domain)->ncores;
    unsigned granted = rmd_domain_granted(c->domain);
    bool all = server.access_for.several || !granted;
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

static bool is_plausible(const struct inv_request *r)
{
    return r->rank >= -1 && r->rank <= RANK_MAX && r->size >= -1 && r->size <= RANK_MAX &&
           r->local_size >= -1 && r->local_size <= RANK_MAX && r->local_rank >= -1 &&
           r->local_rank <= RANK_MAX &&
           memchr(r->program, '\0', sizeof r->program);
}

static void answer_submit(struct connection *c, const struct inv_remote_report *remote,
                          size_t bytes)
{
    if (rmd_domain_submit_report(c->domain, c->peer.pid, remote, bytes))
        send_refusal(c, INV_E_PROTOCOL, "no report, or not from a member");
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
        send_refusal(c, INV_E_PROTOCOL, message);
        return;
    }
    if (*name && !rmd_users_choose(c->about, policy)) {
        send_refusal(c, INV_E_FULL, "rmd has no memory");
        return;
    }
    if (*name)
        rmd_debug("process %d of user %u chooses policy %s for user %u", (int)c->peer.pid,
                  (unsigned)c->peer.uid, policy->name, (unsigned)c->about);
    send_reply(c->source.fd, INV_OK, 0, 0, -1, policy->name);
}

static bool starts_trace(const struct inv_request *r)
{
    return r->kind == INV_TRACE && !strcmp(r->program, "start");
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
        send_refusal(c, INV_E_STATE, "a trace is being taken already");
    else
        send_refusal(c, INV_E_FULL, strerror(errno));
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
    else if (starts_trace(request))
        send_refusal(c, INV_E_PROTOCOL, "no file came with it");
    else if (strcmp(request->program, "stop") || !c->domain ||
             !rmd_trace_taker(c->domain, &taker))
        send_refusal(c, INV_E_STATE, "no trace is being taken");
    else if (!c->operator && taker != c->peer.uid)
        send_refusal(c, INV_E_STATE, "an operator has begun this trace, and ends it");
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
        close_connection(c);
    }
}

static bool answer_control(struct connection *c, const void *message)
{
    struct inv_control command;
    memcpy(&command, message, sizeof command);
    const struct rmd_asker asker = {c->peer.uid, c->operator, c, send_outcome};
    rmd_control(&server.control, &command, &asker);
    c->waiting = !c->answered;
    return c->answered;
}

/* Sends the last event to a client that follows, if its socket has room.  why: "": rmd ends. */
static void send_end_event(struct connection *c, const char *why)
{
    struct inv_event end = {.kind = INV_EVENT_END, .uid = INV_UNSAID, .rank = -1};
    snprintf(end.text, sizeof end.text, "%s", why);
    send(c->source.fd, &end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Send as many events as there are and the socket takes.  True when the connection is done. */
static bool send_events(struct connection *c)
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
    return send_events(c);
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
        send_refusal(c, INV_E_FULL, "rmd has no memory");
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

/* What a connection is in the middle of sending.  True when it is done. */
static bool continue_sending(struct connection *c, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR) || (c->next_event && events & EPOLLIN))
        return true; /* a client that follows sends no more */
    if (c->text)
        return send_text(c);
    if (c->next_event)
        return send_events(c);
    c->domain = rmd_users_domain(c->peer.uid); /* it may have been forgotten since */
    return !c->domain || send_reports(c);
}

/* True when the connection has done its work.  `carries` a file for a trace? */
static bool answer_request(struct connection *c, const struct inv_remote_report *message,
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
        return answer_text(c, rmd_metrics_text(c->peer.uid, c->operator, server.control.executed,
                                               &c->text_bytes));
    case INV_ADMIN_SNAPSHOT:
        return answer_admin_snapshot(c);
    case INV_TRACE:
        answer_trace(c, request, carries);
        return true;
    default:
        send_refusal(c, INV_E_PROTOCOL, "unknown kind of request");
        return true;
    }
}

/* May it be a struct inv_about? */
static bool may_name_user(uint32_t kind)
{
    return kind == INV_OBSERVE || kind == INV_ADMIN_SNAPSHOT || kind == INV_POLICY ||
           kind == INV_TRACE;
}

/* Is it of another protocol version?  Then its size may be another one, too. */
static bool has_other_version(const struct inv_request *r, size_t bytes)
{
    return bytes >= offsetof(struct inv_request, kind) && r->magic == INV_PROTOCOL_MAGIC &&
           r->version != INV_PROTOCOL_VERSION;
}

/* Checks the size and the fields of a message of `bytes` bytes.  At most sizeof(struct
 * inv_remote_report) of them are in memory. */
static bool is_well_formed(const struct inv_request *r, size_t bytes)
{
    if (bytes < sizeof *r || r->magic != INV_PROTOCOL_MAGIC || !is_plausible(r))
        return false;
    switch (r->kind) {
    case INV_SUBMIT_REPORT:
        return bytes <= sizeof(struct inv_remote_report);
    case INV_CONTROL:
        return bytes == sizeof(struct inv_control);
    case INV_EVENTS:
        return bytes == sizeof(struct inv_watch);
    default:
        return bytes == sizeof *r || (may_name_user(r->kind) && bytes == sizeof(struct inv_about));
    }
}

/* The user whose domain a well-formed message is about. */
static uid_t user_of_request(const struct connection *c, const struct inv_remote_report *message,
                             size_t bytes)
{
    struct inv_about about = {.uid = INV_UNSAID};
    if (may_name_user(message->request.kind) && bytes == sizeof about)
        memcpy(&about, message, sizeof about);
    return about.uid == INV_UNSAID ? c->peer.uid : about.uid;
}

/* To the domain of this user, if that is for the other end to see.  Else it has been refused. */
static bool select_domain(struct connection *c, uid_t uid)
{
    char why[sizeof((struct inv_reply *)0)->message];
    c->about = uid;
    if (uid == c->peer.uid)
        return true;
    c->domain = c->operator ? rmd_users_known(uid) : NULL;
    if (!c->operator)
        snprintf(why, sizeof why,
                 "only root and the user that runs rmd may look at and steer the domain of user "
                 "%u: yours is shown without --user",
                 (unsigned)uid);
    else if (!rmd_users_served(uid))
        snprintf(why, sizeof why, "user %u has no processes here: this rmd serves user %u only",
                 (unsigned)uid, (unsigned)getuid());
    else
        return true;
    send_refusal(c, INV_E_USER, why);
    return false;
}

#ifdef SO_PEERGROUPS
/* Is it among the supplementary groups that the other end had when it connected? */
static bool is_in_group(int fd, gid_t gid)
{
    socklen_t size = GROUPS_MAX * sizeof(gid_t);
    gid_t *groups = malloc(size);
    bool found = false;
    if (groups && !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
        for (socklen_t i = 0; !found && i < size / sizeof *groups; i++)
            found = groups[i] == gid;
    free(groups);
    return found;
}
#else
static bool is_in_group(int fd, gid_t gid)
{
    (void)fd;
    (void)gid;
    return false;
}
#endif

static bool is_operator(uid_t uid)
{
    return uid == getuid() || (server.access_for.several && uid == 0);
}

/* May the other end ask, and is there an answer?  Else it has been refused. */
static bool admit_client(struct connection *c)
{
    bool own = c->operator = is_operator(c->peer.uid);
    if (c->peer.pid <= 0 || !rmd_users_served(c->peer.uid)) { /* pid 0: of another namespace */
        send_refusal(c, INV_E_UID, "this rmd serves another user, or another pid namespace");
        return false;
    }
    if (!own && server.access_for.group != RMD_GROUP_ANY &&
        (server.access_for.group == RMD_GROUP_DEFAULT ||
         (c->peer.gid != server.access_for.gid &&
          !is_in_group(c->source.fd, server.access_for.gid)))) {
        send_refusal(c, INV_E_UID, "not in the group that may use this rmd");
        return false;
    }
    c->domain = rmd_users_domain(c->peer.uid);
    if (!c->domain)
        send_refusal(c, INV_E_FULL, "rmd has no memory");
    return c->domain != NULL;
}

static void receive_request(struct connection *c, uint32_t events)
{
    if (c->waiting || c->sending) {
        if (c->waiting || continue_sending(c, events))
            close_connection(c);
        return;
    }
    struct inv_remote_report *message = &server.message;
    const struct inv_request *request = &message->request;
    bool carries; /* descriptors, and is still there */
    ssize_t n = rmd_peer_receive(c->source.fd, message, sizeof *message, MSG_TRUNC, &carries);
    if (n < 0 && errno == EAGAIN)
        return;
    bool done = true;
    if (n > 0 && admit_client(c)) {
        if (has_other_version(request, (size_t)n))
            send_refusal(c, INV_E_PROTOCOL, "other protocol version: mixed installations?");
        else if (!is_well_formed(request, (size_t)n))
            send_refusal(c, INV_E_PROTOCOL, "malformed request");
        else if (carries && !starts_trace(request))
            send_refusal(c, INV_E_PROTOCOL, "a descriptor came with a request that has none");
        else if (select_domain(c, user_of_request(c, message, (size_t)n)))
            done = answer_request(c, message, (size_t)n, carries);
    }
    if (done)
        close_connection(c);
}

/* --- users that ask for much */

static uint64_t rate_limit_due_ns(uid_t uid)
{
    return rmd_rate_limit_due_ns(&rmd_users_shared()->rates, uid);
}

static bool is_within_rate_limit(uid_t uid)
{
    return is_operator(uid) || rate_limit_due_ns(uid) <= inv_now_ns();
}

static void charge_user(uid_t uid, uint64_t begun)
{
    if (!is_operator(uid))
        rmd_rate_limit_charge(&rmd_users_shared()->rates, uid, rmd_rate_limit_clock() - begun);
}

static void set_later_timer(uint64_t at)
{
    if (server.later_ns && server.later_ns <= at)
        return;
    server.later_ns = at;
    rmd_ring_at(&server.later, at);
}

static void hold_connection(struct connection *c, uint32_t events)
{
    rmd_unwatch(&c->source);
    c->held = true;
    c->events = events;
    set_later_timer(rate_limit_due_ns(c->peer.uid));
}

static void handle_client(struct rmd_source *source, uint32_t events)
{
    struct connection *c = (struct connection *)source;
    uid_t uid = c->peer.uid;
    if (!is_within_rate_limit(uid)) {
        hold_connection(c, events);
        return;
    }
    uint64_t begun = rmd_rate_limit_clock();
    receive_request(c, events); /* it may be no more */
    charge_user(uid, begun);
}

/* The oldest one of those that need not wait any longer. */
static struct connection *next_held_connection(void)
{
    struct connection *oldest = NULL;
    for (struct connection *c = server.connections; c; c = c->next)
        if (c->held && is_within_rate_limit(c->peer.uid))
            oldest = c;
    return oldest;
}

static void serve_held_connection(struct connection *c)
{
    c->held = false;
    if (rmd_watch(&c->source, c->sending ? EPOLLOUT : EPOLLIN))
        close_connection(c);
    else
        handle_client(&c->source, c->events);
}

static void later_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    server.later_ns = 0;
    if (server.backoff_until_ns && server.backoff_until_ns <= inv_now_ns() &&
        !rmd_watch(&server.listener, EPOLLIN))
        server.backoff_until_ns = 0;
    if (server.backoff_until_ns)
        set_later_timer(server.backoff_until_ns);
    for (struct connection *c; (c = next_held_connection()) != NULL;)
        serve_held_connection(c);
    for (struct connection *c = server.connections; c; c = c->next)
        if (c->held)
            set_later_timer(rate_limit_due_ns(c->peer.uid));
}

/* Sends new events to the clients that follow.  Users are charged only for events that they get. */
static void send_new_events(void)
{
    for (struct connection *c = server.connections, *next; c; c = next) {
        next = c->next;
        if (!c->follows || c->held)
            continue;
        uid_t uid = c->peer.uid;
        if (!is_within_rate_limit(uid)) {
            hold_connection(c, 0);
            continue;
        }
        uint64_t begun = rmd_rate_limit_clock();
        unsigned sent = c->sent;
        bool done = send_events(c), more = c->sent != sent;
        if (done)
            close_connection(c);
        if (done || more)
            charge_user(uid, begun);
    }
}

/* Of this user and its subordinate IDs, the newest of all left out: the oldest one that is not in
 * the middle of an answer, else the oldest one. */
static struct connection *connection_to_close(uid_t uid)
{
    struct rmd_persons *persons = &rmd_users_shared()->persons;
    struct connection *oldest = NULL, *idle = NULL;
    for (struct connection *c = server.connections->next; c; c = c->next)
        if (rmd_person(persons, c->peer.uid) == rmd_person(persons, uid)) {
            oldest = c;
            idle = c->waiting || c->sending ? idle : c;
        }
    return idle ? idle : oldest;
}

static unsigned count_connections(uid_t uid)
{
    struct rmd_persons *persons = &rmd_users_shared()->persons;
    unsigned n = 0;
    for (struct connection *c = server.connections; c; c = c->next)
        n += rmd_person(persons, c->peer.uid) == rmd_person(persons, uid);
    return n;
}

/* The user with most connections, not counting the newest one.  An operator only if no other user
 * has one. */
static uid_t user_with_most_connections(void)
{
    uid_t uid = server.connections->peer.uid;
    unsigned most = 0;
    bool others = false;
    for (struct connection *c = server.connections->next; c; c = c->next)
        others |= !is_operator(c->peer.uid);
    for (struct connection *c = server.connections->next; c; c = c->next) {
        unsigned n = is_operator(c->peer.uid) && others ? 0 : count_connections(c->peer.uid);
        if (n > most) {
            most = n;
            uid = c->peer.uid;
        }
    }
    return uid;
}

/* Closes a connection if the newest one is too many.  The user of the closed one is charged. */
static void close_excess_connection(void)
{
    uint64_t begun = rmd_rate_limit_clock();
    uid_t uid = server.connections->peer.uid;
    struct connection *c = NULL;
    if (server.access_for.several && count_connections(uid) > CONNECTIONS_OF_USER)
        c = connection_to_close(uid);
    else if (server.nconnections > CONNECTIONS_MAX)
        c = connection_to_close(user_with_most_connections());
    if (!c)
        return;
    uid = c->peer.uid;
    if (c->follows)
        send_end_event(c, "rmd keeps no more connections of this user");
    close_connection(c);
    charge_user(uid, begun);
}

static void add_connection(int fd)
{
    struct connection *c = calloc(1, sizeof *c);
    socklen_t size = sizeof c->peer;
    if (c)
        c->source = (struct rmd_source){.fd = fd, .ready = handle_client};
    if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->peer, &size) ||
        rmd_watch(&c->source, EPOLLIN)) {
        rmd_peer_close(fd);
        free(c);
        return;
    }
    c->next = server.connections;
    server.connections = c;
    server.nconnections++;
}

/* The user of a client is known only after the accept.  After a client that has to wait anyway, the
 * listener backs off, so that rmd does not spend its time on accepting such clients. */
static void back_off_listener(uint64_t took_ns)
{
    rmd_unwatch(&server.listener);
    server.backoff_until_ns = inv_now_ns() + took_ns * BACKOFF_FACTOR;
    set_later_timer(server.backoff_until_ns);
}

static void accept_client(struct rmd_source *source, uint32_t events)
{
    uint64_t begun = rmd_rate_limit_clock();
    (void)events;
    int fd = rmd_peer_accept(source->fd);
    if (fd < 0 && rmd_peer_full())
        back_off_listener(FULL_NS / BACKOFF_FACTOR);
    if (fd < 0)
        return;
    add_connection(fd);
    if (!server.connections || server.connections->source.fd != fd)
        return;
    uid_t uid = server.connections->peer.uid;
    charge_user(uid, begun);
    close_excess_connection(); /* another one */
    if (!is_within_rate_limit(uid))
        back_off_listener(rmd_rate_limit_clock() - begun);
}

static int start_serving(const struct rmd_access *access)
{
    server.access_for = *access;
    rmd_peer_begin();
    server.listener.ready = accept_client;
    return rmd_timer_open(&server.later, later_timer_expired) ||
           rmd_events_watch(&rmd_users_shared()->events, send_new_events) ||
           rmd_watch(&server.listener, EPOLLIN);
}

/* Gives the path to root and rmd's own user only, or to a group, or to all users. */
static bool set_path_permissions(const struct rmd_access *access)
{
    const char *path = server.address.sun_path;
    if (path[0] == '\0' || access->group == RMD_GROUP_DEFAULT)
        return true;
    if (access->group == RMD_GROUP_ANY)
        return !chmod(path, 0666);
    return !chown(path, (uid_t)-1, access->gid) && !chmod(path, 0660);
}

/* /run is empty after each boot. */
void rmd_server_make_directory(const char *name)
{
    char path[sizeof server.address.sun_path];
    snprintf(path, sizeof path, "%s", name);
    char *slash = strrchr(path, '/');
    if (name[0] != '/' || slash == path)
        return;
    *slash = '\0';
    if (!mkdir(path, 0755))
        rmd_log(RMD_INFO, "made directory %s", path);
}

int rmd_server_open(const char *name, const struct rmd_access *access, unsigned *lock_tries)
{
    socklen_t size = inv_socket_address(&server.address, name);
    char unfit[INV_SOCKET_UNFIT];
    if (inv_socket_unfit(name, unfit)) {
        rmd_error("%s: use another one", unfit);
        return -1;
    }
    server.listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (access->several)
        rmd_server_make_directory(name);
    const struct sockaddr *any = (const struct sockaddr *)&server.address;
    mode_t mask = umask(0177); /* a path is for our user only, at first */
    bool listens = server.listener.fd >= 0 &&
                   !rmd_path_listen(server.listener.fd, any, size, 128, lock_tries);
    umask(mask);
    bool ok = listens && set_path_permissions(access) && !start_serving(access);
    if (!listens)
        server.address.sun_path[0] = '\0'; /* it is not this rmd's: do not remove it */
    if (!ok)
        rmd_error("cannot listen on %s: %s%s", name, rmd_path_error(errno),
                  errno == ENOENT ? ": its directory must be there" : "");
    return ok ? 0 : -1;
}

/* The mode of an inherited socket decides which users can connect. */
static void warn_of_socket_mode(int fd, const struct rmd_access *access)
{
    struct sockaddr_un name = {0};
    socklen_t size = sizeof name;
    struct stat st;
    if (access->group == RMD_GROUP_DEFAULT || getsockname(fd, (struct sockaddr *)&name, &size) ||
        name.sun_path[0] != '/' || stat(name.sun_path, &st))
        return;
    bool anybody = (st.st_mode & 0006) == 0006;
    bool its_group = (st.st_mode & 0060) == 0060 && st.st_gid == access->gid;
    if (!anybody && (access->group == RMD_GROUP_ANY || !its_group))
        rmd_log(RMD_WARNING,
                "%s is of group %u and has mode %03o: not all users that socket-group lets in can "
                "connect; see there in rmd.conf(5)",
                name.sun_path, (unsigned)st.st_gid, (unsigned)st.st_mode & 0777);
}

int rmd_server_inherit(int fd, const struct rmd_access *access)
{
    int listens = 0, type = 0;
    socklen_t size = sizeof listens;
    server.listener.fd = fd;
    warn_of_socket_mode(fd, access);
    if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens &&
        !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET &&
        fcntl(fd, F_SETFD, FD_CLOEXEC) >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) >= 0 &&
        !start_serving(access))
        return 0;
    rmd_error("descriptor %d is no listening SOCK_SEQPACKET socket", fd);
    return -1;
}

const struct rmd_control *rmd_server_control(void) { return &server.control; }

void rmd_server_close(void)
{
    while (server.connections) {
        if (server.connections->follows)
            send_end_event(server.connections, "");
        close_connection(server.connections);
    }
    if (server.address.sun_path[0] != '\0')
        rmd_path_remove(server.address.sun_path);
    if (server.listener.fd >= 0)
        close(server.listener.fd);
}
