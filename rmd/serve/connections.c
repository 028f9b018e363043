/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * connections.c - one request, one answer, then the connection is closed.
 *
 * The kernel tells uid, pid and pidfd of a client, never a message.  No client can make rmd wait:
 * every socket is non-blocking.  The number of connections is limited, in all and for each user, so
 * that clients which never send or read do not keep others out.  Requests of a user above the rate
 * limit are served later (rate_limit.h).
 */
#define _GNU_SOURCE
#include "rmd/serve/server_inside.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/now.h"
#include "libinvasive/table/socket.h"
#include "rmd/config/socket_path.h"
#include "rmd/host/peer.h"
#include "rmd/host/rate_limit.h"
#include "rmd/host/subuid.h"
#include "rmd/journal/events.h"
#include "rmd/loop/log.h"
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

#if !defined(SO_PEERGROUPS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

enum { CONNECTIONS_MAX = 256, CONNECTIONS_OF_USER = 128, RANK_MAX = 1 << 24 };
enum { GROUPS_MAX = 65536 }; /* NGROUPS_MAX of Linux */
/* The listener backs off for BACKOFF_FACTOR times the duration of an accept if the client has to
 * wait anyway, and for FULL_NS if there is no room for a client. */
enum { BACKOFF_FACTOR = 20, FULL_NS = 100000000 };

struct rmd_server rmd_server = {.listener.fd = -1, .later.fd = -1};

void rmd_server_close_connection(struct connection *c)
{
    struct connection **link = &rmd_server.connections;
    while (*link != c) {
        inv_assert(*link != NULL); /* c is in the list */
        link = &(*link)->next;
    }
    *link = c->next;
    inv_assert(rmd_server.nconnections > 0);
    rmd_server.nconnections--;
    if (c->waiting)
        rmd_control_forget(&rmd_server.control, c);
    free(c->text);
    if (c->source.fd >= 0) {
        rmd_unwatch(&c->source);
        rmd_peer_close(c->source.fd);
    }
    rmd_report_cursor_free(&c->reports);
    free(c);
}

static bool is_plausible(const struct inv_request *r)
{
    return r->rank >= -1 && r->rank <= RANK_MAX && r->size >= -1 && r->size <= RANK_MAX &&
           r->local_size >= -1 && r->local_size <= RANK_MAX && r->local_rank >= -1 &&
           r->local_rank <= RANK_MAX &&
           memchr(r->program, '\0', sizeof r->program);
}

/* May a request of this kind be a struct inv_about? */
static bool may_name_user(uint32_t kind)
{
    return kind == INV_OBSERVE || kind == INV_ADMIN_SNAPSHOT || kind == INV_POLICY ||
           kind == INV_TRACE;
}

/* Is the request of another protocol version?  Then its size may be another one, too. */
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

/* Selects the domain of this user, if the client may see it.  If not, the client has been
 * refused. */
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
    rmd_server_refuse(c, INV_E_USER, why);
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
    return uid == getuid() || (rmd_server.access_for.several && uid == 0);
}

/* May the client ask, and is there an answer?  If not, the client has been refused. */
static bool admit_client(struct connection *c)
{
    bool own = c->operator = is_operator(c->peer.uid);
    if (c->peer.pid <= 0 || !rmd_users_served(c->peer.uid)) { /* pid 0: of another namespace */
        rmd_server_refuse(c, INV_E_UID, "this rmd serves another user, or another pid namespace");
        return false;
    }
    if (!own && rmd_server.access_for.group != RMD_GROUP_ANY &&
        (rmd_server.access_for.group == RMD_GROUP_DEFAULT ||
         (c->peer.gid != rmd_server.access_for.gid &&
          !is_in_group(c->source.fd, rmd_server.access_for.gid)))) {
        rmd_server_refuse(c, INV_E_UID, "not in the group that may use this rmd");
        return false;
    }
    c->domain = rmd_users_domain(c->peer.uid);
    if (!c->domain)
        rmd_server_refuse(c, INV_E_FULL, "rmd has no memory");
    return c->domain != NULL;
}

static void receive_request(struct connection *c, uint32_t events)
{
    if (c->waiting || c->sending) {
        if (c->waiting || rmd_server_continue_sending(c, events))
            rmd_server_close_connection(c);
        return;
    }
    struct inv_remote_report *message = &rmd_server.message;
    const struct inv_request *request = &message->request;
    bool carries; /* descriptors, and is still there */
    ssize_t n = rmd_peer_receive(c->source.fd, message, sizeof *message, MSG_TRUNC, &carries);
    if (n < 0 && errno == EAGAIN)
        return;
    bool done = true;
    if (n > 0 && admit_client(c)) {
        if (has_other_version(request, (size_t)n))
            rmd_server_refuse(c, INV_E_PROTOCOL, "other protocol version: mixed installations?");
        else if (!is_well_formed(request, (size_t)n))
            rmd_server_refuse(c, INV_E_PROTOCOL, "malformed request");
        else if (carries && !rmd_starts_trace(request))
            rmd_server_refuse(c, INV_E_PROTOCOL, "a descriptor came with a request that has none");
        else if (select_domain(c, user_of_request(c, message, (size_t)n)))
            done = rmd_server_answer(c, message, (size_t)n, carries);
    }
    if (done)
        rmd_server_close_connection(c);
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
    if (rmd_server.later_ns && rmd_server.later_ns <= at)
        return;
    rmd_server.later_ns = at;
    rmd_ring_at(&rmd_server.later, at);
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
    for (struct connection *c = rmd_server.connections; c; c = c->next)
        if (c->held && is_within_rate_limit(c->peer.uid))
            oldest = c;
    return oldest;
}

static void serve_held_connection(struct connection *c)
{
    c->held = false;
    if (rmd_watch(&c->source, c->sending ? EPOLLOUT : EPOLLIN))
        rmd_server_close_connection(c);
    else
        handle_client(&c->source, c->events);
}

static void later_timer_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (!rmd_timer_rang(source))
        return;
    rmd_server.later_ns = 0;
    if (rmd_server.backoff_until_ns && rmd_server.backoff_until_ns <= inv_now_ns() &&
        !rmd_watch(&rmd_server.listener, EPOLLIN))
        rmd_server.backoff_until_ns = 0;
    if (rmd_server.backoff_until_ns)
        set_later_timer(rmd_server.backoff_until_ns);
    for (struct connection *c; (c = next_held_connection()) != NULL;)
        serve_held_connection(c);
    for (struct connection *c = rmd_server.connections; c; c = c->next)
        if (c->held)
            set_later_timer(rate_limit_due_ns(c->peer.uid));
}

/* Sends new events to the clients that follow.  Users are charged only for events that they get. */
static void send_new_events(void)
{
    for (struct connection *c = rmd_server.connections, *next; c; c = next) {
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
        bool done = rmd_server_send_events(c), more = c->sent != sent;
        if (done)
            rmd_server_close_connection(c);
        if (done || more)
            charge_user(uid, begun);
    }
}

/* The connection of this user and its subordinate IDs to close: the oldest one to which no answer
 * is being sent, else the oldest one.  The newest connection of all does not count. */
static struct connection *connection_to_close(uid_t uid)
{
    struct rmd_persons *persons = &rmd_users_shared()->persons;
    struct connection *oldest = NULL, *idle = NULL;
    for (struct connection *c = rmd_server.connections->next; c; c = c->next)
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
    for (struct connection *c = rmd_server.connections; c; c = c->next)
        n += rmd_person(persons, c->peer.uid) == rmd_person(persons, uid);
    return n;
}

/* The user with most connections, not counting the newest one.  An operator only if no other user
 * has one. */
static uid_t user_with_most_connections(void)
{
    uid_t uid = rmd_server.connections->peer.uid;
    unsigned most = 0;
    bool others = false;
    for (struct connection *c = rmd_server.connections->next; c; c = c->next)
        others |= !is_operator(c->peer.uid);
    for (struct connection *c = rmd_server.connections->next; c; c = c->next) {
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
    uid_t uid = rmd_server.connections->peer.uid;
    struct connection *c = NULL;
    if (rmd_server.access_for.several && count_connections(uid) > CONNECTIONS_OF_USER)
        c = connection_to_close(uid);
    else if (rmd_server.nconnections > CONNECTIONS_MAX)
        c = connection_to_close(user_with_most_connections());
    if (!c)
        return;
    uid = c->peer.uid;
    if (c->follows)
        rmd_server_send_end_event(c, "rmd keeps no more connections of this user");
    rmd_server_close_connection(c);
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
    c->next = rmd_server.connections;
    rmd_server.connections = c;
    rmd_server.nconnections++;
}

/* The user of a client is known only after the accept.  After a client that has to wait anyway, the
 * listener backs off, so that rmd does not spend its time on accepting such clients. */
static void back_off_listener(uint64_t took_ns)
{
    rmd_unwatch(&rmd_server.listener);
    rmd_server.backoff_until_ns = inv_now_ns() + took_ns * BACKOFF_FACTOR;
    set_later_timer(rmd_server.backoff_until_ns);
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
    if (!rmd_server.connections || rmd_server.connections->source.fd != fd)
        return;
    uid_t uid = rmd_server.connections->peer.uid;
    charge_user(uid, begun);
    close_excess_connection(); /* another one */
    if (!is_within_rate_limit(uid))
        back_off_listener(rmd_rate_limit_clock() - begun);
}

static int start_serving(const struct rmd_access *access)
{
    rmd_server.access_for = *access;
    rmd_peer_begin();
    rmd_server.listener.ready = accept_client;
    return rmd_timer_open(&rmd_server.later, later_timer_expired) ||
           rmd_events_watch(&rmd_users_shared()->events, send_new_events) ||
           rmd_watch(&rmd_server.listener, EPOLLIN);
}

/* Gives the path to root and rmd's own user only, or to a group, or to all users. */
static bool set_path_permissions(const struct rmd_access *access)
{
    const char *path = rmd_server.address.sun_path;
    if (path[0] == '\0' || access->group == RMD_GROUP_DEFAULT)
        return true;
    if (access->group == RMD_GROUP_ANY)
        return !chmod(path, 0666);
    return !chown(path, (uid_t)-1, access->gid) && !chmod(path, 0660);
}

/* /run is empty after each boot. */
void rmd_server_make_directory(const char *name)
{
    char path[sizeof rmd_server.address.sun_path];
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
    socklen_t size = inv_socket_address(&rmd_server.address, name);
    char unfit[INV_SOCKET_UNFIT];
    if (inv_socket_unfit(name, unfit)) {
        rmd_error("%s: use another one", unfit);
        return -1;
    }
    rmd_server.listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (access->several)
        rmd_server_make_directory(name);
    const struct sockaddr *any = (const struct sockaddr *)&rmd_server.address;
    mode_t mask = umask(0177); /* a path is for our user only, at first */
    bool listens = rmd_server.listener.fd >= 0 &&
                   !rmd_path_listen(rmd_server.listener.fd, any, size, 128, lock_tries);
    umask(mask);
    bool ok = listens && set_path_permissions(access) && !start_serving(access);
    if (!listens)
        rmd_server.address.sun_path[0] = '\0'; /* it is not this rmd's: do not remove it */
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
    rmd_server.listener.fd = fd;
    warn_of_socket_mode(fd, access);
    if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens &&
        !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET &&
        fcntl(fd, F_SETFD, FD_CLOEXEC) >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) >= 0 &&
        !start_serving(access))
        return 0;
    rmd_error("descriptor %d is no listening SOCK_SEQPACKET socket", fd);
    return -1;
}

const struct rmd_control *rmd_server_control(void) { return &rmd_server.control; }

void rmd_server_close(void)
{
    while (rmd_server.connections) {
        if (rmd_server.connections->follows)
            rmd_server_send_end_event(rmd_server.connections, "");
        rmd_server_close_connection(rmd_server.connections);
    }
    if (rmd_server.address.sun_path[0] != '\0')
        rmd_path_remove(rmd_server.address.sun_path);
    if (rmd_server.listener.fd >= 0)
        close(rmd_server.listener.fd);
}
