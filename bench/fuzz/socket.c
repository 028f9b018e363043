/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * socket.c - requests to rmd: each input is a few messages, from this process as its client; rmd
 * has the machine, the users and the domain that it always has, on eight emulated cores.
 *
 * A message is the real thing but for its transport: what rmd receives is the input, what it sends
 * must be a whole answer.  Two bytes say how long the next message is.  The magic number and the
 * version are put right in most of them, or nothing else would ever be reached.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct fuzz_input input;
static ssize_t fuzz_receive(void *to, size_t room, int flags);
static ssize_t fuzz_answer(const struct msghdr *m);

#define recv(fd, to, room, flags) ((void)(fd), fuzz_receive(to, room, flags))
#define sendmsg(fd, m, flags) ((void)(fd), (void)(flags), fuzz_answer(m))
#include "../../rmd/server.c"
#undef recv
#undef sendmsg

static bool answered;

static ssize_t fuzz_receive(void *to, size_t room, int flags)
{
    if (flags & MSG_PEEK) {
        errno = EAGAIN;
        return -1;
    }
    uint32_t head = fuzz_number(&input, 2);
    size_t bytes = head & 0x3fff;
    bytes = bytes < input.left ? bytes : input.left;
    fuzz_take(&input, to, bytes < room ? bytes : room);
    struct inv_request *r = to;
    if (!(head & 0x8000) && bytes >= sizeof *r) {
        r->magic = INV_PROTOCOL_MAGIC;
        r->version = INV_PROTOCOL_VERSION;
        r->kind %= INV_POLICY + 2;
    }
    return (ssize_t)bytes;
}

static ssize_t fuzz_answer(const struct msghdr *m)
{
    const struct inv_reply *r = m->msg_iov->iov_base;
    size_t bytes = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++)
        for (size_t k = 0; k < m->msg_iov[i].iov_len; k++, bytes++)
            if (((volatile unsigned char *)m->msg_iov[i].iov_base)[k] == 0xff)
                continue; /* read all: nothing that is sent is out of bounds */
    if (!answered && (bytes != sizeof *r || r->magic != INV_PROTOCOL_MAGIC ||
                      !memchr(r->message, '\0', sizeof r->message)))
        abort();
    answered = true;
    return (ssize_t)bytes;
}

static void begin(void)
{
    static struct inv_topology topology;
    static struct rmd_settings settings;
    static const struct rmd_users_options options = {.sys_root = ""};
    rmd_config_defaults(&settings);
    settings.log_level = rmd_log_level = RMD_ERROR;
    settings.enforce = RMD_ENFORCE_NONE;
    if (inv_topology_emulate(&topology, "8", false) ||
        rmd_users_open(&topology, &settings, &options))
        abort();
}

/* Our parent is a member nearly always: making a table takes longer than all the rest. */
static void join_resident(void)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (pidfd < 0 || rmd_users_join(getuid(), getppid(), pidfd, &request) < 0)
        abort();
}

static void one_message(void)
{
    int ends[2];
    struct connection *c = calloc(1, sizeof *c);
    if (!c || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        abort();
    c->source = (struct rmd_source){.fd = ends[0], .ready = client_ready};
    c->peer = (struct ucred){getpid(), getuid(), getgid()};
    c->next = connections;
    connections = c;
    nconnections++;
    answered = false;
    client_ready(&c->source, EPOLLIN);
    while (connections)
        hang_up(connections);
    close(ends[1]);
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
    bool alone = fuzz_number(&input, 1) % 128 == 127;
    if (alone)
        rmd_domain_leave(rmd_users_domain(getuid()), getppid());
    for (unsigned i = 0; i < 8 && input.left > 2; i++)
        one_message();
    rmd_domain_leave(rmd_users_domain(getuid()), getpid());
    if (alone)
        join_resident();
    return 0;
}
