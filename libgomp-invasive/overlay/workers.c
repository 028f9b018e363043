/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * workers.c - seats, the queue of threads that are ready for one, and workers (workers.h).
 */
#include "wait.h"
#include "workers.h"
#include "progress.h"
#include "region.h"
#include "taskpool.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* How long a thread idles on a core before it gives it up. */
enum {
    SPIN_KEEP_NS = 1000000, /* nobody wants the core */
    SPIN_WANTED_NS = 20000, /* somebody does: about the cost of giving and getting back */
    SPIN_BORROWED_NS = 50000, /* nobody does, but it is another's */
    SPIN_ALONE_NS = 5000,   /* from here on let others run that the kernel has put here */
    POLL_EVERY = 32,        /* pauses between two looks at the clock and the table */
};

_Atomic unsigned gomp_ready_count;

/* The queue of the ready. */
static struct gomp_spinlock sched_lock;
static struct gomp_waiter *ready_first, **ready_last = &ready_first;

void gomp_spinlock_contended (struct gomp_spinlock *l)
{
    unsigned spins = 0;
    do {
        while (atomic_load_explicit(&l->held, memory_order_relaxed))
            if (++spins % 128 == 0)
                sched_yield(); /* the holder may have been preempted on this core */
            else
                inv_cpu_relax();
    } while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire));
}

void gomp_sched_join (void)
{
    static _Atomic bool tried;
    if (atomic_load_explicit(&tried, memory_order_acquire))
        return;
    inv_join(-1, -1, -1); /* whoever comes second waits for the first */
    inv_set_work_probe(gomp_work_waiting);
    atomic_store_explicit(&tried, true, memory_order_release);
}

/* --- the queue of the ready */

static struct gomp_waiter *ready_pop (void)
{
    if (atomic_load_explicit(&gomp_ready_count, memory_order_relaxed) == 0)
        return NULL;
    gomp_spinlock_lock(&sched_lock);
    struct gomp_waiter *w = ready_first;
    if (w) {
        ready_first = w->next;
        if (!ready_first)
            ready_last = &ready_first;
        atomic_fetch_sub_explicit(&gomp_ready_count, 1, memory_order_relaxed);
    }
    gomp_spinlock_unlock(&sched_lock);
    if (w)
        gomp_progress_note();
    return w;
}

static void ready_push (struct gomp_waiter *w)
{
    w->next = NULL;
    gomp_spinlock_lock(&sched_lock);
    *ready_last = w;
    ready_last = &w->next;
    /* seq_cst: partner is gomp_seat_dispose, which gives a seat up and looks again */
    atomic_fetch_add(&gomp_ready_count, 1);
    gomp_spinlock_unlock(&sched_lock);
}

void gomp_ready (struct gomp_waiter *w)
{
    ready_push(w);
    gomp_want_cores();
}

bool gomp_threads_waiting (void)
{
    return atomic_load_explicit(&gomp_ready_count, memory_order_relaxed) > 0 ||
           gomp_tickets_left();
}

bool gomp_work_waiting (void)
{
    return gomp_threads_waiting() || gomp_help_waiting();
}

/* --- seats */

/* Let a worker use the seat for an implicit task that nobody has started, or for explicit ones. */
static bool place_on_ticket (int seat)
{
    return (gomp_tickets_left() || gomp_help_waiting()) &&
           (inv_agent_call(seat) || gomp_free_worker_start(seat));
}

/* Give a seat to a thread that needs one.  False: there is none. */
static bool place_seat (int seat)
{
    struct gomp_waiter *w = ready_pop();
    if (w) {
        gomp_waiter_wake(w, seat);
        return true;
    }
    return place_on_ticket(seat);
}

/* Workers that have been created and have not come to their loop yet. */
static _Atomic int starting;

void gomp_want_cores (void)
{
    if (!inv_managed())
        return;
    gomp_progress_arm();
    if (inv_agents_parked() == 0 && atomic_load_explicit(&starting, memory_order_relaxed) == 0)
        gomp_free_worker_start(INV_SEAT_NONE); /* somebody must be there to be found */
    /* seq_cst: the work was queued before; partner is stop_wanting. */
    atomic_thread_fence(memory_order_seq_cst);
    if (inv_want_get(inv_process.table, inv_process.slot) &&
        !(inv_process.anonymous && inv_tokens_held() == 0))
        return;
    inv_want(true);
    int seat;
    while (gomp_work_waiting() && (seat = inv_seat_try()) != INV_SEAT_NONE)
        if (!place_seat(seat)) {
            inv_seat_return(seat);
            break;
        }
}

/* Nothing to do here: say so, so that nobody wakes us for nothing.  Work that came between
 * our look and our saying so must not be left alone: inv_want ends with a full fence, and
 * whoever queues work does so before it looks whether we want. */
static void stop_wanting (void)
{
    if (!gomp_work_waiting())
        inv_want(false);
    if (gomp_work_waiting())
        gomp_want_cores();
}

void gomp_seat_dispose (int seat)
{
    enum inv_verdict verdict = inv_seat_check(seat);
    if (verdict == INV_LOST)
        return;
    if (verdict != INV_GIVE && place_seat(seat))
        return;
    /* Waiting for another process: what is left here is for others to see first. */
    /* Say first that we do not want it, or it would be offered to our own agents.  Forced out,
     * we go on wanting: the owner may need it for a moment only. */
    if (verdict != INV_GIVE)
        stop_wanting();
    inv_seat_return(seat);
    if (gomp_work_waiting())
        gomp_want_cores();
}

void gomp_seat_yield (void)
{
    if (inv_seat != INV_SEAT_NONE)
        gomp_seat_dispose(inv_seat_detach());
}

void gomp_seat_acquire (void)
{
    if (!inv_managed())
        return;
    struct gomp_waiter w = {.tid = inv_own_tid(), .needs_seat = true, .seat = INV_SEAT_NONE};
    gomp_ready(&w);
    gomp_waiter_sleep(&w);
}

void gomp_seat_checkpoint (void)
{
    if (!inv_managed() || inv_seat == INV_SEAT_NONE)
        return;
    enum inv_verdict verdict = inv_seat_poll();
    if (verdict != INV_GIVE && verdict != INV_LOST)
        return;
    gomp_seat_yield();
    gomp_seat_acquire();
}

/* How many workers are to prefer an unstarted implicit task to the queue of the ready. */
static _Atomic int tickets_first;

static bool take_ticket_first (void)
{
    int n = atomic_load_explicit(&tickets_first, memory_order_relaxed);
    return n > 0 && atomic_compare_exchange_strong(&tickets_first, &n, n - 1);
}

/* Those that are ready may all be waiting like the caller, for an implicit task that has
 * not started: that comes first. */
void gomp_yield_point (void)
{
    if (!inv_managed() || inv_seat == INV_SEAT_NONE || !gomp_work_waiting()) {
        sched_yield();
        return;
    }
    int seat = inv_seat_detach();
    if (gomp_tickets_left() && inv_seat_check(seat) != INV_LOST) {
        atomic_fetch_add_explicit(&tickets_first, 1, memory_order_relaxed);
        if (!place_on_ticket(seat))
            gomp_seat_dispose(seat);
    } else
        gomp_seat_dispose(seat);
    gomp_seat_acquire();
}

/* --- spinning */

/* Should a thread that idles on its seat go on doing so?  Looks at the clock and the
 * table; called every POLL_EVERY pauses. */
static bool may_idle (uint64_t start)
{
    enum inv_verdict verdict = inv_seat_poll();
    if (verdict == INV_GIVE || verdict == INV_LOST)
        return false;
    uint64_t idle = inv_now_ns() - start;
    if (gomp_spin_count_var == 0 || /* OMP_WAIT_POLICY=passive */
        atomic_load_explicit(&inv_process.waiting, memory_order_relaxed) > 0)
        return false;
    /* Whoever lent us the core may have been preempted by our wake-up before it slept, and
     * may have to run before it can ask for the core. */
    if (idle > SPIN_ALONE_NS)
        sched_yield();
    if (verdict == INV_WANTED)
        return idle < SPIN_WANTED_NS;
    return idle < (inv_seat_owned() ? SPIN_KEEP_NS : SPIN_BORROWED_NS);
}

bool gomp_idle_spin (bool (*ready) (void *), void *arg)
{
    uint64_t start = 0;
    for (unsigned i = 1;; i++) {
        if (ready(arg))
            return true;
        inv_cpu_relax();
        if (i % POLL_EVERY)
            continue;
        if (start == 0)
            start = inv_now_ns();
        if (!may_idle(start))
            return false;
    }
}

/* Without a seat.  Without a manager: upstream's rule, by counts of pauses.  Managed: we
 * are on somebody else's core, so hardly at all. */
bool gomp_count_spin (bool (*ready) (void *), void *arg)
{
    unsigned long long count = gomp_spin_count_var;
    if (inv_managed())
        count = 100;
    else if (__atomic_load_n(&gomp_managed_threads, MEMMODEL_RELAXED) > gomp_available_cpus)
        count = gomp_throttled_spin_count_var;
    for (unsigned long long i = 0; i < count; i++) {
        if (ready(arg))
            return true;
        inv_cpu_relax();
    }
    return false;
}

bool gomp_spin_until (bool (*ready) (void *), void *arg)
{
    if (inv_managed() && inv_seat != INV_SEAT_NONE)
        return gomp_idle_spin(ready, arg);
    return gomp_count_spin(ready, arg);
}

struct word_wait {
    int *addr;
    int val;
};

static inline bool word_changed (const struct word_wait *w)
{
    return __atomic_load_n(w->addr, MEMMODEL_RELAXED) != w->val;
}

static bool word_ready (void *arg)
{
    return word_changed(arg) || gomp_work_waiting();
}

static bool word_ready_unseated (void *arg)
{
    return word_changed(arg);
}

int gomp_spin (int *addr, int val)
{
    struct word_wait w = {addr, val};
    if (inv_managed() && inv_seat != INV_SEAT_NONE)
        gomp_idle_spin(word_ready, &w);
    else
        gomp_count_spin(word_ready_unseated, &w);
    return !word_changed(&w);
}

/* --- workers */

static void init_thread (void)
{
    struct gomp_thread *thr = gomp_thread();
    gomp_sem_init(&thr->release, 0);
}

/* A bound worker: runs the implicit task that it is mailed, helps with explicit tasks
 * while the region is open, waits for the next mail. */
static void *bound_worker_main (void *arg)
{
    struct gomp_worker *self = arg;
    struct gomp_thread *thr = gomp_thread();
    init_thread();
    gomp_seat_acquire();
    int seen = 0;
    for (;;) {
        while (atomic_load_explicit(&self->word, memory_order_acquire) == seen)
            do_wait((int *)&self->word, seen);
        seen = atomic_load_explicit(&self->word, memory_order_acquire);
        struct gomp_region *region = self->region;
        if (self->quit)
            break;
        if (!region)
            continue; /* a call for help that came too late */
        self->region = NULL;
        if (inv_managed() && inv_seat == INV_SEAT_NONE)
            gomp_seat_acquire();
        gomp_region_run_bound(region, self->id, self, &seen);
    }
    thr->thread_pool = NULL;
    thr->task = NULL;
    gomp_pool_donate();
    gomp_seat_yield();
    free(self);
    return NULL;
}

struct gomp_worker *gomp_worker_start (struct gomp_region *region, unsigned id)
{
    struct gomp_worker *w = gomp_malloc_cleared(sizeof *w);
    w->region = region;
    w->id = id;
    atomic_store_explicit(&w->word, 1, memory_order_relaxed);
    int error = pthread_create(&w->handle, &gomp_thread_attr, bound_worker_main, w);
    if (error)
        gomp_fatal("Thread creation failed: %s", strerror(error));
    return w;
}

/* Idle bound workers of nested teams that have ended. */
static struct gomp_worker *idle_nested;

struct gomp_worker *gomp_nested_worker (struct gomp_region *region, unsigned id)
{
    gomp_spinlock_lock(&sched_lock);
    struct gomp_worker *w = idle_nested;
    if (w)
        idle_nested = w->next;
    gomp_spinlock_unlock(&sched_lock);
    if (!w)
        return gomp_worker_start(region, id);
    gomp_worker_mail(w, region, id);
    return w;
}

void gomp_nested_worker_return (struct gomp_worker *w)
{
    gomp_spinlock_lock(&sched_lock);
    w->next = idle_nested;
    idle_nested = w;
    gomp_spinlock_unlock(&sched_lock);
}

void gomp_worker_mail (struct gomp_worker *w, struct gomp_region *region, unsigned id)
{
    w->region = region;
    w->id = id;
    /* release: partner is bound_worker_main's acquire */
    atomic_fetch_add_explicit(&w->word, 1, memory_order_release);
    gomp_unpark((int *)&w->word, 1);
}

void gomp_worker_quit (struct gomp_worker *w)
{
    w->quit = true;
    gomp_worker_mail(w, NULL, 0);
}

static bool work_waiting (void *arg)
{
    (void)arg;
    return gomp_work_waiting();
}

/* One round of a free worker that has a seat.  False: nothing to do. */
static bool work_once (void)
{
    if (take_ticket_first() && gomp_run_ticket())
        return true;
    struct gomp_waiter *w = ready_pop();
    if (w) {
        gomp_waiter_wake(w, inv_seat_detach());
        return true;
    }
    return gomp_run_ticket() || gomp_help_tasks() || gomp_idle_spin(work_waiting, NULL);
}

/* A free worker: takes unstarted implicit tasks and queued threads while it has a seat,
 * and is parked as an agent while it has none. */
static void *free_worker_main (void *arg)
{
    static _Atomic uint32_t never;
    init_thread();
    if ((int)(intptr_t)arg != INV_SEAT_NONE)
        inv_seat_sit((int)(intptr_t)arg);
    atomic_fetch_sub(&starting, 1);
    for (;;) {
        if (!inv_managed()) {
            inv_futex_wait(&never, 0, -1, false);
            continue;
        }
        if (inv_seat == INV_SEAT_NONE) {
            inv_agent_park(&never, 0, -1);
            if (inv_seat == INV_SEAT_NONE && gomp_progress_take_extra()) {
                inv_seat_ride();
                gomp_run_ticket();
            } else if (inv_seat == INV_SEAT_NONE)
                stop_wanting();
            continue;
        }
        gomp_progress_note();
        if (inv_seat_poll() == INV_GIVE || inv_seat_poll() == INV_LOST || !work_once())
            gomp_seat_yield();
    }
    return NULL;
}

bool gomp_free_worker_start (int seat)
{
    pthread_t handle;
    atomic_fetch_add(&starting, 1);
    if (pthread_create(&handle, &gomp_thread_attr, free_worker_main, (void *)(intptr_t)seat) != 0) {
        atomic_fetch_sub(&starting, 1);
        return false;
    }
    pthread_detach(handle);
    return true;
}

void gomp_run_unseated (unsigned count)
{
    for (; count > 0; count--) {
        struct gomp_waiter *w = ready_pop();
        if (w)
            gomp_waiter_wake(w, INV_SEAT_NONE);
        else if (!gomp_tickets_left())
            return;
        else {
            gomp_progress_add_extra();
            if (!inv_agent_call(INV_SEAT_NONE))
                gomp_free_worker_start(INV_SEAT_NONE);
        }
    }
}

void gomp_sched_forget (void)
{
    atomic_store(&sched_lock.held, 0);
    ready_first = NULL;
    ready_last = &ready_first;
    idle_nested = NULL;
    atomic_store(&starting, 0);
    atomic_store(&tickets_first, 0);
    atomic_store(&gomp_ready_count, 0);
}
