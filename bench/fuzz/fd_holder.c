/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fd_holder.c - messages between rmd and its descriptor holder (rmd/restart/fd_holder.c), and the persisted
 * orders of a former rmd.  The first byte chooses the reader: a holder with clients that send
 * anything, an rmd whose holder sends anything, or an rmd that loads persisted orders.
 *
 * A message is a byte for each of its numbers, and one for its length and the descriptor that it
 * carries.  Descriptors are numbers of this program: each is closed once, or passed on.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rmd/restart/fd_holder.h"
#include "libinvasive/base/now.h"
#include "rmd/config/persisted_orders.h"
#include "libinvasive/table/socket.h"
#include "rmd/domain/state.h"

/* What a descriptor is. */
enum { CLOSED, SOME_FILE, DEAD_STATE, LIVING_STATE, ORDERS, PEER };
enum { FIRST_FD = 1 << 21, FDS = 1024, NAMED = RMD_PERSISTED_NAME };

static struct fuzz_input input;
static unsigned char fds[FDS];
static unsigned nfds;
static uint64_t now_ns;

static int fuzz_fd(unsigned char what)
{
    if (nfds == FDS)
        return -1;
    fds[nfds] = what;
    return FIRST_FD + (int)nfds++;
}

static unsigned char *fuzz_look(int fd)
{
    if (fd < FIRST_FD || fd >= FIRST_FD + (int)nfds || !fds[fd - FIRST_FD])
        abort();
    return &fds[fd - FIRST_FD];
}

static int fuzz_close(int fd)
{
    *fuzz_look(fd) = CLOSED;
    return 0;
}

static ssize_t fuzz_receive(int from, void *room, size_t size, int *fd)
{
    uint32_t words[3] = {fuzz_number(&input, 1), fuzz_number(&input, 1), fuzz_number(&input, 1)};
    uint32_t head = fuzz_number(&input, 1), length = head >> 4;
    bool more = input.left;
    if (*fuzz_look(from) != PEER || size != sizeof words)
        abort();
    *fd = more && head % 8 ? fuzz_fd((unsigned char)(SOME_FILE + head % 8 % ORDERS)) : -1;
    errno = EAGAIN;
    if (!more)
        return head % 2 ? 0 : -1;
    if (length == 1) { /* all of it is arbitrary */
        fuzz_take(&input, words, sizeof words);
        length = 0;
    }
    memcpy(room, words, size);
    return length == 2 ? (ssize_t)fuzz_number(&input, 1) : (ssize_t)size;
}

static ssize_t fuzz_send(int to, size_t bytes, int fd)
{
    if (*fuzz_look(to) != PEER)
        abort();
    if (fd >= 0)
        fuzz_look(fd);
    errno = EPIPE;
    return fuzz_number(&input, 1) == 0xff ? -1 : (ssize_t)bytes;
}

static int fuzz_peer(struct ucred *peer)
{
    uint32_t byte = fuzz_number(&input, 1);
    *peer = (struct ucred){.uid = geteuid() + (byte == 1)};
    return byte == 2 ? -1 : 0;
}

static struct rmd_state *fuzz_state(int fd)
{
    static struct rmd_state states[2];
    unsigned char what = *fuzz_look(fd);
    states[1].copy[0].process[0] = (struct rmd_state_process){.pid = getpid(), .start_ticks = 1};
    return what == LIVING_STATE ? &states[1] : what == DEAD_STATE ? &states[0] : NULL;
}

#define inv_socket_receive(from, room, size, fd, flags)                                            \
    ((void)(flags), fuzz_receive(from, room, size, fd))
#define inv_socket_send(to, bytes, size, fd, flags)                                                \
    ((void)(bytes), (void)(flags), fuzz_send(to, size, fd))
#define getsockopt(fd, level, name, peer, size) ((void)fuzz_look(fd), (void)(size), fuzz_peer(peer))
#define setsockopt(fd, level, name, value, size) ((void)fuzz_look(fd), (void)(value))
#define accept4(fd, address, size, flags) ((void)(fd), fuzz_fd(PEER))
#define rmd_state_map fuzz_state
#define rmd_state_unmap(state) ((void)(state))
#define inv_now_ns() now_ns
#define close fuzz_close
#include "../../rmd/restart/fd_holder.c"
#undef rmd_state_map
#undef rmd_state_unmap

static _Alignas(64) unsigned char orders[1 << 20];

static int fuzz_orders_stat(int fd, struct stat *st, size_t bytes)
{
    *st = (struct stat){.st_size = (off_t)bytes - (*fuzz_look(fd) == SOME_FILE)};
    return 0;
}

static void *fuzz_orders(int fd, size_t bytes)
{
    fuzz_look(fd);
    return bytes > sizeof orders ? MAP_FAILED : orders;
}

#define fstat(fd, st) fuzz_orders_stat(fd, st, sizeof(struct rmd_persisted_memory))
#define fcntl(fd, what, ...) ((void)fuzz_look(fd), F_SEAL_SHRINK)
#define mmap(at, bytes, protection, flags, fd, offset) fuzz_orders(fd, bytes)
#define munmap(at, bytes) ((void)(at))
#include "../../rmd/config/persisted_orders.c"

/* --- the readers */

static void be_holder(void)
{
    int client = fuzz_number(&input, 1) % 2 ? fuzz_fd(PEER) : -1;
    unsigned before = nfds;
    while (input.left) {
        unsigned char what = (unsigned char)fuzz_number(&input, 1);
        now_ns += (uint64_t)(what >> 4) * 60000000000u;
        if (what % 4 == 0)
            accept_client(0, &client);
        else if (client >= 0)
            handle_message(&client);
        if (client < 0)
            drop_unused();
        if (holder.nitems > nfds - before)
            abort();
    }
    while (holder.nitems)
        drop_item(holder.nitems - 1);
    if (client >= 0)
        disconnect_client(&client);
}

static void take_stored(uid_t uid, enum rmd_stored_kind what, int fd)
{
    (void)uid;
    if (what >= RMD_STORED_KINDS)
        abort();
    close(fd);
}

static void be_rmd(void)
{
    bool busy, ends = fuzz_number(&input, 1) % 2;
    if (ends) {
        holder.fd = fuzz_fd(PEER);
        rmd_fd_holder_close();
        return;
    }
    int fd = receive_all(fuzz_fd(PEER), take_stored, &busy);
    if (fd >= 0)
        close(fd);
}

static void check_orders(const struct rmd_persisted *p, const struct rmd_persisted_orders *s)
{
    static struct inv_topology topology;
    static struct rmd_units units;
    bool drained[INV_MAX_CORES] = {false};
    if (!topology.ncores && inv_topology_emulate(&topology, "8", false))
        abort();
    if (!units.count)
        rmd_units_of(&units, &topology, RMD_SMT_EACH);
    const struct rmd_policy *workload = rmd_policy_named("workload");
    rmd_persisted_get_drained(s, &topology, &units, drained);
    rmd_persisted_chosen(&s->policy, workload);
    for (unsigned i = 0; i < s->nusers; i++)
        rmd_persisted_chosen(&s->user[i].policy, workload);
    if (s->threshold > RMD_THERMAL_MOST)
        abort();
    const struct rmd_power_knob *knob;
    for (unsigned n = rmd_persisted_power(p, &knob); n-- > 0;)
        if (knob[n].kind >= RMD_POWER_KINDS)
            abort();
}

static void reject_store(int fd)
{
    if (fd >= 0)
        abort();
}

static void find_orders(void)
{
    static const struct rmd_persisted_orders none;
    struct rmd_persisted persisted = {.store = reject_store};
    struct rmd_persisted_memory *m = (struct rmd_persisted_memory *)(void *)orders;
    memset(orders, 0, offsetof(struct rmd_persisted_memory, copy[0].user[4]));
    memset(&m->copy[1], 0, offsetof(struct rmd_persisted_orders, user[4]));
    m->magic = MAGIC;
    m->version = RMD_PERSISTED_VERSION;
    m->bytes = sizeof *m;
    for (unsigned i = 0; i < 8 && input.left; i++) {
        uint32_t where = fuzz_number(&input, 2), bytes = fuzz_number(&input, 1) % 64;
        size_t second = where & 0x8000 ? offsetof(struct rmd_persisted_memory, copy[1]) : 0;
        size_t room = second ? 256 : offsetof(struct rmd_persisted_memory, copy[0].user[3]);
        fuzz_take(&input, orders + second + where % 0x8000 % room, bytes);
    }
    const struct rmd_persisted_orders *s =
        rmd_persisted_load(&persisted, fuzz_fd(fuzz_number(&input, 1) ? ORDERS : SOME_FILE));
    if (s)
        check_orders(&persisted, s);
    rmd_persisted_save(&persisted, &none);
    rmd_persisted_save_power(&persisted, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    input = (struct fuzz_input){data, bytes};
    nfds = 0;
    rmd_log_set_level(RMD_ERROR);
    switch (fuzz_number(&input, 1) % 4) {
    case 0:
        be_rmd();
        break;
    case 1:
        find_orders();
        break;
    default:
        be_holder();
    }
    for (unsigned i = 0; i < nfds; i++)
        if (fds[i])
            abort(); /* it is still open */
    return 0;
}
