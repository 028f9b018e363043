/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace.c - the reader of the rings, see trace.h.
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
#include "rmd/domain/trace.h"
#include "assertion.h"
#include "rmd/domain/domain_inside.h"
#include "futex.h"
#include "rmd/loop/log.h"
#include "now.h"
#include "rmd/host/peer.h"
#include "rmd/host/rate_limit.h"
#include "socket.h"
#include "rmd/host/subuid.h"
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 100000000, PAUSE_NS = 10000000, SETTLE_TRIES = 20, CLOSE_TRIES = 200 };
enum { ORPHANS_MAX = 32 };
#ifndef INV_SMALL /* bench/fuzz */
enum { QUEUED_MAX = 1 << 26 };
#else
enum { QUEUED_MAX = 1 << 10 };
#endif
/* The thread may take 1 / PART of a processor; and BURST_NS of processor time before it backs
 * off. */
enum { PART = 4, BURST_NS = 50000000 };
enum { WAIT, BEGIN, END }; /* what the thread is told when it has looked at the file */

/* The rings of one table. */
struct reading {
    struct inv_table *table; /* a mapping of its own */
    /* rings of processes that have been members during the trace: only these are read.  release,
     * after tail; partner: the thread's acquire */
    _Atomic bool used[INV_TRACE_RINGS];
    /* how far the rings were when their processes had gone; writer: the main thread */
    _Atomic uint64_t settled[INV_TRACE_RINGS];
    uint64_t tail[INV_TRACE_RINGS];
};

/* What the main thread hands over: a chunk, and what comes before it is written. */
struct item {
    struct item *next;
    struct reading *reading; /* another table from here on */
    bool leave, last;        /* no table; and no trace */
    size_t bytes;
    struct inv_trace_chunk chunk[]; /* bytes of it, with what follows the head */
};

struct rmd_trace {
    struct rmd_trace *next; /* of the orphans */
    uid_t uid, taker;       /* the users of the domain and of the client */
    pthread_t thread;
    _Atomic bool done; /* release: the thread will not touch this any more */
    struct rmd_source file_checked; /* the thread has looked at the file; an eventfd */
    struct rmd_domain *domain;
    _Atomic uint32_t go; /* futex: WAIT, BEGIN, END */
    _Atomic uint32_t ends; /* futex: of tables, so far */
    int file; /* the thread's; -1 none */
    int client; /* socket of the client that asked for the trace, until the file has been checked;
                   then of the one that asks for its end */
    struct reading *now; /* the main thread's: of the table that there is */

    pthread_mutex_t lock; /* guards: */
    struct item *first, **end;
    size_t queued;
    bool missing; /* there was no room: what comes after `first` is not in the file any more */

    struct item *ending; /* the main thread's, for the end, which needs no memory then */

    /* the thread's own */
    struct reading *reading; /* NULL: no table */
    uint32_t bell_seen;
    uint64_t spent_ns, due_ns; /* processor time so far; of the leaky bucket */
    uint64_t events, lost; /* in the file; in tables that have been left */
    off_t written;
    int error; /* errno of what ended the writing */
    bool as_root; /* the thread could not become the taker */
    struct {
        struct inv_trace_chunk chunk;
        uint64_t lost;
        uint64_t event[INV_TRACE_EVENTS][2];
    } out;
};

/* --- the file */

static void stop_writing(struct rmd_trace *x, int error)
{
    x->error = error;
    if (ftruncate(x->file, x->written))
        rmd_debug("the trace's last chunk is not whole");
    rmd_error("the trace ends after %lld bytes: %s", (long long)x->written, strerror(error));
    if (x->reading)
        atomic_store(&x->reading->table->tracing, 0);
}

/* Is what is left kept for root? */
static bool has_reserve_only(int file)
{
    struct statvfs fs;
    return !fstatvfs(file, &fs) && fs.f_bavail == 0 && fs.f_bfree > 0;
}

static void write_file(struct rmd_trace *x, const void *what, size_t bytes)
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
static void write_file_head(struct rmd_trace *x)
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
static bool copy_event(struct rmd_trace *x, struct inv_trace_event *e, bool force, size_t *n)
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

/* Move what the ring has to the file.  False: there is something that is not complete yet. */
static bool drain_ring(struct rmd_trace *x, unsigned ring, bool force)
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

static bool is_used(struct reading *r, unsigned ring)
{
    return atomic_load_explicit(&r->used[ring], memory_order_acquire);
}

static bool drain_rings(struct rmd_trace *x, bool force)
{
    bool complete = true;
    for (unsigned ring = 0; x->reading && ring < INV_TRACE_RINGS; ring++)
        if (is_used(x->reading, ring))
            complete &= drain_ring(x, ring, force);
    return complete;
}

static void count_lost(struct rmd_trace *x)
{
    for (unsigned ring = 0; ring < INV_TRACE_RINGS; ring++)
        if (is_used(x->reading, ring))
            x->lost += atomic_load_explicit(
                &inv_trace_ring_at(x->reading->table, ring)->lost, memory_order_relaxed);
}

/* Tracing is off: what has been begun is completed in a moment, or its writer is dead. */
static void leave_table(struct rmd_trace *x)
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

static struct item *receive_items(struct rmd_trace *x, bool *missing)
{
    pthread_mutex_lock(&x->lock);
    struct item *all = x->first;
    x->first = NULL;
    x->end = &x->first;
    x->queued = 0;
    *missing = x->missing;
    pthread_mutex_unlock(&x->lock);
    return all;
}

/* True: this was the last one. */
static bool handle_item(struct rmd_trace *x, struct item *item)
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
static void back_off(struct rmd_trace *x, uint32_t ends)
{
    uint64_t spent = rmd_rate_limit_clock(), now = inv_now_ns();
    uint64_t share = (spent - x->spent_ns) * PART / RMD_RATE_LIMIT_DIVISOR;
    x->due_ns = rmd_rate_limit_add(x->due_ns, now, share, BURST_NS);
    x->spent_ns = spent;
    if (x->due_ns > now)
        inv_futex_wait(&x->ends, ends, (int64_t)(x->due_ns - now), false);
}

static void wait_for_events(struct rmd_trace *x)
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

static void write_end(struct rmd_trace *x)
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
static void receive_file(struct rmd_trace *x)
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
static void drop_privileges(struct rmd_trace *x)
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

/* seq_cst: partner is set_verdict. */
static bool wait_for_verdict(struct rmd_trace *x)
{
    while (atomic_load(&x->go) == WAIT)
        inv_futex_wait(&x->go, WAIT, -1, false);
    return atomic_load(&x->go) == BEGIN;
}

static void write_trace(struct rmd_trace *x)
{
    write_file_head(x);
    for (bool last = false, missing; !last;) {
        uint32_t ends = atomic_load(&x->ends); /* partner: end_table, after it has handed over */
        for (struct item *next, *item = receive_items(x, &missing); item; item = next) {
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
    struct rmd_trace *x = arg;
    drop_privileges(x);
    receive_file(x);
    if (wait_for_verdict(x)) {
        write_trace(x);
    } else {
        if (x->file >= 0)
            close(x->file);
        if (x->client >= 0)
            close(x->client);
    }
    /* release: partner is the acquire in join_if_done */
    atomic_store_explicit(&x->done, true, memory_order_release);
    return NULL;
}

/* --- the main thread's side */

/* A chunk for the thread, of so many bytes after its head; NULL: no memory, or the disk is slow,
 * and the file ends here. */
static struct item *new_item(struct rmd_trace *x, enum inv_trace_chunk_type type, size_t bytes)
{
    size_t all = sizeof(struct inv_trace_chunk) + bytes;
    pthread_mutex_lock(&x->lock);
    bool has_space = x->queued < QUEUED_MAX && !x->missing;
    struct item *item = has_space ? calloc(1, sizeof *item + all) : NULL;
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

static void *body_of(struct item *item) { return item->chunk + 1; }

static void queue_item(struct rmd_trace *x, struct item *item)
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

static void copy_sites(struct rmd_domain *d, unsigned slot)
{
    struct inv_record *r = inv_record_at(d->table, slot);
    uint32_t sites = atomic_load_explicit(&r->sites, memory_order_relaxed);
    sites = sites < INV_SITES ? sites : INV_SITES;
    struct item *item = sites ? new_item(d->trace, INV_CHUNK_SITES,
                                         sites * sizeof(struct inv_trace_site))
                              : NULL;
    if (!item)
        return;
    struct inv_trace_site *to = body_of(item);
    item->chunk->a = slot;
    item->chunk->b = (uint32_t)d->procs[slot].pid;
    unsigned n = 0;
    for (unsigned i = 0; i < sites; i++) {
        struct inv_site *s = &r->site[i];
        /* acquire: partner is the process's release, after it wrote the names */
        if (!atomic_load_explicit(&s->named, memory_order_acquire))
            continue;
        to[n].number = i;
        to[n].offset = s->offset;
        memcpy(to[n].function, s->function, sizeof to[n].function);
        memcpy(to[n].symbol, s->symbol, sizeof to[n].symbol);
        memcpy(to[n].module, s->module, sizeof to[n].module);
        to[n].function[INV_FUNCTION_BYTES - 1] = '\0';
        to[n].symbol[INV_SYMBOL_BYTES - 1] = to[n].module[INV_MODULE_BYTES - 1] = '\0';
        n++;
    }
    inv_assert(n <= sites);
    item->chunk->bytes = (uint32_t)(n * sizeof *to);
    item->bytes = sizeof(struct inv_trace_chunk) + item->chunk->bytes;
    queue_item(d->trace, item);
}

/* Discards events of an earlier trace.  No process writes to the ring now. */
static void begin_ring(struct rmd_domain *d, unsigned ring)
{
    struct reading *reading = d->trace->now;
    if (is_used(reading, ring))
        return;
    struct inv_trace_ring *r = inv_trace_ring_at(d->table, ring);
    uint64_t head = atomic_load(&r->head);
    for (unsigned i = 0; head && i < INV_TRACE_EVENTS; i++)
        atomic_store_explicit(&r->event[i].head, 0, memory_order_relaxed);
    atomic_store(&r->lost, 0);
    atomic_store(&r->stuck, 0);
    reading->tail[ring] = head;
    atomic_store(&r->tail, head);
    atomic_store_explicit(&reading->used[ring], true, memory_order_release);
}

void rmd_trace_joined(struct rmd_domain *d, unsigned slot)
{
    if (!d->trace || !d->trace->now)
        return;
    begin_ring(d, slot);
    struct item *item =
        new_item(d->trace, INV_CHUNK_PROCESS, sizeof(struct inv_trace_process));
    if (!item)
        return;
    struct inv_slot *s = inv_slot_at(d->table, slot);
    struct inv_trace_process *p = body_of(item);
    item->chunk->time_ns = d->procs[slot].start_ns;
    item->chunk->a = slot;
    item->chunk->b = (uint32_t)d->procs[slot].pid;
    p->rank = d->procs[slot].rank;
    p->size = d->procs[slot].size;
    memcpy(p->program, s->program, sizeof p->program);
    p->program[sizeof p->program - 1] = '\0';
    queue_item(d->trace, item);
}

void rmd_trace_gone(struct rmd_domain *d, unsigned slot, bool left)
{
    if (!d->trace || !d->trace->now)
        return;
    copy_sites(d, slot);
    struct item *item = new_item(d->trace, INV_CHUNK_GONE, sizeof(uint64_t));
    if (item) {
        uint64_t lives = left;
        item->chunk->a = slot;
        item->chunk->b = (uint32_t)d->procs[slot].pid;
        memcpy(body_of(item), &lives, sizeof lives);
    }
    queue_item(d->trace, item);
    /* release: partner is the thread's acquire.  It writes no more: what it has not completed
     * stays as it is */
    uint64_t head = atomic_load(&inv_trace_ring_at(d->table, slot)->head);
    atomic_store_explicit(&d->trace->now->settled[slot], head, memory_order_release);
}

static struct reading *read_table(int fd)
{
    struct reading *reading = calloc(1, sizeof *reading);
    if (reading && (reading->table = inv_table_map(fd, true)) != NULL)
        return reading;
    rmd_error("the trace leaves out a core table: %s", strerror(errno));
    free(reading);
    return NULL;
}

/* Tracing is on from here: every later change of a word is in a ring (core.c, change_word). */
static void begin_table(struct rmd_domain *d, int fd)
{
    struct inv_table *t = d->table;
    unsigned ncores = d->topology.ncores;
    struct item *item =
        new_item(d->trace, INV_CHUNK_TABLE, ncores * sizeof(struct inv_trace_first));
    d->trace->now = item ? read_table(fd) : NULL;
    if (!d->trace->now) {
        free(item);
        return;
    }
    begin_ring(d, INV_TRACE_RMD);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            begin_ring(d, s);
    struct inv_trace_first *core = body_of(item);
    atomic_store(&t->tracing, 1); /* seq_cst: partners are the loads in core.c, change_word */
    item->reading = d->trace->now;
    item->chunk->a = ncores;
    item->chunk->b = (d->topology.emulated ? 1 : 0) | (t->mode == INV_MODE_ANONYMOUS ? 2 : 0);
    for (unsigned c = 0; c < ncores; c++) {
        core[c].os_cpu = inv_core_at(t, c)->os_cpu;
        core[c].word = atomic_load(&inv_core_at(t, c)->word);
    }
    queue_item(d->trace, item);
}

/* And off again: every change up to these words is in a ring, at least as an intent. */
static void end_table(struct rmd_domain *d, bool last)
{
    unsigned ncores = d->trace->now ? d->topology.ncores : 0;
    struct item *item = new_item(d->trace, INV_CHUNK_LAST, ncores * sizeof(uint64_t));
    if (item) {
        uint64_t *word = body_of(item);
        item->chunk->a = ncores;
        for (unsigned c = 0; c < ncores; c++)
            word[c] = atomic_load(&inv_core_at(d->table, c)->word);
    } else if (last) { /* it must end, without the words */
        item = d->trace->ending;
        d->trace->ending = NULL;
    }
    if (d->table)
        atomic_store(&d->table->tracing, 0);
    d->trace->now = NULL;
    if (!item) /* the thread leaves this table when it hears of the next one, or of the end */
        return;
    item->leave = true;
    item->last = last;
    queue_item(d->trace, item);
    atomic_fetch_add(&d->trace->ends, 1); /* seq_cst: partner is write_trace */
    inv_futex_wake(&d->trace->ends, 1, false);
    if (d->table)
        inv_trace_wake_reader(d->table); /* else the client would wait for its next look */
}

void rmd_trace_table(struct rmd_domain *d, int fd)
{
    if (d->trace && fd >= 0)
        begin_table(d, fd);
    else if (d->trace)
        end_table(d, false);
    else if (d->table) /* its last rmd was killed in the middle of a trace */
        atomic_store(&d->table->tracing, 0);
}

static void free_trace(struct rmd_trace *x)
{
    for (struct item *next, *item = x->first; item; item = next) {
        next = item->next;
        free(item);
    }
    free(x->ending);
    if (x->file_checked.fd >= 0)
        close(x->file_checked.fd);
    free(x);
}

/* A trace that has come to its end, if there is one here, makes room for another one. */
static void join_if_done(struct rmd_trace **place)
{
    struct rmd_trace *x = *place;
    if (!x || !atomic_load_explicit(&x->done, memory_order_acquire))
        return;
    *place = x->next;
    pthread_join(x->thread, NULL);
    free_trace(x);
}

/* Traces without a domain.  Their threads end later, since the disk may be slow. */
static struct rmd_trace *orphans;

static void join_orphans(void)
{
    for (struct rmd_trace **place = &orphans, *x; (x = *place) != NULL;) {
        join_if_done(place);
        if (*place == x)
            place = &x->next;
    }
}

/* A person that has been forgotten and comes back has one trace at a time, too; and disks that do
 * not answer may keep so many threads of all. */
static bool may_start(uid_t uid)
{
    unsigned n = 0;
    for (const struct rmd_trace *x = orphans; x; x = x->next, n++)
        if (rmd_person(x->uid) == rmd_person(uid))
            return false;
    return n < ORPHANS_MAX;
}

static void set_verdict(struct rmd_trace *x, uint32_t what)
{
    atomic_store(&x->go, what); /* partner: wait_for_verdict */
    inv_futex_wake(&x->go, 1, false);
}

static void answer_start(struct rmd_trace *x)
{
    struct inv_reply reply = {.magic = INV_PROTOCOL_MAGIC,
                              .version = INV_PROTOCOL_VERSION,
                              .status = x->error ? INV_E_PROTOCOL : INV_OK};
    if (x->error)
        snprintf(reply.message, sizeof reply.message, "not a regular file, open for writing");
    send(x->client, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
    rmd_peer_close(x->client);
    x->client = -1;
}

static void begin_trace(struct rmd_domain *d, struct rmd_trace *x)
{
    inv_assert(!d->trace && !d->starting);
    d->trace = x;
    if (d->table)
        begin_table(d, d->table_fd);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            rmd_trace_joined(d, s);
    atomic_store(&inv_trace_ring, INV_TRACE_RMD);
}

static void handle_file_checked(struct rmd_source *source, uint32_t events)
{
    struct rmd_trace *x =
        (struct rmd_trace *)((char *)source - offsetof(struct rmd_trace, file_checked));
    eventfd_t count;
    (void)events;
    if (eventfd_read(source->fd, &count))
        return;
    rmd_unwatch(source);
    x->domain->starting = NULL;
    bool refused = x->error;
    if (!refused)
        begin_trace(x->domain, x);
    answer_start(x);
    set_verdict(x, refused ? END : BEGIN);
    if (!refused)
        return;
    pthread_join(x->thread, NULL);
    free_trace(x);
}

int rmd_trace_start(struct rmd_domain *d, uid_t taker, int client)
{
    join_if_done(&d->ending);
    join_orphans();
    struct rmd_trace *x = NULL;
    if (d->starting || d->trace || d->ending || !may_start(d->uid))
        errno = EBUSY;
    else
        x = calloc(1, sizeof *x);
    if (!x)
        return -1;
    x->file = -1;
    x->client = client;
    x->domain = d;
    x->uid = d->uid;
    x->taker = taker;
    x->end = &x->first;
    x->file_checked =
        (struct rmd_source){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), handle_file_checked};
    pthread_mutex_init(&x->lock, NULL);
    x->ending = calloc(1, sizeof *x->ending);
    int error = !x->ending || x->file_checked.fd < 0 || rmd_watch(&x->file_checked, EPOLLIN)
                    ? errno
                    : pthread_create(&x->thread, NULL, run_thread, x);
    if (!error) {
        d->starting = x;
        return 0;
    }
    if (x->file_checked.fd >= 0)
        rmd_unwatch(&x->file_checked);
    free_trace(x);
    errno = error;
    return -1;
}

bool rmd_trace_taker(const struct rmd_domain *d, uid_t *taker)
{
    if (d->trace)
        *taker = d->trace->taker;
    return d->trace != NULL;
}

void rmd_trace_stop(struct rmd_domain *d, int client)
{
    if (!d->trace)
        return;
    for (unsigned s = 0; d->trace->now && s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            copy_sites(d, s);
    d->trace->client = client;
    end_table(d, true);
    d->ending = d->trace;
    d->trace = NULL;
}

void rmd_trace_close(struct rmd_domain *d)
{
    rmd_trace_stop(d, -1);
    if (d->starting) {
        rmd_unwatch(&d->starting->file_checked);
        set_verdict(d->starting, END);
        d->ending = d->starting;
        d->starting = NULL;
    }
    if (d->ending) {
        d->ending->next = orphans;
        orphans = d->ending;
        d->ending = NULL;
    }
    join_orphans();
}

void rmd_trace_end(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0; i < CLOSE_TRIES && orphans; i++) {
        join_orphans();
        if (orphans)
            nanosleep(&pause, NULL);
    }
}
