/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* trace.c - the writer's side of a ring of events, see trace.h. */
#define _GNU_SOURCE
#include "libinvasive/table/trace.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"

#include <errno.h>
#include <time.h>

_Static_assert((int)INV_TRACE_RMD == (int)INV_MAX_SLOTS, "a ring for each slot, then rmd's");
_Static_assert(INV_MAX_CORES <= 1024, "a core's number fits in an event");

enum { RMD_TRIES = 100 };
enum { NAP_NS = 200000, PATIENCE_NS = 1000000000, HALF = INV_TRACE_EVENTS / 2 };

_Atomic unsigned inv_trace_ring = INV_TRACE_NONE;

/* --- room */

void inv_trace_wake_reader(struct inv_table *t)
{
    /* release: partner is the reader's acquire, wait_for_events in rmd/journal/trace_writer.c */
    atomic_fetch_add_explicit(&t->trace_bell, 1, memory_order_release);
    inv_futex_wake(&t->trace_bell, 1, true);
}

static bool is_full(struct inv_trace_ring *r, uint64_t head)
{
    /* acquire: partner is the reader's release, after it cleared the cells */
    return head - atomic_load_explicit(&r->tail, memory_order_acquire) >= INV_TRACE_EVENTS;
}

/* Waits until the reader has made room; not if the writer is rmd, which never waits.  False: there
 * is no room.  If the trace ends meanwhile, the caller's event comes after its end and is not
 * written. */
static bool await_room(struct inv_table *t, struct inv_trace_ring *r, unsigned ring)
{
    INV_UNCANCELLED; /* the caller may be in the middle of anything */
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t end = inv_now_ns() + PATIENCE_NS;
    int saved = errno;
    bool room = false;
    while (ring != INV_TRACE_RMD && !room && inv_now_ns() < end &&
           !atomic_load_explicit(&r->stuck, memory_order_relaxed) && inv_tracing(t)) {
        inv_trace_wake_reader(t);
        nanosleep(&nap, NULL);
        room = !is_full(r, atomic_load_explicit(&r->head, memory_order_relaxed));
    }
    errno = saved;
    if (!room && inv_tracing(t)) {
        atomic_store_explicit(&r->stuck, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
    }
    return room;
}

static struct inv_trace_event *reserve_event(struct inv_table *t)
{
    unsigned ring = atomic_load_explicit(&inv_trace_ring, memory_order_relaxed);
    if (ring >= INV_TRACE_RINGS)
        return NULL;
    struct inv_trace_ring *r = inv_trace_ring_at(t, ring);
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    for (unsigned tries = 0;; tries++) {
        if (ring == INV_TRACE_RMD && tries == RMD_TRIES) { /* a process writes to its ring */
            atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
            return NULL;
        }
        if (is_full(r, head)) {
            if (!await_room(t, r, ring))
                return NULL;
            head = atomic_load_explicit(&r->head, memory_order_relaxed);
            continue;
        }
        /* relaxed: the cell's own first word tells the reader of it.  Never more than there are
         * cells, however many threads are here */
        if (atomic_compare_exchange_weak_explicit(&r->head, &head, head + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            break;
    }
    if (head % HALF == HALF - 1)
        inv_trace_wake_reader(t);
    return &r->event[head % INV_TRACE_EVENTS];
}

/* release: partner is the reader's acquire load of head; body is complete then */
static void fill_event(struct inv_trace_event *e, uint64_t head, uint64_t body)
{
    atomic_store_explicit(&e->body, body, memory_order_relaxed);
    atomic_store_explicit(&e->head, head, memory_order_release);
}

void inv_trace_write(struct inv_table *t, enum inv_trace_kind kind, uint64_t body)
{
    struct inv_trace_event *e = reserve_event(t);
    if (e)
        fill_event(e, inv_trace_head(kind, 0, INV_TRACE_DONE, inv_now_ns()), body);
}

/* --- changes of a core's word */

enum { NAME_ELSEWHERE = 511, NAME_WRONG = 510 };

static uint64_t short_name(unsigned name)
{
    return name <= INV_MAX_SLOTS ? name : name == INV_ELSEWHERE ? NAME_ELSEWHERE : NAME_WRONG;
}

/*
 * bits  0..8 holder, 9..17 owner, 18 reclaim, 19 handed; 20..39 the same before;
 * bits 40..63 epoch, as in the word.
 */
static uint64_t fields_of(inv_word w)
{
    return short_name(inv_word_holder(w)) | short_name(inv_word_owner(w)) << 9 |
           (uint64_t)inv_word_reclaim(w) << 18 | (uint64_t)inv_word_handed(w) << 19;
}

static uint64_t change(inv_word old, inv_word next)
{
    inv_assert(fields_of(next) >> 20 == 0 && fields_of(old) >> 20 == 0);
    return fields_of(next) | fields_of(old) << 20 | (uint64_t)inv_word_epoch(next) << 40;
}

struct inv_trace_intent inv_trace_intend(struct inv_table *t, unsigned core, inv_word old,
                                         inv_word next)
{
    struct inv_trace_intent intent = {.event = reserve_event(t)}; /* may wait */
    intent.head = inv_trace_head(INV_TRACE_CORE, core, INV_TRACE_INTENT, inv_now_ns());
    if (intent.event)
        fill_event(intent.event, intent.head, change(old, next));
    return intent;
}

/* After an rmd was killed, the next one takes all events, settled or not, and clears their cells.
 * The cell may have another event by now, so it is changed only if it still has this intent. */
void inv_trace_settle(struct inv_trace_intent intent, bool happened)
{
    unsigned state = happened ? INV_TRACE_DONE : INV_TRACE_VOID;
    if (intent.event)
        atomic_compare_exchange_strong_explicit(
            &intent.event->head, &intent.head, inv_trace_with_state(intent.head, state),
            memory_order_release, memory_order_relaxed);
}

void inv_trace_late(struct inv_table *t, unsigned core, inv_word old, inv_word next)
{
    struct inv_trace_event *e = reserve_event(t);
    if (e)
        fill_event(e, inv_trace_head(INV_TRACE_CORE, core, INV_TRACE_DONE, inv_now_ns()),
                   change(old, next));
}
