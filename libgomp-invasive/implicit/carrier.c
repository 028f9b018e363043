/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * carrier.c - kernel threads that execute contexts (carrier.h).
 */
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "overflow.h"
#include "process.h"
#include "ready.h"
#include "region.h"
#include "spin.h"
#include "suspended.h"
#include "team_thread.h"
#include "unheld.h"
#include <string.h>

enum { MOST_SPARES = 64 }; /* contexts kept for the next region: more than the implicit tasks of most */

struct gomp_carrier {
    struct gomp_suspended here; /* contexts that wait; the first member */
    /* Of the carrier's thread only: */
    struct gomp_context loop;     /* its own stack; addr and val: what its loop waits for */
    struct gomp_context *running; /* the loop or a context */
    struct gomp_context *ended;   /* has ended; its stack may be in use: see reuse_ended */
    struct gomp_context *spares;  /* unused; the latest first: its stack is in the cache */
    unsigned nspares;
    bool barren;                  /* the context that ended last found no implicit task */
    struct gomp_ended tasks; /* implicit tasks that have ended here and have not been counted */
    struct arrivals {
        struct gomp_region *region;
        unsigned count;
    } arrivals; /* at the barrier of that region's team, not counted yet: see add_arrival */
    bool tickets_first; /* a context has yielded: unstarted implicit tasks come first, once */
    unsigned looks;     /* of call_others and gomp_contexts_any_ready */
    bool may_steal;     /* it has idled, and seen a ready context in another carrier's list */
} __attribute__((aligned(64)));

static inline struct gomp_carrier *carrier_of (struct gomp_suspended *l)
{
    return (struct gomp_carrier *)l;
}

/* The carrier that the calling kernel thread is; NULL: none.  For loops, which stay on their kernel
 * thread. */
static inline struct gomp_carrier *own_carrier (void)
{
    return carrier_of(gomp_own_suspended);
}

/* The same in a context, which may continue on another kernel thread after a switch: not inlined,
 * so that the compiler keeps nothing of a thread's variables across the switch. */
static struct gomp_carrier *__attribute__((noinline, noclone)) carrier (void)
{
    __asm__ volatile("" ::: "memory");
    return own_carrier();
}

static struct gomp_carrier *make_carrier (void)
{
    struct gomp_suspended *l = gomp_suspended_all();
    for (; l; l = l->next)
        if (!atomic_load_explicit(&l->used, memory_order_relaxed) && !atomic_exchange(&l->used, true))
            break;
    if (!l) {
        struct gomp_carrier *made = gomp_aligned_alloc(__alignof__(*made), sizeof *made);
        memset(made, 0, sizeof *made);
        l = &made->here;
        gomp_suspended_clear(l);
        gomp_suspended_enlist(l);
    }
    inv_assert(!gomp_own_suspended && l->first == NULL &&
               atomic_load_explicit(&l->used, memory_order_relaxed));
    struct gomp_carrier *c = carrier_of(l);
    c->running = &c->loop;
    c->loop.addr = NULL;
    c->tasks.count = 0;
    c->arrivals.count = 0;
    c->tickets_first = c->may_steal = false;
    gomp_own_suspended = l;
    if (!pthread_getspecific(gomp_thread_destructor)) /* a worker; see thread_ends of team.c */
        pthread_setspecific(gomp_thread_destructor, GOMP_CARRIER_ONLY);
    return c;
}

/* The carrier that the calling kernel thread is from the first call on.  Prepares the thread for
 * switches. */
static struct gomp_carrier *carrier_made (void)
{
    gomp_contexts_find_state();
    return gomp_own_suspended ? own_carrier() : make_carrier();
}

/* --- for other carriers than the one that a context waits on */

/* Could other carriers run a context of the list?  Not one of a region that is left to its master's
 * core. */
static bool any_for_thieves (struct gomp_suspended *l)
{
    if (gomp_suspended_is_empty(l))
        return false;
    gomp_spinlock_lock(&l->lock);
    struct gomp_context *x = *gomp_suspended_ready(l);
    bool ready = x && !gomp_region_is_alone(x->region);
    gomp_spinlock_unlock(&l->lock);
    return ready;
}

/* Does the context run implicit tasks of the region, or of a region nested in it?  of NULL: of any region. */
static bool belongs_to (const struct gomp_context *x, const struct gomp_region *of)
{
    return !of || gomp_region_is_within(x->region, of);
}

/* Takes such a context, but none on whose stack a thread still is.  NULL: there is none. */
static struct gomp_context *take_as_thief (struct gomp_suspended *l, const struct gomp_region *of)
{
    if (gomp_suspended_is_empty(l))
        return NULL;
    gomp_spinlock_lock(&l->lock);
    struct gomp_context **link = gomp_suspended_ready(l);
    /* acquire; partner: finish_switch of context.c */
    bool left = *link && belongs_to(*link, of) && !gomp_region_is_alone((*link)->region) &&
                !atomic_load_explicit(&(*link)->running, memory_order_acquire);
    struct gomp_context *x = left ? gomp_suspended_unlink(l, link) : NULL;
    gomp_spinlock_unlock(&l->lock);
    return x;
}

/* Takes a context from the queue of the process.  of: of that region, or within it; NULL: any. */
static struct gomp_context *take_public (const struct gomp_region *of)
{
    struct gomp_ready_contexts *q = &gomp_all_suspended.ready;
    if (!gomp_contexts_are_ready())
        return NULL;
    gomp_spinlock_lock(&q->lock);
    struct gomp_context *x, **link = &q->first;
    while ((x = *link) && !belongs_to(x, of))
        link = &x->next;
    if (x) {
        *link = x->next;
        if (!x->next)
            q->last = link;
        unsigned before = atomic_fetch_sub_explicit(&q->count, 1, memory_order_relaxed);
        inv_assert(before > 0);
    }
    gomp_spinlock_unlock(&q->lock);
    return x;
}

/* --- arrivals at the barrier of a team
 *
 * A carrier counts its contexts that have arrived together, when it has no context of the region
 * that could run and has not arrived.  Until then the barrier cannot open anyway.  So the counter,
 * which all cores write, is written once for each carrier instead of once for each implicit
 * task. */

static gomp_barrier_t *barrier_of (const struct gomp_region *region)
{
    return &region->start.team->barrier;
}

static void count_arrivals (struct gomp_carrier *c)
{
    unsigned count = c->arrivals.count;
    inv_assert(count == 0 || count <= barrier_of(c->arrivals.region)->total);
    c->arrivals.count = 0;
    if (count > 0)
        gomp_barrier_arrived(barrier_of(c->arrivals.region), count);
}

void gomp_carrier_count_arrivals (void)
{
    struct gomp_carrier *c = carrier();
    if (c)
        count_arrivals(c);
}

static void add_arrival (struct gomp_carrier *c, struct gomp_region *region)
{
    if (c->arrivals.count > 0 && c->arrivals.region != region)
        count_arrivals(c);
    inv_assert(c->arrivals.count == 0 || c->arrivals.region == region);
    c->arrivals.region = region;
    c->arrivals.count++;
}

bool gomp_contexts_publish (void)
{
    struct gomp_carrier *c = carrier();
    bool ready = false;
    if (c)
        count_arrivals(c);
    if (!c || gomp_suspended_is_empty(&c->here))
        return false;
    gomp_spinlock_lock(&c->here.lock);
    struct gomp_context *next, *x = c->here.first;
    gomp_suspended_clear(&c->here);
    gomp_spinlock_unlock(&c->here.lock);
    for (; x; x = next) {
        next = x->next;
        if (!x->addr || !gomp_park_context(&x->waiter, x, x->addr, x->val)) {
            gomp_context_is_ready(x);
            ready = true;
        }
    }
    return ready;
}

/* --- switching */

/* A context that has ended may be used again when its stack has been left. */
static void reuse_ended (struct gomp_carrier *c)
{
    struct gomp_context *x = c->ended;
    if (!x)
        return;
    inv_assert(x->owns_stack && x != c->running);
    c->ended = NULL;
    if (c->nspares >= MOST_SPARES) {
        gomp_context_keep(x);
        return;
    }
    x->next = c->spares;
    c->spares = x;
    c->nspares++;
}

static struct gomp_context *take_spare (struct gomp_carrier *c)
{
    struct gomp_context *x = c->spares;
    if (!x)
        return NULL;
    inv_assert(c->nspares > 0 && c->nspares <= MOST_SPARES);
    c->spares = x->next;
    c->nspares--;
    return x;
}

/* Switches from `self` to `next`.  What has arrived or ended here is counted when the carrier
 * leaves the region: before that neither the barrier nor the region could be over. */
static void switch_to (struct gomp_carrier *c, struct gomp_context *self, struct gomp_context *next)
{
    if (c->arrivals.count > 0 && next->region != c->arrivals.region)
        count_arrivals(c);
    if (c->tasks.count > 0 && next->region != c->tasks.region)
        gomp_region_count_ended(&c->tasks);
    inv_assert(c == carrier() && c->running == self && next != self);
    inv_assert(self->owns_stack || next->owns_stack); /* a loop goes on to a context only */
    c->running = next;
    gomp_context_switch(self, next);
    inv_assert(carrier()->running == self);
    reuse_ended(carrier());
}

/* For the watchdog: a context has come to its end, or to a wait.  (A yield does not count.) */
static void count_switch (struct gomp_carrier *c)
{
    if (inv_hold == INV_HOLD_NONE)
        return;
    uint64_t before = atomic_load_explicit(&c->here.switches, memory_order_relaxed);
    atomic_store_explicit(&c->here.switches, before + 1, memory_order_relaxed);
}

/* Has the word that the loop waits for changed?  A worker's loop waits for none. */
static bool loop_goes_on (const struct gomp_carrier *c)
{
    return c->loop.addr && gomp_context_could_run(&c->loop);
}

/* Takes a context that can run from the carrier's list, under the list's lock.  NULL: none can, or
 * the loop can go on, which then comes first: no other thread can run it, and a context may spin
 * for something that it does next.  The loop is looked at last, since it may wait for the same word
 * as the context. */
static struct gomp_context *unlink_before_loop (struct gomp_carrier *c)
{
    struct gomp_context **link = gomp_suspended_ready(&c->here);
    return *link && !loop_goes_on(c) ? gomp_suspended_unlink(&c->here, link) : NULL;
}

static struct gomp_context *take_before_loop (struct gomp_carrier *c)
{
    if (gomp_suspended_is_empty(&c->here))
        return NULL;
    gomp_spinlock_lock(&c->here.lock);
    struct gomp_context *x = unlink_before_loop(c);
    gomp_spinlock_unlock(&c->here.lock);
    return x;
}

/* Has the loop something more urgent to do than contexts? */
static bool loop_needed (const struct gomp_carrier *c)
{
    if (loop_goes_on(c))
        return true;
    return inv_hold != INV_HOLD_NONE && (gomp_ready_at(inv_hold) || gomp_hold_called_back());
}

/* Calls another core, now and then, if a context is ready here beside `self`. */
static void call_others (struct gomp_carrier *c, const struct gomp_context *self)
{
    enum { CALL_EVERY = 16 }; /* a call is some system calls, and what is ready here may be run here soon */
    if (++c->looks % CALL_EVERY == 0 && !gomp_region_is_alone(self->region) && gomp_suspended_any_ready(&c->here))
        gomp_want_cores();
}

static void context_main (struct gomp_context *);

/* A context that starts implicit tasks of the region.  NULL: there is no memory for it. */
static struct gomp_context *new_context (struct gomp_carrier *c, struct gomp_region *region)
{
    struct gomp_context *x = take_spare(c);
    if (!x)
        x = gomp_context_new(context_main);
    if (x)
        x->region = region;
    return x;
}

/* The innermost region that the context is in: the one whose implicit task it runs, or a nested region that this
 * task has begun. */
static struct gomp_region *innermost (const struct gomp_context *x)
{
    struct gomp_region *region = gomp_region_around(x->thread.ts.team);
    return region ? region : x->region;
}

/* A context for implicit tasks of the innermost region, or else of the context's own.  Inner regions go first since they
 * end first.  NULL: no implicit task is left to start, or there is no memory. */
static struct gomp_context *context_to_start (struct gomp_carrier *c, const struct gomp_context *self)
{
    struct gomp_region *inner = innermost(self);
    if (inner != self->region && gomp_region_may_start(inner))
        return new_context(c, inner);
    return gomp_region_may_start(self->region) ? new_context(c, self->region) : NULL;
}

/* Puts `self` into the carrier's list.  Returns what is to run next: the loop, or a context, maybe
 * `self`. */
static struct gomp_context *suspend_context (struct gomp_carrier *c, struct gomp_context *self)
{
    struct gomp_context *next = NULL;
    bool loop = loop_needed(c);
    gomp_spinlock_lock(&c->here.lock);
    gomp_suspended_append(&c->here, self);
    if (!loop)
        next = unlink_before_loop(c);
    gomp_spinlock_unlock(&c->here.lock);
    if (!loop && !next && !loop_goes_on(c))
        next = context_to_start(c, self);
    return next ? next : &c->loop;
}

/* Switches to `next`, unless that is `self`, which is ready again. */
static void leave_waiting (struct gomp_carrier *c, struct gomp_context *self,
                           struct gomp_context *next)
{
    if (next == self)
        return;
    count_switch(c);
    call_others(c, self);
    if (next == &c->loop)
        gomp_carrier_idles();
    switch_to(c, self, next);
}

void gomp_context_wait (int *addr, int val)
{
    struct gomp_carrier *c = carrier();
    struct gomp_context *self = c->running;
    struct gomp_region *region = innermost(self);
    inv_assert(self->owns_stack && addr != NULL);
    self->addr = addr;
    self->val = val;
    if (addr != (int *)&region->end_word)
        gomp_region_waits(region);
    leave_waiting(c, self, suspend_context(c, self));
}

/* Is there work for the carrier other than the contexts in its list? */
static bool other_work (const struct gomp_carrier *c)
{
    return loop_needed(c) || gomp_contexts_are_ready() || gomp_tickets_in_sight();
}

/* All contexts of the carrier have arrived, `self` last.  If the other carriers are about as quick,
 * the barrier opens sooner than the carrier could switch to the loop and back.  So it looks for
 * that here, for longer if it has no other context.  Returns what is to run next. */
static struct gomp_context *wait_shortly (struct gomp_carrier *c, const struct gomp_context *self)
{
    enum { CLOCK_EVERY = 32, ALONE_NS = 20000 };
    uint64_t start = 0;
    for (unsigned i = 1; !loop_goes_on(c); i++) {
        if (gomp_context_could_run(self)) {
            struct gomp_context *next = loop_needed(c) ? NULL : take_before_loop(c);
            return next ? next : &c->loop;
        }
        inv_cpu_relax();
        if (i % CLOCK_EVERY)
            continue;
        uint64_t now = inv_now_ns();
        start = start ? start : now;
        if (atomic_load_explicit(&c->here.count, memory_order_relaxed) > 1 || other_work(c) ||
            gomp_leaves_at_once() || now - start > ALONE_NS)
            break;
    }
    return &c->loop;
}

/* Arrives at the barrier.  Waits shortly if the carrier has no other context and could start none:
 * if the other carriers are about as quick, the barrier opens sooner than the caller could go into
 * the list and come back.  True: it is open. */
static bool arrive_alone (struct gomp_carrier *c, struct gomp_region *region, const int *addr, int val)
{
    enum { LOOKS = 32 }; /* as long as a switch of contexts and back */
    if (c->arrivals.count > 0 || !gomp_suspended_is_empty(&c->here) ||
        gomp_region_may_start(region) || loop_needed(c)) {
        add_arrival(c, region);
        return false;
    }
    gomp_barrier_arrived(barrier_of(region), 1);
    gomp_carrier_idles();
    for (unsigned i = 0; i < LOOKS; i++) {
        if (__atomic_load_n(addr, __ATOMIC_ACQUIRE) != val)
            return true;
        inv_cpu_relax();
    }
    return false;
}

bool __attribute__((flatten)) gomp_context_arrive (int *addr, int val)
{
    struct gomp_carrier *c = carrier();
    struct gomp_context *self = c->running;
    if (addr != (int *)&barrier_of(self->region)->generation)
        return false; /* of a nested region that this implicit task has begun */
    gomp_region_waits(self->region);
    if (arrive_alone(c, self->region, addr, val) && !loop_needed(c)) {
        count_switch(c);
        return true;
    }
    self->addr = addr;
    self->val = val;
    struct gomp_context *next = suspend_context(c, self);
    if (next == &c->loop) {
        count_arrivals(c);
        gomp_carrier_idles();
        next = wait_shortly(c, self);
    }
    leave_waiting(c, self, next);
    return true;
}

void gomp_context_yield (void)
{
    struct gomp_carrier *c = carrier();
    struct gomp_context *self = c->running;
    self->addr = NULL;
    gomp_region_waits(self->region);
    gomp_spinlock_lock(&c->here.lock);
    gomp_suspended_append(&c->here, self);
    gomp_spinlock_unlock(&c->here.lock);
    c->tickets_first = true;
    switch_to(c, self, &c->loop);
}

bool gomp_context_is_in_the_way (void)
{
    return gomp_in_context() && loop_goes_on(carrier());
}

void gomp_context_make_way (void)
{
    if (gomp_context_is_in_the_way())
        gomp_context_yield();
}

bool gomp_context_has_others (void)
{
    struct gomp_carrier *c = carrier();
    return !gomp_suspended_is_empty(&c->here) || other_work(c);
}

bool gomp_context_leaves_work (void)
{
    return gomp_context_has_others() || gomp_region_may_start(carrier()->running->region);
}

bool gomp_context_could_switch (void)
{
    struct gomp_carrier *c = carrier();
    return gomp_suspended_any_ready(&c->here) || other_work(c);
}

/* Implicit task `id` of the region has ended on the calling carrier: to be counted (switch_to). */
static void add_ended_task (struct gomp_region *region, unsigned id)
{
    struct gomp_ended *tasks = &carrier()->tasks;
    if (tasks->count > 0 && tasks->region != region)
        gomp_region_count_ended(tasks);
    inv_assert(tasks->count == 0 || tasks->region == region);
    inv_assert(tasks->count < region->start.nthreads && id > 0); /* 0 is the master's */
    tasks->region = region;
    tasks->count++;
    gomp_number_set(tasks->numbers, id);
}

/* May a context go on to another implicit task?  Else its carrier has something else to do. */
static bool may_go_on (void)
{
    return gomp_holds_core() && !gomp_hold_called_back() && !gomp_ready_here(inv_hold) &&
           !gomp_contexts_any_ready();
}

/* In a context: run implicit tasks of the region.  False: there was none left. */
static bool run_in_context (struct gomp_region *region)
{
    unsigned id;
    bool found = false;
    while (gomp_team_thread_run_next(region, !found, &id)) {
        found = true;
        add_ended_task(region, id);
        if (!may_go_on())
            break;
    }
    return found;
}

/* What a context executes. */
static void context_main (struct gomp_context *self)
{
    for (;;) {
        reuse_ended(carrier());
        bool found = run_in_context(self->region);
        struct gomp_carrier *c = carrier();
        if (found)
            count_switch(c);
        inv_assert(c->running == self && c->ended == NULL);
        c->barren = !found;
        c->ended = self;
        /* The caller is no thread of the team, and contexts that have arrived may be run to their
         * end by other carriers once they are counted: the team must stay until this thread has
         * left it. */
        if (!found && c->arrivals.count > 0) {
            struct gomp_region *region = c->arrivals.region;
            gomp_region_ref(region);
            count_arrivals(c);
            gomp_region_unref(region);
        }
        struct gomp_context *next = loop_needed(c) ? NULL : take_before_loop(c);
        switch_to(c, self, next ? next : &c->loop);
    }
}

/* --- the loop */

enum gomp_start gomp_contexts_start (struct gomp_region *region)
{
    struct gomp_carrier *c = carrier_made();
    struct gomp_context *x = new_context(c, region);
    if (!x)
        return GOMP_NO_MEMORY;
    inv_assert(c->running == &c->loop);
    c->barren = false;
    switch_to(c, &c->loop, x);
    return c->barren ? GOMP_NOTHING_STARTED : GOMP_STARTED;
}

/* Switches from the loop to x, which has been taken from a list.  False: x is NULL.  If the loop
 * itself can go on, x is left to other carriers (unlink_before_loop). */
static bool resume_context (struct gomp_context *x)
{
    if (!x)
        return false;
    struct gomp_carrier *c = carrier_made();
    if (loop_goes_on(c)) {
        gomp_context_is_ready(x);
        gomp_want_cores();
        return true;
    }
    switch_to(c, &c->loop, x);
    return true;
}

bool gomp_contexts_run (void)
{
    struct gomp_context *x = gomp_own_suspended ? gomp_suspended_take(gomp_own_suspended) : NULL;
    return resume_context(x ? x : take_public(NULL));
}

static struct gomp_context *take_from_others (const struct gomp_region *of)
{
    struct gomp_context *x = NULL;
    for (struct gomp_suspended *l = gomp_suspended_all(); l && !x; l = l->next)
        if (l != gomp_own_suspended)
            x = take_as_thief(l, of);
    return x;
}

/* Has this carrier, which has idled, seen a ready context in another one's list?  Clears that. */
static bool may_steal (void)
{
    struct gomp_carrier *own = own_carrier();
    bool may = own && own->may_steal;
    if (may)
        own->may_steal = false;
    return may;
}

bool gomp_contexts_steal (void)
{
    return may_steal() && resume_context(take_from_others(NULL));
}

/* Runs a context of that region (NULL: of any) that is not in this carrier's list. */
static bool run_others (const struct gomp_region *of)
{
    struct gomp_context *x = take_public(of);
    return resume_context(x ? x : take_from_others(of));
}

bool gomp_contexts_run_others (void)
{
    return run_others(NULL);
}

static bool others_ready (void)
{
    for (struct gomp_suspended *l = gomp_suspended_all(); l; l = l->next)
        if (l != gomp_own_suspended && any_for_thieves(l))
            return true;
    return false;
}

bool gomp_contexts_waiting (void)
{
    if (gomp_contexts_are_ready() || gomp_suspended_any_ready(gomp_own_suspended))
        return true;
    bool found = others_ready();
    if (found && gomp_own_suspended)
        own_carrier()->may_steal = true;
    return found;
}

bool gomp_contexts_any_ready (void)
{
    enum { OTHERS_EVERY = 256 }; /* it reads lines that other cores write */
    if (!gomp_suspended_all())
        return false;
    if (gomp_suspended_any_ready(gomp_own_suspended) || gomp_contexts_are_ready())
        return true;
    struct gomp_carrier *c = carrier_made();
    if (++c->looks % OTHERS_EVERY == 0)
        c->may_steal = others_ready();
    return c->may_steal;
}

bool gomp_contexts_tickets_first (void)
{
    struct gomp_carrier *own = own_carrier();
    if (!own || !own->tickets_first)
        return false;
    own->tickets_first = false;
    return true;
}

static bool loop_ready (void *arg)
{
    return gomp_context_could_run(arg);
}

static bool start_in_context (struct gomp_region *region)
{
    return gomp_region_may_start(region) && gomp_contexts_start(region) == GOMP_STARTED;
}

/* Run something of the region.  False: there is nothing. */
static bool run_once (struct gomp_region *region)
{
    if (gomp_contexts_tickets_first() &&
        (start_in_context(region) || run_others(region)))
        return true;
    struct gomp_context *x = gomp_suspended_take(gomp_own_suspended);
    return resume_context(x ? x : take_public(region)) || start_in_context(region) ||
           (may_steal() && resume_context(take_from_others(region)));
}

/* Runs only contexts of the region, or within it: these cannot depend on what the caller does after
 * its wait. */
static bool run_until (struct gomp_carrier *c, struct gomp_region *region, int *addr, int val)
{
    bool over;
    c->loop.addr = addr;
    c->loop.val = val;
    while (!(over = gomp_context_could_run(&c->loop))) {
        if (inv_hold == INV_HOLD_NONE || gomp_hold_called_back() || gomp_ready_at(inv_hold))
            break;
        if (run_once(region))
            continue;
        count_arrivals(c);
        enum gomp_idle_end end = gomp_idle_spin(loop_ready, &c->loop);
        if (end == GOMP_IDLE_READY || run_once(region))
            continue;
        /* What waited a moment ago may have found a core. */
        if (end == GOMP_IDLE_LONG || gomp_core_needed() || gomp_threads_queued())
            break;
    }
    inv_assert(c->running == &c->loop);
    c->loop.addr = NULL;
    count_arrivals(c);
    return over;
}

bool gomp_contexts_run_until (int *addr, int val)
{
    if (!gomp_suspended_all() || gomp_contexts.forked_in_context || inv_hold == INV_HOLD_NONE ||
        !gomp_region_waits_for_all(addr))
        return false;
    return run_until(carrier_made(), gomp_thread()->ts.team->barrier.region, addr, val);
}

/* May the calling thread, the region's master on its own stack, run other implicit tasks of the region? */
static bool may_run_others (struct gomp_region *region)
{
    return region && region->light && !gomp_contexts.forked_in_context && inv_hold != INV_HOLD_NONE &&
           gomp_thread()->ts.team_id == 0;
}

void gomp_carrier_run_unarrived (struct gomp_region *region, int *addr, int val)
{
    if (gomp_in_context() || !may_run_others(region))
        return;
    struct gomp_carrier *c = carrier_made();
    c->loop.addr = addr;
    c->loop.val = val;
    while (!gomp_context_could_run(&c->loop) && inv_hold != INV_HOLD_NONE && !gomp_hold_called_back() &&
           !gomp_ready_at(inv_hold) && run_once(region))
        ;
    c->loop.addr = NULL;
    count_arrivals(c);
}

bool gomp_carrier_arrive (struct gomp_region *region, int *addr, int val)
{
    if (!may_run_others(region))
        return false;
    struct gomp_carrier *c = carrier_made();
    if (!arrive_alone(c, region, addr, val))
        run_until(c, region, addr, val);
    return true;
}

/* --- threads */

void gomp_carrier_rest (void)
{
    struct gomp_carrier *c = own_carrier();
    for (struct gomp_context *x; c && (x = take_spare(c));)
        gomp_context_keep(x);
}

void gomp_carrier_leave (void)
{
    struct gomp_carrier *c = own_carrier();
    if (!c)
        return;
    gomp_contexts_publish();
    gomp_carrier_rest();
    gomp_overflow_leave();
    inv_assert(c->here.first == NULL && c->spares == NULL && c->nspares == 0);
    gomp_own_suspended = NULL;
    atomic_store(&c->here.used, false);
}

static void count_ready (struct gomp_suspended *l, struct gomp_carriers_view *view)
{
    gomp_spinlock_lock(&l->lock);
    for (struct gomp_context *x = l->first; x; x = x->next)
        if (gomp_context_could_run(x) && !atomic_load_explicit(&x->running, memory_order_relaxed)) {
            view->ready++;
            view->region = x->region;
        }
    gomp_spinlock_unlock(&l->lock);
}

struct gomp_carriers_view gomp_carriers_inspect (void)
{
    struct gomp_carriers_view view = {0};
    for (struct gomp_suspended *l = gomp_suspended_all(); l; l = l->next) {
        view.switches += atomic_load_explicit(&l->switches, memory_order_relaxed);
        if (!gomp_suspended_is_empty(l))
            count_ready(l, &view);
    }
    struct gomp_ready_contexts *q = &gomp_all_suspended.ready;
    gomp_spinlock_lock(&q->lock);
    for (struct gomp_context *x = q->first; x; x = x->next) {
        view.ready++;
        view.region = x->region;
    }
    gomp_spinlock_unlock(&q->lock);
    return view;
}

/* The child of a fork has one thread, and of all contexts only the one that this thread
 * executes. */
void gomp_carriers_forget (void)
{
    gomp_suspended_forget();
    for (struct gomp_suspended *l = gomp_suspended_all(); l; l = l->next) {
        struct gomp_carrier *c = carrier_of(l);
        atomic_store(&l->lock.held, 0);
        gomp_suspended_clear(l);
        c->arrivals.count = 0;
        if (l != gomp_own_suspended) {
            c->spares = c->ended = NULL;
            c->nspares = 0;
            atomic_store(&l->used, false);
        }
    }
    gomp_contexts.forked_in_context = gomp_current != NULL;
    gomp_contexts_forget();
}
