/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace.c - rings of events that processes have written into, which rmd's thread moves to a file.
 *
 * The domain has two members and eight emulated cores, and a trace is taken.  The reader runs in
 * this thread; whenever it would sleep, the input says what happens meanwhile: a member writes
 * events as it should, or anything anywhere in a ring, or it dies; all end, and others come, with
 * another table; the disk is full, or so slow that there is no room for what is to be written.  The
 * file must be whole chunks as in invasive-trace(5), with events in a state that they can have, and
 * when it has an end that must count them.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "libinvasive/base/futex.h"
#include "rmd/loop/log.h"
#include "members.h"
#include "libinvasive/base/now.h"
#include "rmd/host/peer.h"
#include "rmd/journal/report.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/trace_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int fuzz_thread(void);
static void fuzz_meanwhile(void);
static uint64_t fuzz_now(void);
static ssize_t fuzz_write(const void *what, size_t bytes);
static int fuzz_truncate(off_t bytes);

static void fuzz_receive(int *passed);

#define inv_socket_receive(fd, room, bytes, passed, flags)                                         \
    ((void)(fd), (void)(room), (void)(flags), fuzz_receive(passed))
#define rmd_peer_close(fd) ((void)(fd))
#define pthread_create(thread, attributes, function, argument)                                     \
    ((void)(thread), (void)(function), (void)(argument), fuzz_thread())
#define pthread_join(thread, result) ((void)(thread))
#define nanosleep(time, left) ((void)(time), fuzz_meanwhile())
#define inv_futex_wait(word, value, ns, shared) ((void)(word), fuzz_meanwhile())
#define write(fd, what, bytes) ((void)(fd), fuzz_write(what, bytes))
#define ftruncate(fd, bytes) ((void)(fd), fuzz_truncate(bytes))
#include "../../rmd/journal/trace_writer.c"
#include "../../rmd/domain/trace.c"
#undef nanosleep
#define nanosleep(time, left) ((void)(time)) /* of a writer that waits for room */
#define inv_now_ns fuzz_now
#include "../../libinvasive/table/trace.c"
#undef inv_now_ns
#undef nanosleep

enum { STEPS = 24, FILE_MAX = 8 << 20 };

static struct rmd_domain d;
static struct fuzz_input input;
static unsigned steps;
static bool renewed; /* the table */
static char file[FILE_MAX];
static size_t file_bytes, file_room;

static int fuzz_thread(void) { return 0; }

static void fuzz_receive(int *passed) { *passed = memfd_create("fuzz", MFD_CLOEXEC); }

static uint64_t fuzz_now(void)
{
    static uint64_t now;
    return now += PATIENCE_NS / 3;
}

static ssize_t fuzz_write(const void *what, size_t bytes)
{
    size_t n = bytes < file_room ? bytes : file_room;
    memcpy(file + file_bytes, what, n);
    file_bytes += n;
    file_room -= n;
    errno = ENOSPC;
    return n ? (ssize_t)n : -1;
}

static int fuzz_truncate(off_t bytes)
{
    if (bytes < 0 || (size_t)bytes > file_bytes)
        abort();
    file_bytes = (size_t)bytes;
    return 0;
}

/* --- what members do */

static unsigned some_ring(void)
{
    unsigned i = fuzz_number(&input, 1) % (MEMBERS + 1);
    return i < MEMBERS ? i : INV_TRACE_RMD;
}

/* Also what a member never would: the tail is the reader's. */
static void write_positions(void)
{
    struct inv_trace_ring *r = inv_trace_ring_at(d.table, some_ring());
    uint64_t to;
    uint32_t what = fuzz_number(&input, 1);
    fuzz_take(&input, &to, what & 4 ? 8 : 2);
    if (what & 8)
        to += atomic_load(&r->tail);
    switch (what % 4) {
    case 0:
        atomic_store(&r->head, to);
        break;
    case 1:
        atomic_store(&r->lost, to);
        break;
    case 2:
        atomic_store(&r->stuck, (uint32_t)to);
        break;
    default:
        atomic_store(&r->tail, to);
    }
}

static void write_cells(void)
{
    struct inv_trace_ring *r = inv_trace_ring_at(d.table, some_ring());
    uint64_t at = atomic_load(&r->tail) + fuzz_number(&input, 1) % 16;
    unsigned count = fuzz_number(&input, 1) % 16;
    for (unsigned i = 0; i < count; i++) {
        struct inv_trace_event *e = &r->event[(at + i) % INV_TRACE_EVENTS];
        uint64_t words[2];
        fuzz_take(&input, words, sizeof words);
        atomic_store(&e->head, words[0]);
        atomic_store(&e->body, words[1]);
    }
    if (fuzz_number(&input, 1) & 1)
        atomic_fetch_add(&r->head, count);
}

static void write_as_it_should(void)
{
    unsigned ring = some_ring(), count = fuzz_number(&input, 1);
    atomic_store(&inv_trace_ring, ring);
    if (count >= 0xf0)
        count = (count - 0xef) * HALF / 2;
    for (unsigned i = 0; i < count; i++)
        inv_trace_write(d.table, INV_TRACE_CORE + i % INV_TRACE_WAIT, i);
    struct inv_trace_intent intent = inv_trace_intend(d.table, count % CORES, 1, 2);
    if (count & 1)
        inv_trace_settle(intent, count & 2);
    atomic_store(&inv_trace_ring, INV_TRACE_RMD);
}

static void write_sites(void)
{
    struct inv_record *r = inv_record_at(d.table, fuzz_number(&input, 1) % MEMBERS);
    unsigned i = fuzz_number(&input, 1) % INV_SITES;
    atomic_store(&r->sites, fuzz_number(&input, 2));
    fuzz_take(&input, (char *)&r->site[i] + fuzz_number(&input, 2) % sizeof r->site[i] / 2,
              fuzz_number(&input, 1) % (sizeof r->site[i] / 2));
    atomic_store(&r->site[i].named, 1);
}

static void die(void)
{
    unsigned who = fuzz_number(&input, 1) % MEMBERS;
    rmd_domain_leave(&d, fuzz_member_pid(who));
    fuzz_member_join(&d, who, MEMBERS);
}

/* Once and seldom: to make a table takes longer than all the rest.  Others come later. */
static void leave_table_to_nobody(void)
{
    if (fuzz_number(&input, 1) % 16 || renewed)
        return;
    renewed = true;
    for (unsigned i = fuzz_number(&input, 1) % 8; i; i--)
        die();
    for (unsigned i = 0; i < MEMBERS; i++)
        rmd_domain_leave(&d, fuzz_member_pid(i));
    rmd_domain_drop_empty_table(&d);
}

static void be_there(void)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!d.procs[i].used)
            fuzz_member_join(&d, i, MEMBERS);
}

/* Called where the reader sleeps. */
static void fuzz_meanwhile(void)
{
    if (!d.trace)
        return; /* it has been told to end, and waits for what is not complete */
    if (++steps > STEPS || !input.left) {
        rmd_trace_stop(&d, -1);
        return;
    }
    be_there();
    switch (fuzz_number(&input, 1) % 8) {
    case 0:
        write_positions();
        break;
    case 1:
        write_as_it_should();
        break;
    case 2:
        write_sites();
        break;
    case 3:
        die();
        break;
    case 4:
        rmd_domain_reconsider(&d);
        break;
    case 5:
        file_room %= fuzz_number(&input, 2) + 1;
        break;
    case 6:
        leave_table_to_nobody();
        break;
    default:
        write_cells();
    }
}

/* --- what must have come of it */

static uint64_t check_events(const struct inv_trace_chunk *c, const char *body)
{
    uint64_t n = (c->bytes - sizeof(uint64_t)) / (2 * sizeof(uint64_t));
    if (c->a >= INV_TRACE_RINGS || c->bytes != (1 + 2 * n) * sizeof(uint64_t))
        abort();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t head;
        memcpy(&head, body + (1 + 2 * i) * sizeof head, sizeof head);
        unsigned state = inv_trace_state(head);
        if (state != INV_TRACE_INTENT && state != INV_TRACE_DONE)
            abort();
    }
    return n;
}

static void check_file(bool full)
{
    uint64_t events = 0, told = 0;
    bool ended = false;
    size_t at = sizeof(struct inv_trace_file);
    for (struct inv_trace_chunk c; at < file_bytes; at += sizeof c + c.bytes) {
        if (ended || file_bytes - at < sizeof c)
            abort();
        memcpy(&c, file + at, sizeof c);
        if (file_bytes - at - sizeof c < c.bytes)
            abort();
        if (c.type == INV_CHUNK_EVENTS)
            events += check_events(&c, file + at + sizeof c);
        ended = c.type == INV_CHUNK_END;
        if (ended)
            memcpy(&told, file + at + sizeof c, sizeof told);
    }
    if (full ? ended : !ended || told != events)
        abort();
}

static void begin(void)
{
    rmd_log_set_level(RMD_ERROR);
    fuzz_domain_open(&d);
    fuzz_domain_admit(&d);
    for (unsigned i = 0; i < MEMBERS; i++)
        fuzz_member_join(&d, i, MEMBERS);
}

static void clear_rings(void)
{
    static const unsigned rings[] = {0, 1, INV_TRACE_RMD};
    for (unsigned i = 0; i < sizeof rings / sizeof *rings; i++)
        memset((void *)inv_trace_ring_at(d.table, rings[i]), 0, sizeof(struct inv_trace_ring));
    for (unsigned i = 0; i < MEMBERS; i++)
        atomic_store(&inv_record_at(d.table, i)->sites, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun;
    if (!begun)
        begin();
    begun = true;
    input = (struct fuzz_input){data, bytes};
    steps = 0;
    renewed = false;
    file_bytes = 0;
    file_room = FILE_MAX;
    if (rmd_trace_start(&d, getuid(), -1))
        abort();
    struct rmd_trace *x = d.starting;
    receive_file(&x->writer);
    handle_file_checked(&x->writer.file_checked, EPOLLIN);
    if (d.trace != x || !wait_for_answer(&x->writer))
        abort();
    write_trace(&x->writer);
    atomic_store(&x->writer.done, true);
    check_file(x->writer.error);
    join_if_done(&d.ending);
    be_there();
    rmd_reports_free(&d.shared->reports, &d.dead);
    clear_rings();
    return 0;
}
