/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * region.c - parallel regions as counted implicit tasks (region.h).
 */
#include "waiting.h"
#include "carrier.h"
#include "region.h"
#include "history.h"
#include "parallel.h"
#include "progress.h"
#include "ready.h"
#include "unheld.h"
#include "tasks.h"
#include "tls.h"
#include <libinvasive/tool.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

enum {
    BRIEF_NS = 60000,     /* what it takes to wake a sleeping core, about */
    OWN_CORE_NS = 400000, /* core time of a region for which no core is called, see is_for_own_core */
};

#define UNFINISHED_ONE (UINT64_C(1) << 32)
#define INSIDE_ONE UINT64_C(1)

/* Regions that idle workers look at.  Slots are set under registry_lock and read without; NULL: none.  Both they and
 * `registered_high` stay as they are once set: the struct of a region that is over is used again for another one. */
static _Atomic (struct gomp_region *) registered[GOMP_REGIONS_REGISTERED];
static _Atomic unsigned registered_high;
static struct gomp_spinlock registry_lock;
/* Structs that no region uses: registered ones, which are used first, and others. */
static struct gomp_region *free_registered, *free_others;

/* --- allocation and registry */

struct gomp_region *gomp_region_alloc (void)
{
    gomp_spinlock_lock(&registry_lock);
    struct gomp_region **list = free_registered ? &free_registered : &free_others, *region = *list;
    if (region)
        *list = region->next_free;
    gomp_spinlock_unlock(&registry_lock);
    if (!region) {
        region = gomp_aligned_alloc(__alignof__(*region), sizeof *region);
        memset(region, 0, sizeof *region);
    }
    return region;
}

void gomp_region_free (struct gomp_region *region)
{
    struct gomp_region **list = region->registered ? &free_registered : &free_others;
    gomp_spinlock_lock(&registry_lock);
    region->next_free = *list;
    *list = region;
    gomp_spinlock_unlock(&registry_lock);
}

bool gomp_region_register (struct gomp_region *region)
{
    if (region->registered)
        return true;
    gomp_spinlock_lock(&registry_lock);
    for (unsigned i = 0; i < GOMP_REGIONS_REGISTERED && !region->registered; i++)
        if (!atomic_load_explicit(&registered[i], memory_order_relaxed)) {
            inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) == 0);
            region->tickets.number = i;
            atomic_store_explicit(&registered[i], region, memory_order_release);
            if (i >= registered_high)
                atomic_store_explicit(&registered_high, i + 1, memory_order_release);
            region->registered = true;
        }
    gomp_spinlock_unlock(&registry_lock);
    return region->registered;
}

struct gomp_region *gomp_region_registered (unsigned index)
{
    if (index >= atomic_load_explicit(&registered_high, memory_order_acquire))
        return NULL;
    return atomic_load_explicit(&registered[index], memory_order_acquire);
}

bool gomp_regions_in_use (void)
{
    return atomic_load_explicit(&registered_high, memory_order_relaxed) > 0;
}

/* Is `fn` true of a registered region?  It is called until it is. */
static inline bool any_registered (bool (*fn) (struct gomp_region *))
{
    struct gomp_region *region;
    unsigned high = atomic_load_explicit(&registered_high, memory_order_relaxed);
    for (unsigned i = 0; i < high; i++)
        if ((region = gomp_region_registered(i)) && fn(region))
            return true;
    return false;
}

void gomp_regions_forget (void)
{
    memset(registered, 0, sizeof registered);
    free_registered = free_others = NULL;
    atomic_store(&registered_high, 0);
    atomic_store(&registry_lock.held, 0);
}

/* --- implicit tasks */

/* Make the calling thread thread number `id` of the region. */
static void become_member (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    const struct gomp_region_start *s = &region->start;
    struct gomp_team *team = s->team;
    inv_assert(id < s->nthreads && team->nthreads == s->nthreads);
    thr->ts.team = team;
    thr->ts.team_id = id;
    thr->ts.level = s->level;
    thr->ts.active_level = s->active_level;
    thr->ts.def_allocator = s->def_allocator;
    thr->task = &team->implicit_task[id];
    thr->thread_pool = s->pool;
    gomp_league_join(thr, s->league);
}

/* The place of thread number `id`.  If the thread holds a core, that core gives the place. */
static void take_place (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_place_choice choice = gomp_place_of(&region->start, id);
    thr->ts.place_partition_off = choice.partition_off;
    thr->ts.place_partition_len = choice.partition_len;
    if (thr->place != choice.place && inv_hold < 0)
        gomp_bind_self(choice.place);
    thr->place = choice.place;
}

/* Become thread number `id` after another one of the same region. */
static inline void change_number (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    inv_assert(thr->ts.team == region->start.team && id < region->start.nthreads);
    thr->ts.team_id = id;
    thr->ts.def_allocator = region->start.def_allocator;
    thr->task = &region->start.team->implicit_task[id];
}

/* The thread is a member already. */
static inline void start_implicit_task (struct gomp_region *region, unsigned id)
{
    struct gomp_thread *thr = gomp_thread();
    const struct gomp_region_start *s = &region->start;
    inv_assert(thr->ts.team == s->team && thr->ts.team_id == id);
    thr->ts.work_share = &s->team->work_shares[0];
    thr->ts.last_work_share = NULL;
    thr->ts.single_count = 0;
    thr->ts.static_trip = 0;
    gomp_init_task(thr->task, s->parent, s->icv);
    thr->task->icv.nthreads_var = s->nthreads_var;
    thr->task->icv.bind_var = s->bind_var;
    thr->task->taskgroup = s->taskgroup;
    if (__builtin_expect(gomp_places_list != NULL, 0))
        take_place(region, id);
}

static void run_implicit_task (struct gomp_region *region, unsigned id)
{
    start_implicit_task(region, id);
    INV_TELL(task_begin(region->start.team, id));
    gomp_code_begins(&region->start.team->barrier);
    inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) >= UNFINISHED_ONE);
    region->start.fn(region->start.data);
    gomp_code_ends(&region->start.team->barrier);
    INV_TELL(task_end(region->start.team, id));
}

static void forget_member (void)
{
    struct gomp_thread *thr = gomp_thread();
    thr->ts.team = NULL;
    thr->ts.team_id = 0;
    thr->ts.level = 0;
    thr->ts.active_level = 0;
    thr->task = NULL;
}

/* Subtract from the gate; tell the master when it may wait for that. */
static void leave_gate (struct gomp_region *region, uint64_t what)
{
    /* seq_cst (and acq_rel for the work done): partner is wait_for_end, which announces
     * that it waits before it looks at the gate. */
    uint64_t now = atomic_fetch_sub(&region->gate, what) - what;
    inv_assert(now + what >= what && (uint32_t)(now + what) >= (uint32_t)what); /* neither count is below 0 */
    inv_assert((uint32_t)now > 0); /* the master is inside until it closes the gate */
    if (now == INSIDE_ONE && atomic_load(&region->master_waits)) {
        atomic_fetch_add(&region->end_word, 1);
        gomp_unpark((int *)&region->end_word, 1);
    }
}

/* --- tickets */

/* Any that are for all cores, as far as they are known to be. */
static bool has_tickets (struct gomp_region *region)
{
    return !gomp_region_is_alone(region) && gomp_tickets_any(&region->tickets);
}

static bool has_tickets_in_view (struct gomp_region *region)
{
    return gomp_tickets_in_view(&region->tickets, inv_hold);
}

bool gomp_tickets_left (void)
{
    return any_registered(has_tickets);
}

bool gomp_tickets_in_sight (void)
{
    return any_registered(has_tickets_in_view);
}

/* Other threads may run explicit tasks under these numbers.  release; partner: take_vacant_number */
static void make_vacant (struct gomp_region *region, const uint64_t *numbers)
{
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        if (numbers[word])
            atomic_fetch_or_explicit(&region->vacant[word], numbers[word], memory_order_release);
}

static void set_number (uint64_t *numbers, unsigned id)
{
    inv_assert(id < GOMP_TICKETS_MOST);
    if (id < 64 * GOMP_VACANT_WORDS)
        numbers[id / 64] |= UINT64_C(1) << id % 64;
}

/* Take an implicit task that no thread has started, and run it; `first`: the thread has run none of
 * the region that is not counted done.  False: there is none. */
static bool run_next (struct gomp_region *region, bool first, unsigned *id)
{
    if (!gomp_ticket_take(&region->tickets, inv_hold, !first, id))
        return false;
    if (__builtin_expect(inv_hold == INV_HOLD_NONE, 0))
        gomp_progress_note_extra();
    if (first)
        become_member(region, *id);
    else
        change_number(region, *id);
    run_implicit_task(region, *id);
    return true;
}

/* Run implicit tasks of the region as long as there are any and the core is not needed
 * more elsewhere.  Returns how many. */
static unsigned run_tickets (struct gomp_region *region)
{
    unsigned id, done = 0;
    uint64_t over[GOMP_VACANT_WORDS] = {0};
    while (run_next(region, done == 0, &id)) {
        set_number(over, id);
        done++;
        if (!gomp_holds_core())
            break; /* an extra thread runs one (progress.c) */
        if (gomp_hold_called_back() || gomp_ready_here(inv_hold))
            break;
    }
    make_vacant(region, over);
    return done;
}

_Static_assert(sizeof ((struct gomp_ended *)0)->numbers / sizeof(uint64_t) == GOMP_VACANT_WORDS,
               "a carrier keeps as many thread numbers as a region");

void gomp_region_count_ended (struct gomp_ended *tasks)
{
    unsigned count = tasks->count;
    inv_assert(count > 0 && tasks->region != NULL);
    tasks->count = 0;
    make_vacant(tasks->region, tasks->numbers);
    memset(tasks->numbers, 0, sizeof tasks->numbers);
    leave_gate(tasks->region, count * UNFINISHED_ONE);
}

/* One of the region that has just ended, on the calling carrier. */
static void note_ended (struct gomp_region *region, unsigned id)
{
    struct gomp_ended *tasks = gomp_carrier_tasks();
    if (tasks->count > 0 && tasks->region != region)
        gomp_region_count_ended(tasks);
    inv_assert(tasks->count == 0 || tasks->region == region);
    inv_assert(tasks->count < region->start.nthreads && id > 0); /* 0 is the master's */
    tasks->region = region;
    tasks->count++;
    set_number(tasks->numbers, id);
}

/* May a context go on to another implicit task?  Else its carrier has something else to do. */
static bool may_go_on (void)
{
    return gomp_holds_core() && !gomp_hold_called_back() && !gomp_ready_here(inv_hold) &&
           !gomp_contexts_look();
}

/* What runs on top of such a wait cannot depend on what the waiting thread does after it.  In any other
 * wait it might: the thread may hold a lock of the program. */
bool gomp_region_waits_for_all (const int *addr)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_region *region = team ? team->barrier.region : NULL;
    if (!region || !region->elastic || gomp_thread()->ts.team_id != 0)
        return false;
    /* (Where it waits for explicit tasks it may run them itself, on its core.  Below a context that runs
     * one it could not, and there would be one thread number less than cores.) */
    return addr == (const int *)&team->barrier.generation || addr == (const int *)&region->end_word;
}

bool gomp_region_may_start (struct gomp_region *region)
{
    return region->light && gomp_tickets_any(&region->tickets);
}

bool gomp_region_run_in_context (struct gomp_region *region)
{
    unsigned id;
    bool found = false;
    while (run_next(region, !found, &id)) {
        found = true;
        note_ended(region, id);
        if (!may_go_on())
            break;
    }
    return found;
}

struct gomp_region *gomp_region_around (const struct gomp_team *team)
{
    while (team && !team->barrier.region)
        team = team->prev_ts.team;
    return team ? team->barrier.region : NULL;
}

bool gomp_region_is_within (struct gomp_region *region, const struct gomp_region *of)
{
    while (region && region != of)
        region = atomic_load_explicit(&region->outer, memory_order_relaxed);
    return region != NULL;
}

bool gomp_region_start_in_context (struct gomp_region *region)
{
    return gomp_region_may_start(region) && gomp_contexts_start(region) == GOMP_STARTED;
}

/* The worker's last access to the team is the gate. */
static bool serve_region (struct gomp_region *region)
{
    if (!has_tickets(region))
        return false;
    if (gomp_region_may_start(region)) {
        enum gomp_start start = gomp_contexts_start(region);
        if (start != GOMP_NO_MEMORY)
            return start == GOMP_STARTED;
    }
    unsigned done = run_tickets(region);
    if (done == 0)
        return false;
    forget_member();
    leave_gate(region, done * UNFINISHED_ONE);
    return true;
}

bool gomp_run_ticket (void)
{
    return any_registered(serve_region);
}

/* --- helping with explicit tasks */

bool gomp_region_is_open (struct gomp_region *region, uint32_t epoch)
{
    return atomic_load_explicit(&region->epoch, memory_order_relaxed) == epoch &&
           atomic_load_explicit(&region->gate, memory_order_relaxed) != 0;
}

static bool core_called_back (void)
{
    return inv_managed() && inv_hold != INV_HOLD_NONE && gomp_hold_called_back();
}

/* Inside the gate the team stays.  False: the region is closed. */
static bool enter_gate (struct gomp_region *region)
{
    uint64_t g = atomic_load_explicit(&region->gate, memory_order_relaxed);
    do
        if (g == 0)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&region->gate, &g, g + INSIDE_ONE,
                                                  memory_order_acquire, memory_order_relaxed));
    return true;
}

void gomp_region_ref (struct gomp_region *region)
{
    uint64_t before = atomic_fetch_add_explicit(&region->gate, INSIDE_ONE, memory_order_acquire);
    inv_assert(before != 0); /* the caller knows that it is open */
}

void gomp_region_unref (struct gomp_region *region)
{
    leave_gate(region, INSIDE_ONE);
}

static void help_as (struct gomp_region *region, unsigned id)
{
    inv_assert((uint32_t)atomic_load_explicit(&region->gate, memory_order_relaxed) > 0);
    become_member(region, id);
    gomp_tasks_help(region->start.team, core_called_back);
    forget_member();
}

/* Execute explicit tasks of an open region as member `id`, which has finished its
 * implicit task.  True when we got in. */
static bool help_region (struct gomp_region *region, uint32_t epoch, unsigned id)
{
    if (!enter_gate(region))
        return false;
    /* If it is another region by now, leave. */
    if (atomic_load_explicit(&region->epoch, memory_order_relaxed) == epoch)
        help_as(region, id);
    leave_gate(region, INSIDE_ONE);
    return true;
}

/* A vacant thread number for the calling thread, or -1. */
static int take_vacant_number (struct gomp_region *region)
{
    for (int word = 0; word < GOMP_VACANT_WORDS; word++) {
        uint64_t set = atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
        while (set) {
            uint64_t bit = set & -set;
            /* acquire: what was done under this number before; partner: make_vacant */
            if (atomic_fetch_and_explicit(&region->vacant[word], ~bit, memory_order_acquire) & bit)
                return word * 64 + __builtin_ctzll(bit);
            set = atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
        }
    }
    return -1;
}

/* A core has come in the middle of a region.  Use it for tasks: under a number whose implicit task
 * is over; or let a member go on that sleeps in a barrier. */
static bool help_elastic (struct gomp_region *region)
{
    if (!enter_gate(region))
        return false;
    int id = region->elastic ? take_vacant_number(region) : -1;
    bool helped = id >= 0, called = false;
    if (helped) {
        uint64_t again[GOMP_VACANT_WORDS] = {0};
        help_as(region, (unsigned)id);
        set_number(again, (unsigned)id);
        make_vacant(region, again);
    } else if (region->elastic && atomic_load(&region->sleeping_members) > 0) {
        gomp_tasks_signal(gomp_team_tasks(region->start.team), 1);
        helped = called = true;
    }
    leave_gate(region, INSIDE_ONE);
    /* The member may be a context in the list of a carrier that executes a long task. */
    if (called)
        gomp_contexts_run_others();
    return helped;
}

/* seq_cst: partner is a thread that sleeps after a look at `help` (linger_in_region, wait_for_end) */
void gomp_region_help_wanted (struct gomp_region *region)
{
    atomic_store(&region->help, true);
    if (region->elastic && inv_managed())
        gomp_want_cores();
}

/* Only a hint, but without it tasks would be left to the master alone: a thread that queues a
 * task looks at the hint afterwards, we look for tasks after we have taken the hint back.  seq_cst,
 * all four: partner is gomp_region_tasks_queued.  While the hint is gone another thread may say that
 * the process wants no cores (gomp_stop_wanting), so it is to be said again. */
void gomp_region_no_tasks (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->help, memory_order_relaxed))
        return;
    atomic_store(&region->help, false);
    if (gomp_tasks_visible(region->start.team))
        gomp_region_help_wanted(region);
}

/* The hint outlives the region when its last task has been called for and run in one go. */
static bool help_needed (struct gomp_region *region)
{
    if (!atomic_load_explicit(&region->help, memory_order_relaxed) ||
        !atomic_load_explicit(&region->elastic, memory_order_relaxed) ||
        atomic_load_explicit(&region->gate, memory_order_relaxed) == 0)
        return false;
    uint64_t vacant = atomic_load_explicit(&region->sleeping_members, memory_order_relaxed);
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        vacant |= atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
    return vacant != 0;
}

static bool help_where_needed (struct gomp_region *region)
{
    return help_needed(region) && help_elastic(region);
}

bool gomp_help_waiting (void)
{
    return any_registered(help_needed);
}

bool gomp_help_tasks (void)
{
    return any_registered(help_where_needed);
}

bool gomp_region_call_helpers (struct gomp_region *region, int count)
{
    int before = count;
    if (atomic_load(&region->master_waits)) {
        atomic_fetch_add(&region->end_word, 1);
        gomp_unpark((int *)&region->end_word, 1);
        count--;
    }
    /* Elastic regions have no workers of their own; workers that linger here are of the struct's
     * previous use, and about to see that it is over. */
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

/* --- bound workers */

struct linger {
    struct gomp_region *region;
    uint32_t epoch;
    struct gomp_worker *self;
    int seen;
};

static bool linger_over (const struct linger *l)
{
    return atomic_load_explicit(&l->self->word, memory_order_relaxed) != l->seen ||
           !gomp_region_is_open(l->region, l->epoch);
}

static bool linger_ready (void *arg)
{
    const struct linger *l = arg;
    return linger_over(l) || atomic_load_explicit(&l->region->help, memory_order_relaxed);
}

/* Sleep where a call for help finds us.  seq_cst: partner is the caller, which queues the
 * task, then looks at sleeping_helpers and asleep. */
static void linger_asleep (struct linger *l)
{
    atomic_store(&l->self->asleep, 1);
    atomic_fetch_add(&l->region->sleeping_helpers, 1);
    if (!atomic_load(&l->region->help) && !linger_over(l))
        gomp_park((int *)&l->self->word, l->seen);
    unsigned before = atomic_fetch_sub(&l->region->sleeping_helpers, 1);
    inv_assert(before > 0);
    if (!atomic_exchange(&l->self->asleep, 0))
        l->seen += GOMP_WORKER_CALL; /* a call for help raised the word once */
}

/* Our implicit task is done, the region may not be: execute explicit tasks as they come,
 * until the region ends, the next implicit task is assigned, or idling has lasted too long. */
static void linger_in_region (struct linger *l, unsigned id)
{
    while (!linger_over(l)) {
        if (atomic_load_explicit(&l->region->help, memory_order_relaxed)) {
            help_region(l->region, l->epoch, id);
            gomp_hold_checkpoint(); /* it may have left because its core is called back */
            continue;
        }
        INV_TELL(idle_begin());
        if (!gomp_spin_until(linger_ready, l))
            linger_asleep(l);
        INV_TELL(idle_end());
    }
}

void gomp_region_run_bound (struct gomp_region *region, unsigned id, struct gomp_worker *self,
                            int *seen)
{
    uint32_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
    inv_assert(id > 0 && id < region->start.nthreads);
    become_member(region, id);
    run_implicit_task(region, id);
    forget_member();
    leave_gate(region, UNFINISHED_ONE);
    struct linger l = {region, epoch, self, *seen};
    linger_in_region(&l, id);
    *seen = l.seen;
    gomp_hold_checkpoint();
}

/* --- the master */

/* Team sizes that adapt do so by what kernel threads cost that wait (parallel.c).  Tools are promised
 * that an implicit task begins and ends on one kernel thread. */
bool gomp_regions_may_be_light (void)
{
    return gomp_movable_threads() && !gomp_team_adaptive && !inv_tool_get() &&
           gomp_contexts_usable();
}

/* For the report. */
static void count_region (struct gomp_region *region)
{
    gomp_barrier_t *bar = &region->start.team->barrier;
    region->cost.of = NULL;
    if (gomp_costs_wanted())
        gomp_cost_region_opens(region);
    bar->counted = region->cost.of != NULL;
    gomp_code_begins(bar);
}

/* With more processes than cores each core has a process that could compute: a second one for this
 * process costs more than it gains, unless the region takes long. */
static bool is_for_own_core (uint64_t core_ns)
{
    return inv_process.anonymous && core_ns > 0 && core_ns < OWN_CORE_NS;
}

static bool has_share (int hold)
{
    return gomp_share_of(hold, inv_process.ncores) < GOMP_TICKET_SHARES;
}

/* Of two cores, each of which takes from an end of the range where that helps, both have the same half each
 * time without more. */
enum { FEW_CORES = 2 };

/* Add the process's own cores to that of the master.  Returns how many they are. */
static unsigned add_own_cores (struct gomp_homes *homes)
{
    unsigned us = inv_process.slot + 1, ncores = inv_process.ncores, found = 1;
    for (unsigned core = 0; core < ncores; core++) {
        /* relaxed: a hint */
        inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, core)->word, memory_order_relaxed);
        if (inv_word_owner(w) != us || (int)core == inv_hold)
            continue;
        inv_assert(gomp_share_of((int)core, ncores) < GOMP_TICKET_SHARES);
        homes->cores[gomp_share_of((int)core, ncores)]++;
        found++;
    }
    return found;
}

/* Are the region's implicit tasks to be dealt to cores?  Else all cores take from one range. */
static bool have_homes (const struct gomp_region *region, struct gomp_ticket_ways ways, struct gomp_homes *homes)
{
    if (!has_share(inv_hold) || (!ways.alone && inv_process.ncores <= FEW_CORES))
        return false;
    memset(homes->cores, 0, sizeof homes->cores);
    homes->first = gomp_share_of(inv_hold, inv_process.ncores);
    inv_assert(homes->first < GOMP_TICKET_SHARES);
    homes->cores[homes->first] = 1;
    return ways.alone || region->start.nthreads <= add_own_cores(homes) || ways.apart;
}

static bool is_open (struct gomp_region *region)
{
    return atomic_load_explicit(&region->gate, memory_order_relaxed) != 0;
}

/* A region that is about to open: no more cores than implicit tasks, where there is no other region. */
static unsigned cores_of_use_to (const struct gomp_region *region, bool elastic)
{
    bool only = elastic && region->start.team->prev_ts.level == 0 &&
                region->start.icv->max_active_levels_var <= 1 && !gomp_use_has_further_threads() &&
                !any_registered(is_open);
    return only ? region->start.nthreads : UINT_MAX;
}

/* Does each core begin with implicit tasks that it has had before?  certain: without a look at what is quicker. */
static bool is_apart (struct gomp_region *region, const struct gomp_history *h, bool certain)
{
    bool chosen = h && !certain;
    atomic_store_explicit(&region->order_is_chosen, chosen, memory_order_relaxed);
    return certain || (chosen && gomp_history_prefers_apart(h, region));
}

void gomp_region_open (struct gomp_region *region, bool elastic)
{
    unsigned n = region->start.nthreads;
    inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) == 0); /* its last use is over */
    inv_assert(n >= 1 && (!elastic || n <= GOMP_TICKETS_MOST));
    inv_assert(!elastic || region->registered || n == 1);
    inv_assert(atomic_load_explicit(&region->master_waits, memory_order_relaxed) == 0);
    uint32_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed) + 1;
    struct gomp_region *outer = gomp_region_around(region->start.team->prev_ts.team);
    atomic_store_explicit(&region->elastic, elastic, memory_order_relaxed);
    atomic_store_explicit(&region->outer, outer, memory_order_relaxed);
    if (outer)
        gomp_region_waits(outer); /* for the end of this region, if not now then another time */
    region->brief = false;
    region->light = false;
    atomic_store_explicit(&region->fn, region->start.fn, memory_order_release);
    if (atomic_load_explicit(&region->help, memory_order_relaxed))
        atomic_store_explicit(&region->help, false, memory_order_relaxed);
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        atomic_store_explicit(&region->vacant[word], 0, memory_order_relaxed);
    atomic_store_explicit(&region->epoch, epoch, memory_order_relaxed);
    gomp_history_region_opens(region, outer != NULL);
    count_region(region);
    gomp_cores_are_useful(cores_of_use_to(region, elastic));
    atomic_store_explicit(&region->gate, n * UNFINISHED_ONE + INSIDE_ONE, memory_order_release);
    if (!elastic) {
        if (gomp_region_is_alone(region)) /* the last use of the struct was */
            atomic_store_explicit(&region->tickets.alone, false, memory_order_relaxed);
        return;
    }
    struct gomp_history *h = gomp_history_find(region->start.fn);
    bool spins = h && gomp_history_spins(h, region);
    uint64_t task_ns = h ? gomp_history_task_ns(h, n) : 0;
    region->inside = h ? atomic_load_explicit(&h->inside, memory_order_relaxed) : GOMP_INSIDE_UNKNOWN;
    atomic_store_explicit(&region->waited, false, memory_order_relaxed);
    /* What never waits needs no stack of its own, which would cost it two switches. */
    region->light = !spins && region->inside != GOMP_NEVER_WAITS && gomp_regions_may_be_light();
    region->brief = task_ns > 0 && task_ns * n < BRIEF_NS;
    /* Implicit tasks that wait as kernel threads would sleep there, and no other core may begin the rest. */
    bool can_be_alone = !outer && !spins && (region->light || region->inside == GOMP_NEVER_WAITS) &&
                        has_share(inv_hold);
    bool alone = h && can_be_alone && gomp_history_prefers_alone(h, region);
    struct gomp_homes homes;
    uint32_t short_ns = task_ns < UINT32_MAX ? (uint32_t)task_ns : 0;
    struct gomp_ticket_ways ways = {.together = region->light && region->inside == GOMP_WAITS,
                                    .odd_first = inv_hold % 2 == 1,
                                    .alone = alone};
    ways.apart = is_apart(region, h, ways.together || gomp_tickets_are_short(short_ns));
    /* (The cores of a nested region are those that happen to be free.) */
    bool dealt = !outer && have_homes(region, ways, &homes);
    gomp_tickets_open(&region->tickets, epoch, n, short_ns, ways, dealt ? &homes : NULL);
    bool later = alone || is_for_own_core(task_ns * n);
    if (later)
        gomp_want_cores_later();
    /* After its fence: the watchdog may have come between, before there were tickets. */
    if (!later || (alone && !gomp_region_is_alone(region)))
        gomp_want_cores();
    /* The threads wait for each other without telling us; those of the outer region may have the other cores. */
    unsigned cores = !spins ? n : outer ? 1 : gomp_cores_at_hand();
    if (n > cores)
        gomp_run_unheld(n - cores);
}

static bool all_over (void *arg)
{
    struct gomp_region *region = arg;
    /* acquire for what other threads have done; seq_cst: partner is leave_gate, see wait_for_end */
    return atomic_load(&region->gate) == INSIDE_ONE &&
           !gomp_tasks_outstanding(region->start.team);
}

/* The same while there has been no task. */
static bool end_ready (void *arg)
{
    struct gomp_region *region = arg;
    return atomic_load_explicit(&region->gate, memory_order_relaxed) == INSIDE_ONE ||
           atomic_load_explicit(&region->help, memory_order_relaxed);
}

/* Spin as long as this thread may; executes a task if it finds one. */
static bool end_spin (struct gomp_region *region)
{
    struct gomp_team *team = region->start.team;
    if (gomp_in_context() && gomp_context_has_others())
        return false;
    if (gomp_barrier_flags(&team->barrier) & BAR_TASKS)
        return gomp_tasks_idle(team, all_over, region);
    return gomp_spin_until(end_ready, region);
}

/* Wait until the gate or the tasks have changed. */
static void wait_for_end (struct gomp_region *region)
{
    if (end_spin(region))
        return;
    inv_assert(gomp_thread()->ts.team_id == 0);
    int word = atomic_load(&region->end_word);
    /* seq_cst, as the looks after it: partners are leave_gate, and threads that queue a task
     * (after_queueing, gomp_region_call_helpers) */
    atomic_store(&region->master_waits, 1);
    if (!all_over(region) && !gomp_tasks_visible(region->start.team)) {
        gomp_park((int *)&region->end_word, word);
        gomp_idle_slept();
    }
    atomic_store(&region->master_waits, 0);
}

/* May this thread run implicit tasks of other thread numbers?  Not if the user asked for
 * larger stacks for them than this thread has (OMP_STACKSIZE). */
static bool stack_suffices (void)
{
    static _Atomic int answer; /* 0 unknown, 1 yes, 2 no */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == 0) {
        size_t asked = 0;
        struct rlimit own;
        known = pthread_attr_getstacksize(&gomp_thread_attr, &asked) == 0 &&
                        getrlimit(RLIMIT_STACK, &own) == 0 && asked > own.rlim_cur
                    ? 2
                    : 1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 1;
}

/* (A master that is a context itself, in a nested region or one of a target construct, waits, so that its carrier
 * can start them.) */
static bool elastic_work (struct gomp_region *region)
{
    return region->elastic && gomp_tickets_any(&region->tickets) &&
           (region->light ? !gomp_in_context() : stack_suffices()) && !gomp_ready_here(inv_hold);
}

/* Run implicit tasks that no thread has started, as long as the core is ours to do so. */
static void master_share (struct gomp_region *region)
{
    while (elastic_work(region)) {
        if (region->light) {
            /* Without memory for stacks implicit tasks are kernel threads. */
            if (gomp_contexts_start(region) == GOMP_NO_MEMORY)
                region->light = false;
            gomp_hold_checkpoint();
            continue;
        }
        unsigned done = run_tickets(region);
        inv_assert(done < region->start.nthreads);
        become_member(region, 0);
        if (__builtin_expect(gomp_places_list != NULL, 0))
            take_place(region, 0);
        leave_gate(region, done * UNFINISHED_ONE);
        gomp_hold_checkpoint();
    }
}

void gomp_region_finish (struct gomp_region *region)
{
    struct gomp_team *team = region->start.team;
    inv_assert(gomp_thread()->ts.team == team && gomp_thread()->ts.team_id == 0);
    gomp_code_ends(&team->barrier);
    leave_gate(region, UNFINISHED_ONE); /* implicit task 0 */
    master_share(region);
    for (;;) {
        uint64_t open = INSIDE_ONE;
        if (all_over(region)) {
            if (atomic_compare_exchange_strong(&region->gate, &open, 0))
                break;
        } else if (gomp_tasks_run(team, core_called_back))
            gomp_hold_checkpoint();
        else if (elastic_work(region))
            master_share(region);
        else
            wait_for_end(region);
    }
    inv_assert(!region->elastic || gomp_tickets_count(&region->tickets, region->epoch) == 0);
    inv_assert(atomic_load_explicit(&region->master_waits, memory_order_relaxed) == 0);
    if (!inv_managed())
        return;
    if (__builtin_expect(atomic_load_explicit(&inv_strangers_count, memory_order_relaxed) > 0, 0))
        inv_strangers_look();
    gomp_history_region_ends(region);
    if (__builtin_expect(region->cost.of != NULL, 0))
        gomp_cost_region_ends(region);
    if (region->start.master_holds_core && !gomp_holds_core())
        gomp_hold_acquire(); /* progress.c had let us run without one */
    gomp_hold_checkpoint(); /* a serial part may be long: not on a core that is asked back */
}
