/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace.c - see trace.h: what a domain tells the thread that writes its trace (trace_writer.h).
 */
#define _GNU_SOURCE
#include "rmd/domain/trace.h"
#include "libinvasive/base/assertion.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "libinvasive/base/now.h"
#include "rmd/host/peer.h"
#include "rmd/host/subuid.h"
#include "libinvasive/table/trace.h"
#include "libinvasive/table/trace_file.h"
#include "rmd/journal/trace_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ORPHANS_MAX = 32, CLOSE_TRIES = 200, CLOSE_PAUSE_NS = 10000000 };

struct rmd_trace {
    struct rmd_trace *next; /* of the orphans */
    uid_t uid;              /* of the domain's user */
    struct rmd_domain *domain;
    struct rmd_trace_reading *now;  /* of the table that there is */
    struct rmd_trace_item *ending;  /* for the end, which needs no memory then */
    struct rmd_trace_writer writer;
};

static void copy_sites(struct rmd_domain *d, unsigned slot)
{
    struct inv_record *r = inv_record_at(d->table, slot);
    uint32_t sites = atomic_load_explicit(&r->sites, memory_order_relaxed);
    sites = sites < INV_SITES ? sites : INV_SITES;
    struct rmd_trace_item *item = sites ? rmd_trace_item_new(&d->trace->writer, INV_CHUNK_SITES,
                                         sites * sizeof(struct inv_trace_site))
                              : NULL;
    if (!item)
        return;
    struct inv_trace_site *to = rmd_trace_item_body(item);
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
    rmd_trace_item_queue(&d->trace->writer, item);
}

/* Discards events of an earlier trace.  No process writes to the ring now. */
static void begin_ring(struct rmd_domain *d, unsigned ring)
{
    struct rmd_trace_reading *reading = d->trace->now;
    if (rmd_trace_is_read(reading, ring))
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
    struct rmd_trace_item *item =
        rmd_trace_item_new(&d->trace->writer, INV_CHUNK_PROCESS, sizeof(struct inv_trace_process));
    if (!item)
        return;
    struct inv_slot *s = inv_slot_at(d->table, slot);
    struct inv_trace_process *p = rmd_trace_item_body(item);
    item->chunk->time_ns = d->procs[slot].start_ns;
    item->chunk->a = slot;
    item->chunk->b = (uint32_t)d->procs[slot].pid;
    p->rank = d->procs[slot].rank;
    p->size = d->procs[slot].size;
    memcpy(p->program, s->program, sizeof p->program);
    p->program[sizeof p->program - 1] = '\0';
    rmd_trace_item_queue(&d->trace->writer, item);
}

void rmd_trace_left(struct rmd_domain *d, unsigned slot, bool left)
{
    if (!d->trace || !d->trace->now)
        return;
    copy_sites(d, slot);
    struct rmd_trace_item *item =
        rmd_trace_item_new(&d->trace->writer, INV_CHUNK_GONE, sizeof(uint64_t));
    if (item) {
        uint64_t lives = left;
        item->chunk->a = slot;
        item->chunk->b = (uint32_t)d->procs[slot].pid;
        memcpy(rmd_trace_item_body(item), &lives, sizeof lives);
    }
    rmd_trace_item_queue(&d->trace->writer, item);
    /* release: partner is the thread's acquire.  It writes no more: what it has not completed
     * stays as it is */
    uint64_t head = atomic_load(&inv_trace_ring_at(d->table, slot)->head);
    atomic_store_explicit(&d->trace->now->settled[slot], head, memory_order_release);
}

static struct rmd_trace_reading *read_table(int fd)
{
    struct rmd_trace_reading *reading = calloc(1, sizeof *reading);
    if (reading && (reading->table = inv_table_map(fd, true)) != NULL)
        return reading;
    rmd_error("the trace leaves out a core table: %s", strerror(errno));
    free(reading);
    return NULL;
}

/* Begins the trace of a table: every later change of a word is in a ring (core.c, change_word). */
static void begin_table(struct rmd_domain *d, int fd)
{
    struct inv_table *t = d->table;
    unsigned ncores = d->topology.ncores;
    struct rmd_trace_item *item =
        rmd_trace_item_new(&d->trace->writer, INV_CHUNK_TABLE,
                           ncores * sizeof(struct inv_trace_first));
    d->trace->now = item ? read_table(fd) : NULL;
    if (!d->trace->now) {
        free(item);
        return;
    }
    begin_ring(d, INV_TRACE_RMD);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            begin_ring(d, s);
    struct inv_trace_first *core = rmd_trace_item_body(item);
    atomic_store(&t->tracing, 1); /* seq_cst: partners are the loads in core.c, change_word */
    item->reading = d->trace->now;
    item->chunk->a = ncores;
    item->chunk->b = (d->topology.emulated ? 1 : 0) | (t->mode == INV_MODE_ANONYMOUS ? 2 : 0);
    for (unsigned c = 0; c < ncores; c++) {
        core[c].os_cpu = inv_core_at(t, c)->os_cpu;
        core[c].word = atomic_load(&inv_core_at(t, c)->word);
    }
    rmd_trace_item_queue(&d->trace->writer, item);
}

/* Ends the trace of a table: every change up to the words that are read here is in a ring, at least
 * as an intent. */
static void end_table(struct rmd_domain *d, bool last)
{
    unsigned ncores = d->trace->now ? d->topology.ncores : 0;
    struct rmd_trace_item *item =
        rmd_trace_item_new(&d->trace->writer, INV_CHUNK_LAST, ncores * sizeof(uint64_t));
    if (item) {
        uint64_t *word = rmd_trace_item_body(item);
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
    rmd_trace_item_queue(&d->trace->writer, item);
    rmd_trace_writer_end_table(&d->trace->writer);
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
    rmd_trace_writer_free(&x->writer);
    free(x->ending);
    if (x->writer.file_checked.fd >= 0)
        close(x->writer.file_checked.fd);
    free(x);
}

/* Frees the trace in *place, if there is one and its thread has ended. */
static void join_if_done(struct rmd_trace **place)
{
    struct rmd_trace *x = *place;
    if (!x || !rmd_trace_writer_join(&x->writer))
        return;
    *place = x->next;
    free_trace(x);
}

/* Traces without a domain.  Their threads end later, since the disk may be slow. */
static void join_orphans(struct rmd_shared *shared)
{
    for (struct rmd_trace **place = &shared->orphans, *x; (x = *place) != NULL;) {
        join_if_done(place);
        if (*place == x)
            place = &x->next;
    }
}

/* May the domain's user start a trace?  A person has one trace at a time, also if rmd has forgotten
 * its user meanwhile.  And the number of threads that wait for disks is limited. */
static bool may_start(const struct rmd_domain *d)
{
    struct rmd_persons *persons = &d->shared->persons;
    unsigned n = 0;
    for (const struct rmd_trace *x = d->shared->orphans; x; x = x->next, n++)
        if (rmd_person(persons, x->uid) == rmd_person(persons, d->uid))
            return false;
    return n < ORPHANS_MAX;
}

static void answer_start(struct rmd_trace_writer *x)
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
        (struct rmd_trace *)((char *)source - offsetof(struct rmd_trace, writer.file_checked));
    eventfd_t count;
    (void)events;
    if (eventfd_read(source->fd, &count))
        return;
    rmd_unwatch(source);
    x->domain->starting = NULL;
    bool refused = x->writer.error;
    if (!refused)
        begin_trace(x->domain, x);
    answer_start(&x->writer);
    rmd_trace_writer_decide(&x->writer, refused ? RMD_TRACE_END : RMD_TRACE_BEGIN);
    if (!refused)
        return;
    pthread_join(x->writer.thread, NULL);
    free_trace(x);
}

int rmd_trace_start(struct rmd_domain *d, uid_t taker, int client)
{
    join_if_done(&d->ending);
    join_orphans(d->shared);
    struct rmd_trace *x = NULL;
    if (d->starting || d->trace || d->ending || !may_start(d))
        errno = EBUSY;
    else
        x = calloc(1, sizeof *x);
    if (!x)
        return -1;
    struct rmd_source *checked = &x->writer.file_checked;
    x->domain = d;
    x->uid = d->uid;
    *checked = (struct rmd_source){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), handle_file_checked};
    x->ending = calloc(1, sizeof *x->ending);
    int error = !x->ending || checked->fd < 0 || rmd_watch(checked, EPOLLIN)
                    ? errno
                    : rmd_trace_writer_start(&x->writer, taker, client);
    if (!error) {
        d->starting = x;
        return 0;
    }
    if (checked->fd >= 0)
        rmd_unwatch(checked);
    free_trace(x);
    errno = error;
    return -1;
}

bool rmd_trace_taker(const struct rmd_domain *d, uid_t *taker)
{
    if (d->trace)
        *taker = d->trace->writer.taker;
    return d->trace != NULL;
}

void rmd_trace_stop(struct rmd_domain *d, int client)
{
    if (!d->trace)
        return;
    for (unsigned s = 0; d->trace->now && s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used)
            copy_sites(d, s);
    d->trace->writer.client = client;
    end_table(d, true);
    d->ending = d->trace;
    d->trace = NULL;
}

void rmd_trace_close(struct rmd_domain *d)
{
    rmd_trace_stop(d, -1);
    if (d->starting) {
        rmd_unwatch(&d->starting->writer.file_checked);
        rmd_trace_writer_decide(&d->starting->writer, RMD_TRACE_END);
        d->ending = d->starting;
        d->starting = NULL;
    }
    if (d->ending) {
        d->ending->next = d->shared->orphans;
        d->shared->orphans = d->ending;
        d->ending = NULL;
    }
    join_orphans(d->shared);
}

void rmd_trace_end(struct rmd_shared *shared)
{
    const struct timespec pause = {.tv_nsec = CLOSE_PAUSE_NS};
    for (int i = 0; i < CLOSE_TRIES && shared->orphans; i++) {
        join_orphans(shared);
        if (shared->orphans)
            nanosleep(&pause, NULL);
    }
}
