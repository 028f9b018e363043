/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace_writer.c - the thread that reads the rings, see trace_writer.h.
 *
 * The thread reads all rings ten times a second.  Each time it takes a core from a computing
 * thread, for some 60 us.  It reads them earlier when one is half full, or when the trace of a
 * table ends.  It does not trust the rings: it has positions of its own, and copies events without
 * interpreting more than their state.  A ring can keep it busy for one round of its cells each
 * time.  A process that rings its bell all the time can make it take a quarter of a processor: the
 * thread backs off then (rate_limit.h).  A writer whose ring is full waits for space, up to a
 * second.
 *
 * The thread also takes the file's descriptor from the client's socket, checks it and closes it.
 * Each of these may block on the disk, or for ever on the user's own file system.
 *
 * When the disk is full, or writing fails for another reason, rmd logs that.  The file ends with
 * its last complete chunk, and programs continue without a trace.  The same happens if the disk is
 * so slow that the queue from the main thread is full: a file that lacks a process cannot be read.
 */
#define _GNU_SOURCE
#include "rmd/journal/trace_writer.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/futex.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/rate_limit.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 100000000, PAUSE_NS = 10000000, SETTLE_TRIES = 20 };
#ifndef INV_SMALL /* bench/fuzz */
enum { QUEUED_MAX = 1 << 26 };
#else
enum { QUEUED_MAX = 1 << 10 };
#endif
/* The thread may take 1 / PART of a processor; and BURST_NS of processor time before it backs
 * off. */
enum { PART = 4, BURST_NS = 50000000 };

/* --- the file */

static void stop_writing(struct rmd_trace_writer *x, int error)
{
    x->error = error;
    if (ftruncate(x->file, x->written))
        rmd_debug("the trace's last chunk is not whole");
    rmd_error("the trace ends after %lld bytes: %s", (long long)x->written, strerror(error));
    if (x->reading)
        atomic_store(&x->reading->table->tracing, 0);
}

/* Has the file system no space left but that which is reserved for root? */
static bool has_reserve_only(int file)
{
    struct statvfs fs;
    return !fstatvfs(file, &fs) && fs.f_bavail == 0 && fs.f_bfree > 0;
}

static void write_file(struct rmd_trace_writer *x, const void *what, size_t bytes)
{
    const char *from = what;
    if (!x->error && x->as_root && has_reserve_only(x->file))
        stop_writing(x, ENOSPC);
    size_t left = x->error ? 0 : bytes;
    while (left) {
        ssize_t n = write(x->file, from, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            stop_writing(x, n ? errno : EIO);
            return;
        }
        from += n;
        left -= (size_t)n;
    }
    if (!x->error)
        x->written += (off_t)bytes;
}

/* Empties the file.  Not earlier: a refused request must not harm the file, nor a trace that is
 * being written to it. */
static void write_file_head(struct rmd_trace_writer *x)
{
    struct inv_trace_file head = {.order = INV_TRACE_ORDER,
                                  .version = INV_TRACE_VERSION,
                                  .monotonic_ns = inv_now_ns(),
                                  .realtime_ns = inv_clock_ns(CLOCK_REALTIME)};
    memcpy(head.magic, INV_TRACE_MAGIC, sizeof head.magic);
    if (ftruncate(x->file, x->written))
        stop_writing(x, errno);
    write_file(x, &head, sizeof head);
}

/* --- the rings */

/* Copies the event if it is complete.  False: it may still be written.  force: no process is left
 * that could write it. */
static bool copy_event(struct rmd_trace_writer *x, struct inv_trace_event *e, bool force, size_t *n)
{
    /* acquire: partner is the writer's release, after it wrote the body */
    uint64_t head = atomic_load_explicit(&e->head, memory_order_acquire);
    unsigned state = inv_trace_state(head);
    if (!force && (state == INV_TRACE_EMPTY || state == INV_TRACE_INTENT))
        return false;
    if (state == INV_TRACE_DONE || state == INV_TRACE_INTENT) {
        x->out.event[*n][0] = head;
        x->out.event[*n][1] = atomic_load_explicit(&e->body, memory_order_relaxed);
        (*n)++;
    }
    /* before the tail moves, which is released */
    atomic_store_explicit(&e->head, 0, memory_order_relaxed);
    return true;
}

/* Moves the ring's events to the file.  False: one of them is not complete yet. */
static bool drain_ring(struct rmd_trace_writer *x, unsigned ring, bool force)
{
    struct inv_trace_ring *r = inv_trace_ring_at(x->reading->table, ring);
    uint64_t tail = x->reading->tail[ring];
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint64_t settled = atomic_load_explicit(&x->reading->settled[ring],
                                            memory_order_acquire);
    if (head == tail)
        return true;
    if (head - tail > INV_TRACE_EVENTS) /* a process has overwritten it */
        head = tail + INV_TRACE_EVENTS;
    inv_assert(head - tail <= INV_TRACE_EVENTS);
    size_t n = 0;
    bool complete = true;
    for (; complete && tail < head; tail += complete)
        complete = copy_event(x, &r->event[tail % INV_TRACE_EVENTS], force || tail < settled, &n);
    inv_assert(n <= INV_TRACE_EVENTS);
    x->reading->tail[ring] = tail;
    atomic_store_explicit(&r->stuck, 0, memory_order_relaxed);
    /* release: partner is is_full, after which the cell is written again */
    atomic_store_explicit(&r->tail, tail, memory_order_release);
    x->out.lost = atomic_load_explicit(&r->lost, memory_order_relaxed);
    x->out.chunk = (struct inv_trace_chunk){
        .type = INV_CHUNK_EVENTS,
        .bytes = (uint32_t)(sizeof x->out.lost + n * sizeof *x->out.event),
        .time_ns = inv_now_ns(), /* after the events */
        .a = ring};
    if (n)
        write_file(x, &x->out, sizeof x->out.chunk + x->out.chunk.bytes);
    x->events += n;
    return complete;
}

static bool drain_rings(struct rmd_trace_writer *x, bool force)
{
    bool complete = true;
    for (unsigned ring = 0; x->reading && ring < INV_TRACE_RINGS; ring++)
        if (rmd_trace_is_read(x->reading, ring))
            complete &= drain_ring(x, ring, force);
    return complete;
}

static void count_lost(struct rmd_trace_writer *x)
{
    for (unsigned ring = 0; ring < INV_TRACE_RINGS; ring++)
        if (rmd_trace_is_read(x->reading, ring))
            x->lost += atomic_load_explicit(
                &inv_trace_ring_at(x->reading->table, ring)->lost, memory_order_relaxed);
}

/* The trace of the table has ended: intents are settled in a moment, or their writers are dead. */
static void leave_table(struct rmd_trace_writer *x)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (!x->reading)
        return;
    for (int i = 0; i < SETTLE_TRIES && !drain_rings(x, false); i++)
        nanosleep(&pause, NULL);
    drain_rings(x, true);
    count_lost(x);
    inv_table_unmap(x->reading->table);
    free(x->reading);
    x->reading = NULL;
}

/* --- the thread */

static struct rmd_trace_item *receive_items(struct rmd_trace_writer *x, bool *missing)
{
    pthread_mutex_lock(&x->lock);
    struct rmd_trace_item *all = x->first;
    x->first = NULL;
    x->end = &x->first;
    x->queued = 0;
    *missing = x->missing;
    pthread_mutex_unlock(&x->lock);
    return all;
}

/* True: this was the trace's last item. */
static bool handle_item(struct rmd_trace_writer *x, struct rmd_trace_item *item)
{
    bool last = item->last;
    if (item->leave || item->reading)
        leave_table(x);
    if (item->reading)
        x->reading = item->reading;
    if (item->reading && x->error)
        atomic_store(&x->reading->table->tracing, 0);
    write_file(x, item->chunk, item->bytes);
    free(item);
    return last;
}

/* Waits until the rate limit allows another look, or until a further table ends (x->ends is not
 * `ends`): a client waits for the thread then. */
static void back_off(struct rmd_trace_writer *x, uint32_t ends)
{
    uint64_t spent = rmd_rate_limit_clock(), now = inv_now_ns();
    uint64_t share = (spent - x->spent_ns) * PART / RMD_RATE_LIMIT_DIVISOR;
    x->due_ns = rmd_rate_limit_add(x->due_ns, now, share, BURST_NS);
    x->spent_ns = spent;
    if (x->due_ns > now)
        inv_futex_wait(&x->ends, ends, (int64_t)(x->due_ns - now), false);
}

static void wait_for_events(struct rmd_trace_writer *x)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (!x->reading) {
        nanosleep(&pause, NULL);
        return;
    }
    _Atomic uint32_t *bell = &x->reading->table->trace_bell;
    uint32_t now = atomic_load_explicit(bell, memory_order_acquire);
    if (now == x->bell_seen)
        inv_futex_wait(bell, now, LOOK_NS, true);
    x->bell_seen = now;
}

static void write_end(struct rmd_trace_writer *x)
{
    struct {
        struct inv_trace_chunk chunk;
        uint64_t events, lost;
    } end = {{.type = INV_CHUNK_END, .bytes = 16, .time_ns = inv_now_ns()},
             x->events,
             x->lost};
    write_file(x, &end, sizeof end);
    struct inv_reply reply = {.magic = INV_PROTOCOL_MAGIC,
                              .version = INV_PROTOCOL_VERSION,
                              .status = INV_OK,
                              .count = x->lost < UINT32_MAX ? (unsigned)x->lost : UINT32_MAX};
    if (close(x->file) && !x->error)
        x->error = errno;
    if (x->error)
        snprintf(reply.message, sizeof reply.message, "%.100s", strerror(x->error));
    if (x->client >= 0) {
        send(x->client, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(x->client, SHUT_RDWR); /* a child of rmd may have a copy (peer.c) */
        close(x->client);
    }
}

static bool is_writable_file(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    return !fstat(fd, &st) && S_ISREG(st.st_mode) && flags >= 0 &&
           (flags & O_ACCMODE) != O_RDONLY;
}

/* What the client has sent, if it is a file for a trace. */
static void receive_file(struct rmd_trace_writer *x)
{
    struct inv_request request;
    inv_socket_receive(x->client, &request, sizeof request, &x->file, MSG_DONTWAIT);
    if (x->file >= 0 && is_writable_file(x->file)) {
        x->written = lseek(x->file, 0, SEEK_CUR);
    } else {
        x->error = EINVAL;
        if (x->file >= 0)
            close(x->file);
        x->file = -1;
    }
    eventfd_write(x->file_checked.fd, 1);
}

/* The thread writes as the taker, under the taker's quota, and not into the blocks that a file
 * system reserves for root.  File system uid and capabilities are those of a thread in the kernel;
 * glibc does not know of it.  Under systemd's unit rmd may not change its uid, and checks the free
 * space itself. */
static void drop_privileges(struct rmd_trace_writer *x)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    if (x->taker == 0)
        return;
    if (!syscall(SYS_capget, &head, caps)) {
        caps[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
        syscall(SYS_capset, &head, caps);
    }
    syscall(SYS_setfsuid, x->taker);
    x->as_root = syscall(SYS_setfsuid, -1) == 0; /* returns the uid now */
}

/* seq_cst: partner is rmd_trace_writer_decide. */
static bool wait_for_answer(struct rmd_trace_writer *x)
{
    while (atomic_load(&x->go) == RMD_TRACE_WAIT)
        inv_futex_wait(&x->go, RMD_TRACE_WAIT, -1, false);
    return atomic_load(&x->go) == RMD_TRACE_BEGIN;
}

static void write_trace(struct rmd_trace_writer *x)
{
    write_file_head(x);
    for (bool last = false, missing; !last;) {
        uint32_t ends = atomic_load(&x->ends); /* partner: rmd_trace_writer_end_table */
        for (struct rmd_trace_item *next, *item = receive_items(x, &missing); item; item = next) {
            next = item->next;
            last |= handle_item(x, item);
        }
        if (missing && !x->error)
            stop_writing(x, ENOBUFS);
        if (last)
            break;
        drain_rings(x, false);
        back_off(x, ends);
        wait_for_events(x);
    }
    write_end(x);
}

static void *run_thread(void *arg)
{
    struct rmd_trace_writer *x = arg;
    drop_privileges(x);
    receive_file(x);
    if (wait_for_answer(x)) {
        write_trace(x);
    } else {
        if (x->file >= 0)
            close(x->file);
        if (x->client >= 0)
            close(x->client);
    }
    /* release: partner is the acquire in rmd_trace_writer_join */
    atomic_store_explicit(&x->done, true, memory_order_release);
    return NULL;
}

/* --- the main thread's side */

int rmd_trace_writer_start(struct rmd_trace_writer *x, uid_t taker, int client)
{
    x->file = -1;
    x->client = client;
    x->taker = taker;
    x->end = &x->first;
    pthread_mutex_init(&x->lock, NULL);
    return pthread_create(&x->thread, NULL, run_thread, x);
}

struct rmd_trace_item *rmd_trace_item_new(struct rmd_trace_writer *x,
                                          enum inv_trace_chunk_type type, size_t bytes)
{
    size_t all = sizeof(struct inv_trace_chunk) + bytes;
    pthread_mutex_lock(&x->lock);
    bool has_space = x->queued < QUEUED_MAX && !x->missing;
    struct rmd_trace_item *item = has_space ? calloc(1, sizeof *item + all) : NULL;
    x->missing = !item;
    pthread_mutex_unlock(&x->lock);
    if (!item)
        return NULL;
    item->bytes = all;
    item->chunk->type = type;
    item->chunk->bytes = (uint32_t)bytes;
    item->chunk->time_ns = inv_now_ns();
    return item;
}

void rmd_trace_item_queue(struct rmd_trace_writer *x, struct rmd_trace_item *item)
{
    if (!item)
        return;
    pthread_mutex_lock(&x->lock);
    inv_assert(*x->end == NULL && item->next == NULL);
    *x->end = item;
    x->end = &item->next;
    x->queued += item->bytes;
    pthread_mutex_unlock(&x->lock);
}

void rmd_trace_writer_decide(struct rmd_trace_writer *x, enum rmd_trace_answer answer)
{
    atomic_store(&x->go, answer); /* partner: wait_for_answer */
    inv_futex_wake(&x->go, 1, false);
}

void rmd_trace_writer_end_table(struct rmd_trace_writer *x)
{
    atomic_fetch_add(&x->ends, 1); /* seq_cst: partner is write_trace */
    inv_futex_wake(&x->ends, 1, false);
}

bool rmd_trace_writer_join(struct rmd_trace_writer *x)
{
    if (!atomic_load_explicit(&x->done, memory_order_acquire))
        return false;
    pthread_join(x->thread, NULL);
    return true;
}

void rmd_trace_writer_free(struct rmd_trace_writer *x)
{
    for (struct rmd_trace_item *next, *item = x->first; item; item = next) {
        next = item->next;
        free(item);
    }
}
