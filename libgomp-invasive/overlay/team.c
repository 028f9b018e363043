/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * team.c - teams: what GOMP_parallel and its variants call to begin and end a parallel
 * region, and the thread pools behind them.  Replaces upstream's team.c.
 *
 * The calls keep upstream's names and contracts: gomp_new_team makes the structure,
 * gomp_team_start opens the region and returns with the caller as thread number 0,
 * gomp_team_end returns when all implicit and explicit tasks are done.  What happens in
 * between is in implicit/ and task/help.c; which thread computes on which core is in sched/.
 */
#include "libgomp.h"
#include "blas.h"
#include "bound.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "costs.h"
#include "free_workers.h"
#include "help.h"
#include "history.h"
#include "hold.h"
#include "join.h"
#include "open.h"
#include "parallel.h"
#include "places.h"
#include "pool.h"
#include "process.h"
#include "progress.h"
#include "ready.h"
#include "region.h"
#include "run.h"
#include "tasks.h"
#include "tls.h"
#include "unheld.h"
#include "workers.h"
#include <libinvasive/process/tool.h>
#include <libinvasive/base/uncancelled.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Attributes, such as the stack size, of threads that the runtime creates.  Written by the
 * constructor of env.c. */
pthread_attr_t gomp_thread_attr;
/* Written by initialize_team.  Its destructor is thread_ends. */
pthread_key_t gomp_thread_destructor;
__thread struct gomp_thread gomp_tls_data;

/* --- teams */

static gomp_simple_barrier_t *dock_of (struct gomp_thread_pool *pool)
{
    if (pool->threads_size == 0) { /* threads_dock is not initialised yet */
        memset(&pool->threads_dock, 0, sizeof pool->threads_dock);
        pool->threads_size = 1;
    }
    return &pool->threads_dock;
}

/* Where the pool keeps its last team.  A team of one thread has a place of its own: else a region
 * with an if clause would replace the large team. */
static struct gomp_team **kept_team (struct gomp_thread_pool *pool, unsigned nthreads)
{
    return nthreads == 1 ? &dock_of(pool)->single : &pool->last_team;
}

/* The structure of the pool's last team, if it fits. */
static struct gomp_team *reuse_team (unsigned nthreads)
{
    struct gomp_thread *thr = gomp_thread();
    if (thr->ts.team != NULL)
        return NULL;
    struct gomp_thread_pool *pool = gomp_get_thread_pool(thr, nthreads);
    struct gomp_team **kept = kept_team(pool, nthreads), *team = *kept;
    if (team == NULL || team->nthreads != nthreads)
        return NULL;
    *kept = NULL;
    return team;
}

/* Behind the team: a pointer to, and then one semaphore for each thread number.  Ordered
 * sections post to thread numbers that may not have started yet, so the semaphores
 * belong to the numbers, not to kernel threads. */
static struct gomp_team *allocate_team (unsigned nthreads)
{
    struct gomp_team *team;
    size_t each = sizeof team->implicit_task[0] + sizeof team->ordered_release[0] +
                  sizeof(gomp_sem_t);
    team = gomp_aligned_alloc(__alignof(struct gomp_team), sizeof *team + nthreads * each);
    if (nthreads > 1)
        gomp_ensure_default_team(); /* by omp_get_num_threads */
    gomp_barrier_init(&team->barrier, nthreads);
    gomp_mutex_init(&team->task_lock);
    team->nthreads = nthreads;
    team->work_share_list_alloc = NULL;
    team->work_share_list_free = NULL;
    team->own.tasks = NULL;
    team->ordered_release = (void *)&team->implicit_task[nthreads];
    gomp_sem_t *sems = (gomp_sem_t *)&team->ordered_release[nthreads];
    for (unsigned i = 0; i < nthreads; i++) {
        gomp_sem_init(&sems[i], 0);
        team->ordered_release[i] = &sems[i];
    }
    return team;
}

static void init_work_shares (struct gomp_team *team)
{
    enum { INLINE_SHARES = sizeof team->work_shares / sizeof team->work_shares[0] };
    team->work_share_chunk = INLINE_SHARES;
    team->single_count = 0;
    team->work_shares_to_free = &team->work_shares[0];
    gomp_init_work_share(&team->work_shares[0], 0, team->nthreads);
    team->work_shares[0].next_alloc = NULL;
    if (team->work_share_list_alloc == &team->work_shares[1] && !team->work_share_list_free)
        return; /* the last region has taken none, nor given any back */
    team->work_share_list_free = NULL;
    team->work_share_list_alloc = &team->work_shares[1];
    for (int i = 1; i < INLINE_SHARES; i++)
        team->work_shares[i].next_free =
            i + 1 < INLINE_SHARES ? &team->work_shares[i + 1] : NULL;
}

struct gomp_team *gomp_new_team (unsigned nthreads)
{
    struct gomp_team *team = reuse_team(nthreads);
    if (team == NULL)
        team = allocate_team(nthreads);
    /* A cancelled region leaves the barrier half counted. */
    team->barrier.awaited = nthreads;
    team->barrier.generation &= -BAR_INCR;
    team->barrier.region = NULL;
    init_work_shares(team);
    gomp_sem_init(&team->master_release, 0);
    team->team_cancelled = team->work_share_cancelled = 0;
    return team;
}

static void free_team (struct gomp_team *team)
{
    gomp_barrier_destroy(&team->barrier);
    gomp_mutex_destroy(&team->task_lock);
    gomp_team_tasks_free(team);
    gomp_aligned_free(team);
}

/* --- pools */

static struct gomp_region *pool_region (struct gomp_thread_pool *pool)
{
    gomp_simple_barrier_t *dock = dock_of(pool);
    if (!dock->region)
        dock->region = gomp_region_alloc();
    return dock->region;
}

/* Regions of this pool may use up to n free workers, now and later. */
static void keep_free_workers (gomp_simple_barrier_t *dock, unsigned n)
{
    if (dock->kept >= n)
        return;
    inv_assert(n <= INT_MAX);
    gomp_workers_keep((int)(n - dock->kept));
    dock->kept = n;
}

static void grow_workers (gomp_simple_barrier_t *dock, unsigned nthreads)
{
    if (dock->size >= nthreads)
        return;
    dock->workers = gomp_realloc(dock->workers, nthreads * sizeof dock->workers[0]);
    memset(dock->workers + dock->size, 0, (nthreads - dock->size) * sizeof dock->workers[0]);
    dock->size = nthreads;
}

/* gomp_managed_threads tells spinning threads whether they are more than the processors.
 * Parked workers that only an earlier, larger team has used do not count. */
static void count_threads (struct gomp_thread_pool *pool, unsigned nthreads)
{
    unsigned before = pool->threads_used ? pool->threads_used : 1;
    inv_assert(nthreads >= 1);
    pool->threads_used = nthreads;
    if (nthreads != before)
        __sync_fetch_and_add(&gomp_managed_threads, (unsigned long)nthreads - before);
}

static void end_worker (struct gomp_worker *w, bool join)
{
    pthread_t handle = w->handle;
    if (!join)
        pthread_detach(handle);
    gomp_worker_quit(w); /* frees w */
    if (join)
        pthread_join(handle, NULL);
}

/* End a pool's workers; join: wait until they are gone. */
static void end_workers (gomp_simple_barrier_t *dock, bool join)
{
    for (unsigned i = 1; i < dock->size; i++)
        if (dock->workers[i])
            end_worker(dock->workers[i], join);
    for (struct gomp_worker *next, *w = dock->idle_nested; w; w = next) {
        next = w->next;
        end_worker(w, join);
    }
    free(dock->workers);
}

static void free_pool (struct gomp_thread *thr, bool join)
{
    struct gomp_thread_pool *pool = thr->thread_pool;
    if (!pool)
        return;
    if (pool->threads_size > 0) {
        gomp_simple_barrier_t *dock = &pool->threads_dock;
        end_workers(dock, join);
        if (dock->region)
            gomp_region_free(dock->region);
        gomp_workers_keep(-(int)dock->kept);
        if (dock->single)
            free_team(dock->single);
    }
    count_threads(pool, 1);
    if (pool->last_team)
        free_team(pool->last_team);
    free(pool);
    thr->thread_pool = NULL;
}

/* Called at the end of a thread that has used OpenMP, or of a target region on the host, to which
 * upstream gives a struct gomp_thread of its own. */
void gomp_free_thread (void *arg __attribute__((unused)))
{
    struct gomp_thread *thr = gomp_thread();
    free_pool(thr, false);
    if (thr->ts.level == 0 && __builtin_expect(thr->ts.team != NULL, 0))
        gomp_team_end(); /* an artificial team, made for a target task */
    if (thr->task != NULL) {
        struct gomp_task *task = thr->task;
        gomp_end_task();
        free(task);
    }
    gomp_pool_donate();
}

/* The destructor of a thread that has used OpenMP or is a carrier of contexts. */
static void thread_ends (void *arg)
{
    /* The implicit task of a context cannot end, and its structs are not reached any more. */
    if (gomp_in_context())
        gomp_fatal("a thread has ended inside a parallel region, by pthread_exit or pthread_cancel");
    if (arg == GOMP_CARRIER_ONLY)
        return; /* a free worker, which has cleaned up itself (workers.c) */
    gomp_free_thread(arg);
    gomp_carrier_leave();
    gomp_unheld_end();
    if (inv_managed())
        gomp_hold_yield(); /* it may be the thread that joined the resource manager */
    gomp_workers_trim(false);
    if (syscall(SYS_gettid) == getpid())
        gomp_progress_initial_ends();
}

/* omp_pause_resource: gives back what can be made again, the workers of this thread's teams and the
 * cores that they were on.  Returns non-zero inside a region, where nothing is done. */
int gomp_pause_host (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (thr->ts.level)
        return -1;
    INV_UNCANCELLED; /* a cancelled wait for workers would leave the pool half gone */
    bool holds_core = inv_managed() && inv_hold != INV_HOLD_NONE;
    if (holds_core)
        gomp_hold_yield(); /* a thread that is to end must run once more */
    free_pool(thr, true);
    if (holds_core)
        gomp_hold_acquire();
    if (inv_managed())
        gomp_stop_wanting();
    gomp_workers_trim(true);
    return 0;
}

/* --- default teams where the process can have few threads */

/* Make the workers that the thread's next region lacks if it is to have n threads.  Returns how
 * many it can have. */
static unsigned secure_workers (struct gomp_thread *thr, unsigned n)
{
    gomp_simple_barrier_t *dock = dock_of(gomp_get_thread_pool(thr, n));
    if (thr->ts.level > 0)
        return 1 + gomp_nested_workers_take(&dock->idle_nested, n - 1);
    unsigned have = 1;
    grow_workers(dock, n);
    while (have < n && dock->workers[have])
        have++;
    if (have == n)
        return n;
    for (struct gomp_worker *w = gomp_workers_make(n - have); w; w = w->next)
        dock->workers[have++] = w;
    return have;
}

/* gomp_resolve_num_threads has counted n threads for OMP_THREAD_LIMIT, and will count them again
 * when the region begins. */
static void uncount_threads (struct gomp_thread *thr, unsigned n)
{
    if (thr->ts.team == NULL)
        thr->thread_pool->threads_busy = 1;
    else if (gomp_icv(false)->thread_limit_var != UINT_MAX)
        __sync_fetch_and_sub(&thr->thread_pool->threads_busy, n - 1UL);
}

/* A thread whose team has become smaller keeps that size: data that the program has divided by the
 * number of threads, and threadprivate variables, stay with their thread numbers. */
unsigned gomp_team_secure (unsigned requested)
{
    struct gomp_thread *thr = gomp_thread();
    if (requested > 0 || gomp_icv(false)->size_is_asked_for)
        return requested;
    unsigned n = gomp_resolve_num_threads(0, 0);
    if (n == 1)
        return 1;
    gomp_sched_join(n); /* before a worker begins */
    unsigned have = secure_workers(thr, n);
    uncount_threads(thr, n);
    if (have < n && thr->ts.level == 0)
        gomp_icv(true)->nthreads_var = have;
    return have;
}

/* --- beginning a region */

static void fill_start (struct gomp_region_start *s, struct gomp_team *team, void (*fn) (void *),
                        void *data, unsigned flags, struct gomp_task *parent,
                        struct gomp_task_icv *icv, struct gomp_taskgroup *taskgroup)
{
    struct gomp_thread *thr = gomp_thread();
    unsigned level = thr->ts.level; /* the new one already */
    s->team = team;
    s->fn = fn;
    s->data = data;
    s->nthreads = team->nthreads;
    s->parent = parent;
    s->icv = icv;
    s->taskgroup = taskgroup;
    s->pool = thr->thread_pool;
    s->nthreads_var = icv->nthreads_var;
    if (__builtin_expect(gomp_nthreads_var_list != NULL, 0) && level < gomp_nthreads_var_list_len)
        s->nthreads_var = gomp_nthreads_var_list[level];
    char bind = icv->bind_var;
    if (bind != omp_proc_bind_false && (flags & 7) != omp_proc_bind_false)
        bind = flags & 7;
    s->bind = gomp_places_list ? bind : omp_proc_bind_false;
    s->bind_var = bind;
    if (__builtin_expect(gomp_bind_var_list != NULL, 0) && level < gomp_bind_var_list_len)
        s->bind_var = gomp_bind_var_list[level];
    s->league = gomp_league_of(thr);
    s->level = level;
    s->active_level = thr->ts.active_level;
    s->def_allocator = thr->ts.def_allocator;
    s->master_place = thr->place;
    s->partition_off = thr->ts.place_partition_off;
    s->partition_len = thr->ts.place_partition_len;
    s->master_holds_core = inv_hold != INV_HOLD_NONE;
}

/* The caller becomes thread number 0 of the team. */
static void become_master (struct gomp_team *team)
{
    struct gomp_thread *thr = gomp_thread();
    const struct gomp_team_state *outer = &team->prev_ts;
    inv_assert(team->nthreads > 0 && team != thr->ts.team);
    team->prev_ts = thr->ts;
    thr->ts = (struct gomp_team_state){.team = team,
                                       .work_share = &team->work_shares[0],
                                       .level = outer->level + 1,
                                       .active_level = outer->active_level + (team->nthreads > 1),
                                       .place_partition_off = outer->place_partition_off,
                                       .place_partition_len = outer->place_partition_len,
                                       .def_allocator = outer->def_allocator};
    thr->task = team->implicit_task;
}

static void init_master_task (const struct gomp_region_start *s)
{
    struct gomp_thread *thr = gomp_thread();
    gomp_init_task(thr->task, s->parent, s->icv);
    thr->task->taskgroup = s->taskgroup;
    thr->task->icv.nthreads_var = s->nthreads_var;
    thr->task->icv.bind_var = s->bind_var;
    if (__builtin_expect(gomp_places_list != NULL, 0) && s->nthreads > 1) {
        struct gomp_place_choice mine = gomp_place_of(s, 0);
        thr->ts.place_partition_off = mine.partition_off;
        thr->ts.place_partition_len = mine.partition_len;
    }
}

/* Show where the threads of a new or changed team are bound (OMP_DISPLAY_AFFINITY). */
static void display_affinity (const struct gomp_region_start *s, struct gomp_worker **workers)
{
    INV_UNCANCELLED;
    struct gomp_thread *thr = gomp_thread();
    gomp_display_affinity_thread(gomp_thread_self(), &thr->ts, thr->place);
    for (unsigned i = 1; i < s->nthreads; i++) {
        struct gomp_team_state ts = thr->ts;
        struct gomp_place_choice choice = gomp_place_of(s, i);
        ts.team_id = i;
        ts.place_partition_off = choice.partition_off;
        ts.place_partition_len = choice.partition_len;
        gomp_display_affinity_thread(workers && workers[i] ? workers[i]->handle
                                                           : gomp_thread_self(),
                                     &ts, choice.place);
    }
}

static void assign_to_pool_workers (struct gomp_region *region, gomp_simple_barrier_t *dock)
{
    unsigned n = region->start.nthreads;
    grow_workers(dock, n);
    region->workers = dock->workers;
    for (unsigned i = 1; i < n; i++)
        if (dock->workers[i])
            gomp_worker_assign(dock->workers[i], region, i);
        else
            dock->workers[i] = gomp_worker_start(region, i);
}

static void assign_to_nested_workers (struct gomp_region *region)
{
    unsigned n = region->start.nthreads;
    struct gomp_worker **idle = &dock_of(region->start.pool)->idle_nested;
    region->workers = gomp_malloc_cleared(n * sizeof region->workers[0]);
    for (unsigned i = 1; i < n; i++)
        region->workers[i] = gomp_nested_worker(idle, region, i);
    gomp_nested_workers_return(idle);
}

/* One pool of the process may have bound workers beside the free workers of elastic regions.  Each
 * further pool with both would make more threads than stock libgomp has.  It is the first pool that
 * asks. */
static bool may_have_both (const gomp_simple_barrier_t *dock)
{
    const void *now = atomic_load_explicit(&gomp_workers.beside, memory_order_relaxed);
    if (now)
        return now == dock;
    return atomic_compare_exchange_strong(&gomp_workers.beside, &now, (const void *)dock) || now == dock;
}

static bool may_be_elastic (const struct gomp_region *region)
{
    return inv_managed() && region->start.nthreads <= GOMP_TICKETS_MOST && !gomp_strict_threads();
}

/* May any thread that holds a core run implicit tasks of the region?  Not if the process can have
 * few threads and each thread number has a worker already: further threads would be made.  Nor if
 * implicit tasks that wait stay on their kernel threads and there is a core for each: a thread that
 * waits would give its core to a thread that begins a task which another core is about to begin. */
static bool is_elastic (const struct gomp_region *region, const gomp_simple_barrier_t *dock)
{
    unsigned n = region->start.nthreads;
    if (!may_be_elastic(region))
        return false;
    if (gomp_threads_stay() && n <= gomp_cores_at_hand() && may_have_both(dock))
        return false;
    return !gomp_thread_supply.few_threads || dock->size < n || !dock->workers[n - 1];
}

/* The same for a nested region.  Only if implicit tasks are contexts: else another kernel thread
 * would have to be made for each one that waits in a nested region. */
static bool nested_is_elastic (const struct gomp_region *region)
{
    return may_be_elastic(region) && !gomp_thread_supply.few_threads && gomp_regions_may_be_light();
}

static void open_nested (struct gomp_region *region)
{
    region->workers = NULL;
    __sync_fetch_and_add(&gomp_managed_threads, region->start.nthreads - 1UL);
    bool elastic = nested_is_elastic(region) && gomp_region_register(region);
    gomp_region_open(region, elastic);
    if (!elastic)
        assign_to_nested_workers(region);
}

/* How many workers may find work in the region.  Regions that are nested in it may make work for
 * all cores. */
static unsigned workers_of_use_to (const struct gomp_region *region)
{
    unsigned n = region->start.nthreads, cores = inv_domain_cores();
    return n < cores && region->start.icv->max_active_levels_var > 1 ? cores : n;
}

/* OpenBLAS computes with one thread inside the region (blas.h).  Before any implicit task
 * starts. */
static void restrict_blas (struct gomp_region *region)
{
    region->blas = 0;
    if (!inv_managed())
        return;
    if (__builtin_expect(!gomp_history_find(region->start.fn), 0))
        gomp_blas_search();
    if (__builtin_expect(gomp_blas_is_loaded(), 0))
        region->blas = gomp_blas_restrict();
}

static void open_top_level (struct gomp_region *region, struct gomp_thread_pool *pool)
{
    bool display = gomp_display_affinity_var && pool->threads_used != region->start.nthreads;
    count_threads(pool, region->start.nthreads);
    restrict_blas(region);
    if (is_elastic(region, &pool->threads_dock) && gomp_region_register(region)) {
        region->workers = NULL;
        keep_free_workers(&pool->threads_dock, workers_of_use_to(region));
        gomp_region_open(region, true);
    } else {
        if (inv_managed()) /* they look for cores, also when other threads compute on those */
            keep_free_workers(&pool->threads_dock, inv_domain_cores());
        gomp_region_open(region, false);
        assign_to_pool_workers(region, &pool->threads_dock);
    }
    if (__builtin_expect(display, 0))
        display_affinity(&region->start, region->workers);
}

void gomp_team_start (void (*fn) (void *), void *data, unsigned nthreads, unsigned flags,
                      struct gomp_team *team, struct gomp_taskgroup *taskgroup)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *parent = thr->task;
    struct gomp_task_icv *icv = parent ? &parent->icv : gomp_default_icv();
    bool nested = thr->ts.level > 0;
    struct gomp_region_start single;

    if (__builtin_expect(inv_hold_is_lent, 0) && inv_managed())
        inv_wait_elsewhere_end();
    if (nested && nthreads > 1)
        gomp_record_nested(nthreads);

    if (nthreads > 1 || __builtin_expect(gomp_team_settings.single_threads_join, 0)) {
        gomp_sched_join(nthreads);
        inv_polls_until = 0; /* a loop of tests of MPI is over: the caller goes on */
    }
    if (__builtin_expect(gomp_places_list != NULL, 0) && thr->place == 0) {
        gomp_init_affinity();
        if (__builtin_expect(gomp_display_affinity_var, 0) && nthreads == 1)
            gomp_display_affinity_thread(gomp_thread_self(), &thr->ts, thr->place);
    }
    become_master(team);
    INV_TELL(region_begin(team, fn, nthreads, thr->ts.level));
    INV_TELL(task_begin(team, 0));
    if (nthreads == 1) {
        fill_start(&single, team, fn, data, flags, parent, icv, taskgroup);
        init_master_task(&single);
        if (inv_is_recorded() && !nested && icv->nthreads_var == 1)
            gomp_cost_team(1);
        return;
    }
    /* Contexts in this carrier's list may depend on what the caller does after the region, so they
     * must not run on this thread while the caller waits for the region. */
    if (!gomp_in_context())
        gomp_contexts_publish();
    struct gomp_thread_pool *pool = gomp_get_thread_pool(thr, nthreads);
    struct gomp_region *region = nested ? gomp_region_alloc() : pool_region(pool);
    fill_start(&region->start, team, fn, data, flags, parent, icv, taskgroup);
    init_master_task(&region->start);
    team->barrier.region = region;
    if (!nested) {
        open_top_level(region, pool);
        return;
    }
    open_nested(region);
    if (__builtin_expect(gomp_display_affinity_var, 0))
        display_affinity(&region->start, region->workers);
}

/* --- ending a region */

static void end_nested (struct gomp_team *team, struct gomp_region *region)
{
    struct gomp_worker **idle = &region->start.pool->threads_dock.idle_nested;
    for (unsigned i = 1; region->workers && i < team->nthreads; i++)
        gomp_nested_worker_return(idle, region->workers[i]);
    __sync_fetch_and_add(&gomp_managed_threads, 1UL - team->nthreads);
    free(region->workers);
    region->workers = NULL;
    inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) == 0);
    gomp_region_free(region);
}

static void free_work_shares (struct gomp_team *team, struct gomp_work_share *last)
{
    if (__builtin_expect(team->team_cancelled, 0)) {
        /* Threads have left the loops at different points: walk the whole chain. */
        struct gomp_work_share *next, *ws = team->work_shares_to_free;
        for (; ws != NULL; ws = next) {
            next = gomp_ptrlock_get(&ws->next_ws);
            if (next == NULL)
                gomp_ptrlock_set(&ws->next_ws, ws);
            gomp_fini_work_share(ws);
        }
    } else
        gomp_fini_work_share(last);
    struct gomp_work_share *next, *block = team->work_shares[0].next_alloc;
    for (; block != NULL; block = next) {
        next = block->next_alloc;
        free(block);
    }
}

/* The dependences of an implicit task's children are kept until the region ends. */
static void finish_implicit_tasks (struct gomp_team *team, bool had_tasks)
{
    for (unsigned i = 1; had_tasks && i < team->nthreads; i++)
        gomp_deps_free(&team->implicit_task[i]);
    gomp_end_task();
}

static void keep_for_next_region (struct gomp_thread_pool *pool, struct gomp_team *team)
{
    struct gomp_team **kept = kept_team(pool, team->nthreads), *older = *kept;
    inv_assert(older != team);
    *kept = team;
    if (older)
        free_team(older);
}

void gomp_team_end (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    struct gomp_region *region = team->barrier.region;

    inv_assert(thr->ts.team_id == 0); /* the master ends the region */
    inv_assert(!region || region->start.team == team);
    if (thr->ts.level > 0) /* else an artificial team */
        INV_TELL(task_end(team, 0));
    if (region)
        gomp_region_finish(region);
    else if (gomp_barrier_flags(&team->barrier) & BAR_TASKS)
        gomp_team_barrier_wait(&team->barrier); /* of one thread: its explicit tasks */
    bool had_tasks = gomp_barrier_flags(&team->barrier) & BAR_TASKS;
    if (__builtin_expect(had_tasks, 0)) {
        /* A thread outside the team that fulfilled the last event may hold the lock still. */
        gomp_mutex_lock(&team->task_lock);
        gomp_mutex_unlock(&team->task_lock);
    }
    if (thr->ts.level > 0)
        INV_TELL(region_end(team));
    free_work_shares(team, thr->ts.work_share);
    finish_implicit_tasks(team, had_tasks);
    inv_assert(!thr->ts.level || thr->ts.level == team->prev_ts.level + 1);
    thr->ts = team->prev_ts;
    gomp_sem_destroy(&team->master_release);

    bool nested = thr->ts.level != 0;
    if (region && nested)
        end_nested(team, region);
    else if (region && __builtin_expect(region->blas != 0, 0))
        gomp_blas_release(region->blas);
    /* (The pool of a thread that ends is gone before an artificial team of it.) */
    if (nested || thr->ts.team != NULL || thr->thread_pool == NULL)
        free_team(team);
    else
        keep_for_next_region(thr->thread_pool, team);
}

struct gomp_task_icv *gomp_new_icv (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task = gomp_malloc(sizeof *task);
    gomp_init_task(task, NULL, gomp_default_icv());
    thr->task = task;
    pthread_setspecific(gomp_thread_destructor, thr);
    return &task->icv;
}

/* --- process start, fork and end */

/* The child of a fork has one thread.  Whatever other threads held is forgotten, not freed:
 * it may have been changing when the fork came. */
static void after_fork_in_child (void)
{
    struct gomp_thread *thr = gomp_thread();
    thr->thread_pool = NULL;
    gomp_managed_threads = 1;
    gomp_use_forget();
    gomp_join_forget();
    gomp_free_workers_forget();
    gomp_bound_forget();
    gomp_cores_forget();
    gomp_ready_forget();
    gomp_unheld_forget();
    gomp_carriers_forget();
    gomp_costs_forget();
    gomp_parking_forget();
    gomp_regions_forget();
    gomp_progress_forget();
    gomp_pools_forget();
}

static void __attribute__((constructor)) initialize_team (void)
{
    if (pthread_key_create(&gomp_thread_destructor, thread_ends) != 0)
        gomp_fatal("could not create thread pool destructor.");
    pthread_atfork(NULL, NULL, after_fork_in_child);
    gomp_work_sources_set(&gomp_implicit_tasks, &gomp_explicit_tasks);
    gomp_workers_loaded();
    gomp_watchdog_set(&gomp_progress_watch);
    inv_set_task_point(gomp_work_sources.explicit->task_point); /* also for teams of one thread */
    atomic_store_explicit(&inv_triggers.in_openmp, true, memory_order_relaxed);
    gomp_use_loaded(); /* the constructors of env.c and parallel.c are linked before this one */
}

static void __attribute__((destructor)) team_destructor (void)
{
    /* Else a thread that ends after the library is unloaded would call a function that is gone. */
    pthread_key_delete(gomp_thread_destructor);
}
