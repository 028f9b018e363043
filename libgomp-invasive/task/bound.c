/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * bound.c - see bound.h.
 */
#include "libgomp.h"
#include "bound.h"
#include "help.h"
#include "hold.h"
#include "points.h"
#include "process.h"
#include "region.h"
#include "taskpool.h"
#include "team_thread.h"
#include "thread_limits.h"
#include "threads.h"
#include "unheld.h"
#include "waiting.h"
#include <libinvasive/process/tool.h>
#include <libinvasive/base/uncancelled.h>
#include <stdlib.h>
#include <string.h>

/* --- in a region */

bool gomp_region_call_helpers (struct gomp_region *region, int count)
{
    int before = count;
    if (atomic_load(&region->master_waits)) {
        atomic_fetch_add(&region->end_word, 1);
        gomp_unpark((int *)&region->end_word, 1);
        count--;
    }
    /* Elastic regions have no bound workers.  Workers that sleep here have helped in the region
     * that used the struct before, and are about to see that it is over. */
    if (region->elastic || atomic_load(&region->sleeping_helpers) == 0)
        return count < before;
    inv_assert(region->workers != NULL);
    for (unsigned i = 1; i < region->start.nthreads && count > 0; i++) {
        struct gomp_worker *w = region->workers[i];
        if (w && atomic_exchange(&w->asleep, 0)) {
            atomic_fetch_add(&w->word, GOMP_WORKER_CALL);
            gomp_unpark((int *)&w->word, 1);
            count--;
        }
    }
    return count < before;
}

/* A bound worker whose implicit task is over, and that helps until `seen` is not its word any more,
 * or the region has ended. */
struct idle_helper {
    struct gomp_region *region;
    uint32_t epoch;
    struct gomp_worker *self;
    int seen;
};

static bool helper_is_over (const struct idle_helper *h)
{
    return atomic_load_explicit(&h->self->word, memory_order_relaxed) != h->seen ||
           !gomp_region_is_open(h->region, h->epoch);
}

static bool helper_may_go_on (void *arg)
{
    const struct idle_helper *h = arg;
    return helper_is_over(h) || atomic_load_explicit(&h->region->help, memory_order_relaxed);
}

/* The worker sleeps where a call for help finds it.  seq_cst: partner is the thread that calls for
 * help, which queues a task, then looks at sleeping_helpers and asleep. */
static void helper_sleep (struct idle_helper *h)
{
    atomic_store(&h->self->asleep, 1);
    atomic_fetch_add(&h->region->sleeping_helpers, 1);
    if (!atomic_load(&h->region->help) && !helper_is_over(h))
        gomp_park((int *)&h->self->word, h->seen);
    unsigned before = atomic_fetch_sub(&h->region->sleeping_helpers, 1);
    inv_assert(before > 0);
    if (!atomic_exchange(&h->self->asleep, 0))
        h->seen += GOMP_WORKER_CALL; /* a call for help raised the word once */
}

/* The worker's implicit task is done, the region may not be: execute explicit tasks as they come,
 * until the region ends, the next implicit task is assigned, or idling has lasted too long. */
static void help_in_region (struct idle_helper *h, unsigned id)
{
    while (!helper_is_over(h)) {
        if (atomic_load_explicit(&h->region->help, memory_order_relaxed)) {
            gomp_region_help(h->region, h->epoch, id);
            gomp_hold_checkpoint(); /* it may have left because its core is called back */
            continue;
        }
        INV_TELL(idle_begin());
        if (!gomp_spin_until(helper_may_go_on, h))
            helper_sleep(h);
        INV_TELL(idle_end());
    }
}

/* Run the implicit task that is assigned to the worker, then help. */
static void run_assigned (struct gomp_region *region, unsigned id, struct gomp_worker *self, int *seen)
{
    uint32_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
    inv_assert(id > 0 && id < region->start.nthreads);
    gomp_team_thread_become(region, id);
    gomp_team_thread_run(region, id);
    gomp_team_thread_forget();
    gomp_region_leave(region, GOMP_UNFINISHED_ONE);
    struct idle_helper h = {region, epoch, self, *seen};
    help_in_region(&h, id);
    *seen = h.seen;
    gomp_hold_checkpoint();
}

/* --- the worker */

/* A bound worker: runs the implicit task that is assigned to it, helps with explicit tasks
 * while the region is open, waits for the next assignment. */
static void *bound_worker_main (void *arg)
{
    struct gomp_worker *self = arg;
    struct gomp_thread *thr = gomp_thread();
    gomp_sem_init(&thr->release, 0);
    if (atomic_load_explicit(&self->word, memory_order_relaxed) != 0)
        gomp_hold_acquire(); /* an implicit task is assigned already */
    int seen = 0;
    for (;;) {
        INV_TELL(idle_begin());
        while (atomic_load_explicit(&self->word, memory_order_acquire) == seen)
            gomp_wait_while((int *)&self->word, seen);
        INV_TELL(idle_end());
        seen = atomic_load_explicit(&self->word, memory_order_acquire);
        struct gomp_region *region =
            atomic_exchange_explicit(&self->region, NULL, memory_order_acquire);
        if (seen & GOMP_WORKER_QUIT)
            break;
        if (!region)
            continue; /* a call for help that came too late, or an assignment that is done already */
        if (inv_managed() && inv_hold == INV_HOLD_NONE)
            gomp_hold_acquire();
        run_assigned(region, self->id, self, &seen);
    }
    thr->thread_pool = NULL;
    thr->task = NULL;
    gomp_pool_donate();
    gomp_unheld_end();
    gomp_hold_yield();
    free(self);
    return NULL;
}

/* A worker with implicit task `id` of the region, or with none (NULL).  Returns an error number. */
static int create_worker (struct gomp_worker **made, struct gomp_region *region, unsigned id)
{
    struct gomp_worker *w = gomp_malloc_cleared(sizeof *w);
    inv_assert((region == NULL) == (id == 0)); /* 0 is the master's */
    w->region = region;
    w->id = id;
    atomic_store_explicit(&w->word, region ? GOMP_WORKER_CALL : 0, memory_order_relaxed);
    int error = gomp_create_thread(&w->handle, &gomp_thread_attr, bound_worker_main, w);
    if (error)
        free(w);
    else
        *made = w;
    return error;
}

struct gomp_worker *gomp_worker_start (struct gomp_region *region, unsigned id)
{
    struct gomp_worker *w = NULL;
    int error = create_worker(&w, region, id);
    if (error)
        gomp_fatal("Thread creation failed: %s", strerror(error));
    return w;
}

static struct {
    pthread_mutex_t making;         /* one thread at a time looks how many workers there may be and makes them */
    struct gomp_spinlock idle_lock; /* of the pools' lists of idle workers */
} bound = {.making = PTHREAD_MUTEX_INITIALIZER};

struct gomp_worker *gomp_workers_make (unsigned wanted)
{
    INV_UNCANCELLED;
    struct gomp_worker *list = NULL, *w;
    pthread_mutex_lock(&bound.making);
    unsigned long spare = gomp_threads_to_spare();
    for (; wanted > 0 && spare > 0 && create_worker(&w, NULL, 0) == 0; wanted--, spare--) {
        w->next = list;
        list = w;
    }
    pthread_mutex_unlock(&bound.making);
    return list;
}

/* Workers that the calling thread has taken for its next nested region. */
static __thread struct gomp_worker *in_hand __attribute__((tls_model("initial-exec")));

static void take_in_hand (struct gomp_worker *w)
{
    w->next = in_hand;
    in_hand = w;
}

static struct gomp_worker *take_idle (struct gomp_worker **idle)
{
    gomp_spinlock_lock(&bound.idle_lock);
    struct gomp_worker *w = *idle;
    if (w)
        *idle = w->next;
    gomp_spinlock_unlock(&bound.idle_lock);
    return w;
}

static unsigned take_all_in_hand (struct gomp_worker *list)
{
    unsigned count = 0;
    for (struct gomp_worker *next, *w = list; w; w = next, count++) {
        next = w->next;
        take_in_hand(w);
    }
    return count;
}

unsigned gomp_nested_workers_take (struct gomp_worker **idle, unsigned wanted)
{
    unsigned count = 0;
    struct gomp_worker *w;
    gomp_nested_workers_return(idle); /* of a region that has become smaller than it was to be */
    for (; count < wanted && (w = take_idle(idle)); count++)
        take_in_hand(w);
    if (count < wanted && !gomp_refused_lately())
        count += take_all_in_hand(gomp_workers_make(wanted - count));
    if (count < wanted)
        gomp_thread_refused();
    return count;
}

struct gomp_worker *gomp_nested_worker (struct gomp_worker **idle, struct gomp_region *region,
                                        unsigned id)
{
    struct gomp_worker *w = in_hand;
    if (w)
        in_hand = w->next;
    else
        w = take_idle(idle);
    if (!w)
        return gomp_worker_start(region, id);
    gomp_worker_assign(w, region, id);
    return w;
}

void gomp_nested_worker_return (struct gomp_worker **idle, struct gomp_worker *w)
{
    gomp_spinlock_lock(&bound.idle_lock);
    w->next = *idle;
    *idle = w;
    gomp_spinlock_unlock(&bound.idle_lock);
}

void gomp_nested_workers_return (struct gomp_worker **idle)
{
    for (struct gomp_worker *w; (w = in_hand);) {
        in_hand = w->next;
        gomp_nested_worker_return(idle, w);
    }
}

void gomp_worker_assign (struct gomp_worker *w, struct gomp_region *region, unsigned id)
{
    inv_assert(region && id > 0 && id < region->start.nthreads);
    w->id = id;
    /* release: partner is bound_worker_main's acquire; it may be awake for a call for help and
     * find this before the word is raised */
    atomic_store_explicit(&w->region, region, memory_order_release);
    atomic_fetch_add_explicit(&w->word, GOMP_WORKER_CALL, memory_order_release);
    gomp_unpark((int *)&w->word, 1);
}

void gomp_worker_quit (struct gomp_worker *w)
{
    /* The last access: the worker may be awake for a call for help, see this at once, and free w.
     * To wake it only the address is used. */
    int *word = (int *)&w->word;
    atomic_fetch_or_explicit(&w->word, GOMP_WORKER_QUIT, memory_order_release);
    gomp_unpark(word, 1);
}

void gomp_bound_forget (void)
{
    atomic_store(&bound.idle_lock.held, 0);
    bound.making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    in_hand = NULL;
}
