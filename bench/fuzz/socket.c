/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * socket.c - requests to rmd: each input is a few messages, from this process as its client, which
 * is the operator, or (some) another user; rmd has the machine, the users and the domain that it
 * always has, on eight emulated cores.  Clients stay as long as rmd has something for them.
 *
 * A message is the real thing but for its transport: what rmd receives is the input, what it sends
 * must be a whole answer, and a byte of the input may say that the client has no room for it yet.
 * Two bytes say how long the next message is, whether descriptors come with it, and whether its
 * user has to wait.  The magic number, the version, the length and the user that it is about are
 * put right in most of them, or nothing else would ever be reached.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "../../rmd/domain/domain_inside.h"
#include "../../rmd/domain/trace.h"
#include "libinvasive/base/now.h"
#include "rmd/host/procstat.h"
#include "rmd/host/rate_limit.h"
#include "rmd/users/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fuzz_input input;
static ssize_t fuzz_receive(struct msghdr *m);
static ssize_t fuzz_answer(const struct msghdr *m);
static ssize_t fuzz_send(const void *what, size_t bytes);

static ssize_t fuzz_take_message(void);
static uint64_t fuzz_due(void);

#define recvmsg(fd, m, flags) ((void)(fd), (void)(flags), fuzz_receive(m))
#define recv(fd, to, room, flags)                                                                  \
    ((void)(fd), (void)(to), (void)(room), (void)(flags), fuzz_take_message())
#define shutdown(fd, how) ((void)(fd), (void)(how))
#define fork() 1
#define rmd_rate_limit_due_ns(limits, uid) ((void)(limits), (void)(uid), fuzz_due())
#define rmd_trace_start(domain, taker, client) ((void)(domain), errno = EBUSY, -1)
/* Of this process, whichever user it is made out to be. */
#define rmd_owner(process, owner) ((void)(process), *(owner) = c->peer.uid, true)
#define rmd_alive(pidfd) ((void)(pidfd), true)
#define sendmsg(fd, m, flags) ((void)(fd), (void)(flags), fuzz_answer(m))
#define send(fd, what, bytes, flags) ((void)(fd), (void)(flags), fuzz_send(what, bytes))
#include "../../libinvasive/table/socket.c"
#include "../../rmd/host/peer.c"
#include "../../rmd/serve/connections.c"
#include "../../rmd/serve/answer.c"
#undef rmd_owner
#undef rmd_alive
#undef recvmsg
#undef recv
#undef shutdown
#undef fork
#undef sendmsg
#undef send
#include "../../rmd/loop/loop.c"

/* Of a message, besides its length. */
enum { RAW = 0x8000, PASSES = 0x4000, STRANGER = 0x2000, WAITS = 0x1000, LENGTH = 0xfff };
enum { STRANGERS_UID = 60001, FULL = 0xff, LOOKS = 16 };

static bool strangers, answered, waits, taken;
static ssize_t message_bytes;

static size_t proper_size(uint32_t kind, size_t bytes)
{
    switch (kind) {
    case INV_SUBMIT_REPORT:
        return bytes;
    case INV_CONTROL:
        return sizeof(struct inv_control);
    case INV_EVENTS:
        return sizeof(struct inv_watch);
    default:
        return may_name_user(kind) && bytes >= sizeof(struct inv_about)
                   ? sizeof(struct inv_about)
                   : sizeof(struct inv_request);
    }
}

static uint64_t fuzz_due(void) { return waits ? UINT64_MAX / 2 : 0; }

/* Once it is taken there is no more, and it may not be taken with descriptors. */
static ssize_t fuzz_take_message(void)
{
    if (taken)
        abort();
    taken = true;
    return message_bytes;
}

static ssize_t fuzz_receive(struct msghdr *m)
{
    static const uint32_t kinds[] = {
        0,          INV_JOIN,           INV_OBSERVE, INV_LEAVE,  INV_REPORT,  INV_SUBMIT_REPORT,
        INV_POLICY, INV_ADMIN_SNAPSHOT, INV_CONTROL, INV_EVENTS, INV_METRICS, INV_TRACE};
    if (message_bytes >= 0) {
        errno = EAGAIN;
        return -1;
    }
    uint32_t head = fuzz_number(&input, 2);
    size_t bytes = head & LENGTH, room = m->msg_iov->iov_len;
    struct inv_request *r = m->msg_iov->iov_base;
    bytes = bytes < input.left ? bytes : input.left;
    memset(r, 0, room);
    fuzz_take(&input, r, bytes < room ? bytes : room);
    if (!(head & RAW) && bytes >= sizeof *r && room >= sizeof *r) {
        r->magic = INV_PROTOCOL_MAGIC;
        r->version = INV_PROTOCOL_VERSION;
        r->kind = kinds[r->kind % (sizeof kinds / sizeof *kinds)];
        bytes = proper_size(r->kind, bytes);
        if (may_name_user(r->kind) && bytes == sizeof(struct inv_about)) {
            uint32_t *uid = &((struct inv_about *)m->msg_iov->iov_base)->uid;
            *uid = *uid % 4 ? STRANGERS_UID + *uid % 4 - 1 : INV_UNSAID; /* or all would be new */
        }
    }
    if (head & PASSES)
        m->msg_flags |= MSG_CTRUNC;
    taken = head & PASSES;
    message_bytes = (ssize_t)bytes;
    return message_bytes;
}

/* Nothing of what is sent is out of bounds. */
static void look_at(const void *what, size_t bytes)
{
    if (__asan_region_is_poisoned((void *)what, bytes))
        abort();
}

static ssize_t fuzz_answer(const struct msghdr *m)
{
    const struct inv_reply *r = m->msg_iov->iov_base;
    size_t bytes = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) {
        look_at(m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
        bytes += m->msg_iov[i].iov_len;
    }
    if (!answered && (bytes != sizeof *r || r->magic != INV_PROTOCOL_MAGIC ||
                      !memchr(r->message, '\0', sizeof r->message)))
        abort();
    answered = true;
    return (ssize_t)bytes;
}

/* The end of a text may be as long as an outcome. */
static bool is_text(const void *what)
{
    for (const struct connection *c = rmd_server.connections; c; c = c->next)
        if (c->text && what >= (const void *)c->text &&
            what < (const void *)(c->text + c->text_bytes))
            return true;
    return false;
}

static ssize_t fuzz_send(const void *what, size_t bytes)
{
    look_at(what, bytes);
    if (bytes == sizeof(struct inv_outcome) && !is_text(what) &&
        !memchr(((const struct inv_outcome *)what)->text, '\0',
                sizeof((struct inv_outcome *)0)->text))
        abort();
    errno = EAGAIN;
    return fuzz_number(&input, 1) == FULL ? -1 : (ssize_t)bytes;
}

static void begin(void)
{
    static struct inv_topology topology;
    static struct rmd_settings settings;
    static struct rmd_machine_state machine;
    static const struct rmd_users_options options = {
        .sys_root = "", .several = true, .machine = &machine};
    rmd_config_defaults(&settings);
    settings.log_level = RMD_ERROR;
    rmd_log_set_level(RMD_ERROR);
    settings.enforce = RMD_ENFORCE_NONE;
    rmd_server.access_for = (struct rmd_access){.several = true, .group = RMD_GROUP_ANY};
    if (inv_topology_emulate(&topology, "8", false) ||
        rmd_users_open(&topology, &settings, &options) || 
        rmd_events_watch(&rmd_users_shared()->events, send_new_events))
        abort();
    rmd_peer_begin();
    rmd_server.later.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    for (int ends[2], i = 0; i < FUZZ_KEEPS; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
            abort();
        fuzz_keeps[i] = ends[0];
    }
}

/* Our parent is a member nearly always: making a table takes longer than all the rest. */
static void join_resident(void)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (pidfd < 0 || rmd_users_join(getuid(), getppid(), pidfd, &request) < 0)
        abort();
}

/* What rmd's loop would do now. */
static void look_around(void)
{
    struct epoll_event e;
    for (int i = 0; i < LOOKS && epoll_wait(loop.epoll_fd, &e, 1, 0) == 1; i++) {
        struct rmd_source *source = e.data.ptr;
        source->ready(source, e.events);
    }
}

static void one_message(unsigned i)
{
    bool stranger = strangers && input.left > 1 && input.at[1] & STRANGER >> 8;
    struct connection *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->source = (struct rmd_source){.fd = fuzz_keeps[i], .ready = handle_client};
    c->peer = (struct ucred){getpid(), stranger ? STRANGERS_UID : getuid(), getgid()};
    c->next = rmd_server.connections;
    rmd_server.connections = c;
    rmd_server.nconnections++;
    answered = taken = false;
    message_bytes = -1;
    waits = stranger && input.left > 1 && input.at[1] & WAITS >> 8;
    handle_client(&c->source, EPOLLIN);
    if (waits && (!c->held || message_bytes >= 0))
        abort();
    waits = false;
    look_around();
    for (struct connection *held; (held = next_held_connection()) != NULL;)
        serve_held_connection(held);
    if (rmd_server.connections == c && !c->waiting && !c->sending)
        rmd_server_close_connection(c);
    look_around();
}

/* Every input meets the same rmd. */
static void clean_up(void)
{
    static const struct rmd_limits none;
    uint64_t all[INV_CORE_WORDS] = {0xff};
    while (rmd_server.connections)
        rmd_server_close_connection(rmd_server.connections);
    struct rmd_domain *own = rmd_users_domain(getuid());
    rmd_domain_leave(own, getpid());
    /* or there would be a thousand, which are moved for each more */
    rmd_reports_free(&own->shared->reports, &own->dead);
    rmd_users_drain(all, true);
    rmd_users_order(getuid(), true, &none);
    if (strangers) {
        rmd_domain_leave(rmd_users_domain(STRANGERS_UID), getpid());
        rmd_users_order(STRANGERS_UID, true, &none);
    }
    look_around();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun;
    if (!begun) {
        begin();
        join_resident();
    }
    begun = true;
    input = (struct fuzz_input){data, bytes};
    uint32_t kind = fuzz_number(&input, 1);
    bool alone = kind % 128 == 127;
    strangers = kind % 8 == 7;
    if (alone)
        rmd_domain_leave(rmd_users_domain(getuid()), getppid());
    for (unsigned i = 0; i < FUZZ_KEEPS && input.left > 2; i++)
        one_message(i);
    clean_up();
    if (alone)
        join_resident();
    return 0;
}
