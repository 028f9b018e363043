/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * reply.c - what rmctl and invade are told by an rmd that is broken, or none: answers, outcomes,
 * events, metrics, reports, and a core table.  The first byte is the command, the second says how
 * it is printed; what is received is the rest.
 *
 * Two bytes say how long a message is and what comes with it.  Most answers begin as they should,
 * and most of what follows is as long as it should be.
 */
#define _GNU_SOURCE
#include "client/client.h"
#include "client/client_control.h"
#include "libinvasive/table/core.h"
#include "members.h"
#include "tools/rmctl/rmctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a message, besides its length. */
enum { RAW = 0x8000, PASSES = 0x4000, HANGS_UP = 0x2000, LENGTH = 0xfff };
enum { ARGUMENTS = 3, TABLE_WRITES = 8 };

int __wrap_inv_socket_connect(const char *name, unsigned timeout_s);
ssize_t __wrap_recv(int fd, void *to, size_t room, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

static struct fuzz_input input;
static int nowhere = -1, table_fd;
static struct inv_table *table;
static char *pristine; /* of the table, as far as it is read */

/* --- the rmd */

int __wrap_inv_socket_connect(const char *name, unsigned timeout_s)
{
    (void)name;
    (void)timeout_s;
    return dup(nowhere);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    (void)fd;
    (void)flags;
    return (ssize_t)m->msg_iov->iov_len;
}

static void pass_descriptor(struct msghdr *m, bool of_table)
{
    int fd = dup(of_table ? table_fd : nowhere);
    struct cmsghdr *h = CMSG_FIRSTHDR(m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
}

/* An answer. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
    uint32_t head = fuzz_number(&input, 2);
    size_t room = m->msg_iov->iov_len, bytes = head & LENGTH;
    struct inv_reply *r = m->msg_iov->iov_base;
    (void)fd;
    (void)flags;
    if (head & PASSES)
        pass_descriptor(m, !(head & RAW));
    else
        m->msg_controllen = 0;
    errno = EAGAIN;
    if (head & HANGS_UP)
        return head & 1 ? 0 : -1;
    memset(r, 0xa5, room);
    if (head & RAW) {
        fuzz_take(&input, r, bytes < room ? bytes : room);
        return (ssize_t)bytes;
    }
    r->magic = INV_PROTOCOL_MAGIC;
    r->version = INV_PROTOCOL_VERSION;
    r->status = bytes & 7 ? INV_OK : fuzz_number(&input, 1);
    r->slot = 0;
    r->count = fuzz_number(&input, 1) % 8;
    if (bytes & 8)
        fuzz_take(&input, r->message, fuzz_number(&input, 1) % (sizeof r->message + 1));
    return (ssize_t)room;
}

/* What follows an answer. */
ssize_t __wrap_recv(int fd, void *to, size_t room, int flags)
{
    uint32_t head = fuzz_number(&input, 2);
    size_t bytes = head & LENGTH;
    (void)fd;
    (void)flags;
    errno = EAGAIN;
    if (!input.left || head & HANGS_UP)
        return head & 1 ? 0 : -1;
    memset(to, 0xa5, room);
    if (room > sizeof(struct inv_report) + INV_RECORD_BYTES(0)) { /* a report, or text */
        fuzz_take(&input, to, bytes < room ? bytes : room);
        uint32_t record_bytes = (uint32_t)(bytes - sizeof(struct inv_report));
        if (head & PASSES && bytes >= sizeof(struct inv_report))
            memcpy((char *)to + offsetof(struct inv_report, record_bytes), &record_bytes,
                   sizeof record_bytes);
        return (ssize_t)(bytes < room || flags & MSG_TRUNC ? bytes : room);
    }
    fuzz_take(&input, to, bytes < room ? bytes : room);
    return (ssize_t)(head & RAW && bytes < room ? bytes : room);
}

static void begin(void)
{
    nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    table_fd = inv_table_create(CORES, NULL, MEMBERS, INV_MODE_PINNED, &table);
    stdout = fopen("/dev/null", "w");
    pristine = malloc(INV_RECORDS_OFFSET);
    if (nowhere < 0 || table_fd < 0 || !stdout || !pristine)
        abort();
    stderr = stdout;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct inv_slot *s = inv_slot_at(table, i);
        s->pid = fuzz_member_pid(i);
        s->rank = (int)i;
        memcpy(s->program, "program", sizeof "program");
        atomic_store(&s->state, INV_SLOT_LIVE);
    }
    memcpy(pristine, (void *)table, INV_RECORDS_OFFSET);
}

/* The descriptor that comes next. */
static int next_fd(void)
{
    int fd = dup(nowhere);
    close(fd);
    return fd;
}

static void write_table(void)
{
    memcpy((void *)table, pristine, INV_RECORDS_OFFSET);
    for (unsigned i = fuzz_number(&input, 1) % TABLE_WRITES; i-- > 0;)
        fuzz_write_table(&input, table);
}

/* --- in the place of rmctl.c */

struct rmctl_common rmctl_common = {.socket = "@fuzz"};

void rmctl_parse(int argc, char **argv, const struct argp_option *options, argp_parser_t parse,
                 const char *arguments, const char *about, void *to)
{
    struct argp_state state = {.input = to};
    (void)options;
    (void)arguments;
    (void)about;
    for (int i = 1; parse && i < argc; i++)
        if (parse(ARGP_KEY_ARG, argv[i], &state))
            abort();
    if (parse)
        parse(ARGP_KEY_END, NULL, &state);
}

unsigned rmctl_number(struct argp_state *state, const char *what, const char *text, unsigned least,
                      unsigned most)
{
    (void)state;
    (void)what;
    (void)least;
    (void)most;
    return (unsigned)strtoul(text, NULL, 10);
}

int rmctl_print_json(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    free(text);
    return text ? RMCTL_OK : RMCTL_FAILED;
}

/* --- the commands */

static int ask_reports(int argc, char **argv)
{
    unsigned count;
    int error;
    (void)argc;
    (void)argv;
    struct rmd_client_report *all = rmd_client_reports("@fuzz", &count, &error);
    for (unsigned i = 0; i < count; i++)
        if (all[i].record && INV_RECORD_BYTES(all[i].sites) > all[i].report.record_bytes)
            abort();
    rmd_client_reports_free(all, count);
    return RMCTL_OK;
}

static const struct rmctl_command ask_reports_command = {.run = ask_reports};

static const struct {
    const struct rmctl_command *command;
    const char *words[ARGUMENTS];
} commands[] = {
    {&rmctl_status_command, {"status"}},
    {&rmctl_status_command, {"status"}},
    {&rmctl_policy_command, {"policy"}},
    {&rmctl_policy_command, {"policy", "fair"}},
    {&rmctl_shrink_command, {"shrink", "7", "2"}},
    {&rmctl_expand_command, {"expand", "rank:0", "2"}},
    {&rmctl_pin_command, {"pin", "7", "0-3"}},
    {&rmctl_limit_command, {"limit"}},
    {&rmctl_drain_command, {"drain", "1"}},
    {&rmctl_events_command, {"events"}},
    {&rmctl_events_command, {"events"}},
    {&rmctl_metrics_command, {"metrics"}},
    {&rmctl_metrics_command, {"metrics"}},
    {&rmctl_trace_command, {"trace", "stop"}},
    {&ask_reports_command, {"reports"}},
    {&ask_reports_command, {"reports"}},
    {&rmctl_drain_command, {"drain"}},
    {&rmctl_suspend_command, {"suspend", "7"}},
    {&rmctl_resume_command, {"resume", "rank:0"}},
    {&rmctl_priority_command, {"priority", "7", "20"}},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (nowhere < 0)
        begin();
    input = (struct fuzz_input){data, bytes};
    unsigned chosen = fuzz_number(&input, 1) % (sizeof commands / sizeof *commands);
    const struct rmctl_command *command = commands[chosen].command;
    rmctl_common.json = fuzz_number(&input, 1) % 2;
    char *argv[ARGUMENTS + 1] = {NULL};
    int argc = 0;
    for (; argc < ARGUMENTS && commands[chosen].words[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)commands[chosen].words[argc];
    if (command == &rmctl_status_command || command == &rmctl_expand_command)
        write_table();
    int before = next_fd(), status = command->run(argc, argv);
    if (status < RMCTL_OK || status > RMCTL_NOT_YET)
        abort();
    if (next_fd() != before)
        abort(); /* a descriptor is still open, or another has been closed */
    return 0;
}
