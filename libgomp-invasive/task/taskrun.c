/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskrun.c - the scheduler of explicit tasks: queueing them, finding one to run, completing it,
 * and what a thread does that waits for tasks (tasks.h has the idea).
 */
#include "bound.h"
#include "carrier.h"
#include "context.h"
#include "cores.h"
#include "help.h"
#include "points.h"
#include "process.h"
#include "region.h"
#include "tasks.h"
#include "waiting.h"
#include <stddef.h>
#include <string.h>

enum {
    CALM_TASKS = 1024,      /* the threshold falls after so many queued tasks without a theft */
    LOOK_LEAST = 2,         /* pauses between two looks for work, at first */
    LOOK_MOST = 64,         /* and at most, later */
    LONG_CHAIN = 64,        /* at this depth ended parents are looked for; no recursion is so deep */
};

/* --- the scheduler's part of a team */

/* Enough for two tasks for each core.  A thread that creates all tasks of a region runs one at once
 * when its queue is full.  If tasks are long every core must find one in the queue meanwhile, and
 * another one after that. */
static int64_t first_threshold (unsigned nthreads)
{
    unsigned cores = inv_domain_cores();
    int64_t wanted = 2 * (int64_t)(nthreads < cores ? nthreads : cores);
    return wanted < GOMP_THRESHOLD_LEAST  ? GOMP_THRESHOLD_LEAST
           : wanted > GOMP_THRESHOLD_MOST ? GOMP_THRESHOLD_MOST
                                          : wanted;
}

struct gomp_team_tasks *gomp_team_tasks_make (struct gomp_team *team)
{
    struct gomp_team_tasks *before = gomp_team_tasks(team);
    if (before)
        return before;
    size_t n = team->nthreads;
    struct gomp_team_tasks *tasks;
    size_t bytes = sizeof *tasks + n * (sizeof tasks->slot[0] + sizeof tasks->used_slot[0]);
    tasks = gomp_aligned_alloc(__alignof__(*tasks), bytes);
    memset(tasks, 0, bytes);
    tasks->nthreads = team->nthreads;
    tasks->threshold = first_threshold(team->nthreads);
    tasks->used_slot = (struct gomp_task_slot **)&tasks->slot[n];
    /* Several team threads may come here at once. */
    /* seq_cst: partner is gomp_tasks_visible, called by a thread that is about to sleep */
    if (__atomic_compare_exchange_n(&team->own.tasks, &before, tasks, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_ACQUIRE))
        return tasks;
    gomp_aligned_free(tasks);
    return before;
}

void gomp_team_tasks_free (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks = team->own.tasks;
    if (!tasks)
        return;
    inv_assert(tasks->used <= tasks->nthreads && tasks->shared.count == 0);
    for (unsigned i = 0; i < tasks->used; i++) {
        inv_assert(gomp_queue_size(&tasks->used_slot[i]->queue) == 0); /* each task has been run */
        gomp_queue_free(&tasks->used_slot[i]->queue);
        gomp_aligned_free(tasks->used_slot[i]);
    }
    gomp_aligned_free(tasks);
    team->own.tasks = NULL;
}

struct gomp_task_slot *gomp_task_slot_make (struct gomp_team *team, unsigned id)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks_make(team);
    struct gomp_task_slot *slot = gomp_aligned_alloc(__alignof__(*slot), sizeof *slot);
    memset(slot, 0, sizeof *slot);
    if (!gomp_queue_init(&slot->queue))
        gomp_fatal("Out of memory for a queue of tasks");
    slot->threshold = tasks->threshold;
    slot->random = id * 2654435761u + 1;
    inv_assert(id < tasks->nthreads && tasks->slot[id] == NULL);
    tasks->slot[id] = slot;
    gomp_spinlock_lock(&tasks->lock);
    unsigned used = atomic_load_explicit(&tasks->used, memory_order_relaxed);
    inv_assert(used < tasks->nthreads);
    tasks->used_slot[used] = slot;
    /* release: a thread that sees the number sees the task slot.  seq_cst: partner is
     * gomp_tasks_visible, called by a thread that is about to sleep */
    atomic_store(&tasks->used, used + 1);
    gomp_spinlock_unlock(&tasks->lock);
    return slot;
}

/* Termination: reads how many tasks were completed, then how many were created.  created >=
 * completed at any time, and both only grow.  So if the two sums are equal, no task was outstanding
 * between the two readings.  None will be later: only tasks create tasks, and all implicit ones
 * have arrived.  A task that is seen as completed has counted the tasks that it created before
 * (release/acquire). */
bool gomp_tasks_outstanding (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    if (!tasks)
        return false;
    /* seq_cst: two threads that complete the last two tasks must not both miss the other's. */
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t completed = atomic_load_explicit(&tasks->completed_elsewhere, memory_order_acquire);
    uint64_t created = 0;
    unsigned used = atomic_load_explicit(&tasks->used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++)
        completed += atomic_load_explicit(&tasks->used_slot[i]->completed, memory_order_acquire);
    used = atomic_load_explicit(&tasks->used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++)
        created += atomic_load_explicit(&tasks->used_slot[i]->created, memory_order_acquire);
    inv_assert(created >= completed); /* what was completed has been created before */
    return created != completed;
}

/* All loads are seq_cst.  The caller has said that it sleeps, or that it has found no task, by a
 * seq_cst store.  Partners are gomp_queue_push and gomp_shared_queue_insert, and the looks of
 * after_queueing after these: a thread whose task is missed here sees what the caller has said. */
bool gomp_tasks_visible (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks = __atomic_load_n(&team->own.tasks, __ATOMIC_SEQ_CST);
    if (!tasks)
        return false;
    if (atomic_load(&tasks->shared.count) > 0)
        return true;
    unsigned used = atomic_load(&tasks->used);
    for (unsigned i = 0; i < used; i++)
        if (gomp_queue_visible(&tasks->used_slot[i]->queue))
            return true;
    return false;
}

/* --- memory */

struct gomp_task *gomp_task_alloc (size_t arg_size, size_t arg_align)
{
    size_t head = offsetof(struct gomp_task, depend);
    if (arg_align == 0)
        arg_align = 1;
    size_t bytes = head + arg_size + arg_align - 1;
    int class = gomp_pool_class(bytes);
    bool apart = class < 0;
    if (apart)
        class = gomp_pool_class(head);
    struct gomp_task *task = gomp_pool_alloc(class);
    task->own.memory = GOMP_MEMORY_POOL;
    task->own.size_class = (uint8_t)class;
    atomic_store_explicit(&task->own.traits, apart ? GOMP_TRAIT_OWN_ARGUMENTS : 0,
                          memory_order_relaxed);
    uintptr_t at = (uintptr_t)task + head;
    if (apart)
        at = (uintptr_t)(task->fn_data = gomp_malloc(arg_size + arg_align - 1 + sizeof(void *)));
    if (apart) {
        /* malloc's address lies before the arguments */
        void *block = task->fn_data;
        at = (at + sizeof(void *) + arg_align - 1) & ~(arg_align - 1);
        memcpy((char *)at - sizeof(void *), &block, sizeof block);
    } else
        at = (at + arg_align - 1) & ~(arg_align - 1);
    task->fn_data = (void *)at;
    return task;
}

void gomp_task_release (struct gomp_task *task)
{
    if (__builtin_expect(gomp_task_has_trait(&task->own, GOMP_TRAIT_OWN_ARGUMENTS), 0)) {
        void *block;
        memcpy(&block, (char *)task->fn_data - sizeof block, sizeof block);
        free(block);
    }
    inv_assert(task->own.memory == GOMP_MEMORY_POOL && task->own.node == NULL);
    gomp_pool_free(task->own.size_class, task);
}

/* A thief may still look at what this block was before: it reads the parent, then the depth, so
 * they are written the other way round.  Neither is ever a pointer into a stack. */
static void set_parent (struct gomp_task *task, struct gomp_task *parent)
{
    /* A queued task has no parent on a stack. */
    inv_assert(parent->own.memory != GOMP_MEMORY_STACK);
    __atomic_store_n(&task->own.depth, parent->own.depth + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&task->parent, parent, __ATOMIC_RELEASE);
}

void gomp_task_init_deferred (struct gomp_task *task, struct gomp_task *parent)
{
    set_parent(task, parent);
    atomic_store_explicit(&task->own.done, 0, memory_order_relaxed);
    task->own.created = task->own.own_done = 0;
    atomic_store_explicit(&task->own.detach, GOMP_DETACH_NONE, memory_order_relaxed);
    task->own.node = NULL;
    task->taskgroup = parent->taskgroup;
    task->depend_hash = NULL;
    task->icv = parent->icv;
    task->priority = 0;
    task->in_tied_task = parent->in_tied_task;
    task->final_task = false;
    task->copy_ctors_done = false;
    task->deferred_p = true;
    task->detach_team = gomp_thread()->ts.team;
}

struct gomp_task *gomp_task_promote (struct gomp_task *old)
{
    struct gomp_task *parent = old->parent;
    inv_assert(old->own.memory == GOMP_MEMORY_STACK);
    if (parent->own.memory == GOMP_MEMORY_STACK)
        parent = gomp_task_promote(parent);
    struct gomp_task *task = gomp_task_alloc(0, 1);
    gomp_task_init_deferred(task, parent);
    parent->own.created++;
    task->own.mark = old->own.mark;
    task->taskgroup = old->taskgroup;
    for (struct gomp_taskgroup *g = task->taskgroup; g && g->own.owner == old; g = g->prev)
        g->own.owner = task;
    task->icv = old->icv;
    task->kind = old->kind;
    task->priority = old->priority;
    task->final_task = old->final_task;
    task->in_tied_task = old->in_tied_task;
    task->copy_ctors_done = old->copy_ctors_done;
    task->completion_sem = old->completion_sem;
    task->deferred_p = old->deferred_p;
    return task;
}

/* A task may create more children in hours, without ever waiting, than the two counters in `done`
 * can count.  So children that are known to be over are taken off. */
static void __attribute__((noinline)) make_room_to_count (struct gomp_task *parent)
{
    parent->own.created -= parent->own.own_done;
    parent->own.own_done = 0;
    uint64_t done = atomic_load_explicit(&parent->own.done, memory_order_acquire);
    uint32_t both = gomp_done_bodies(done);
    if (gomp_done_released(done) < both)
        both = gomp_done_released(done);
    atomic_fetch_sub(&parent->own.done, both * (GOMP_DONE_BODY + GOMP_DONE_RELEASED));
    inv_assert(parent->own.created >= both);
    parent->own.created -= both;
}

void gomp_task_count (struct gomp_task_slot *slot, struct gomp_task *parent)
{
    if (__builtin_expect(parent->own.created >= 1u << 28, 0))
        make_room_to_count(parent);
    inv_assert(parent->own.created >= parent->own.own_done);
    parent->own.created++;
    /* only this thread writes it, so the addition need not be atomic */
    uint64_t n = atomic_load_explicit(&slot->created, memory_order_relaxed);
    atomic_store_explicit(&slot->created, n + 1, memory_order_relaxed);
}

/* --- waking */

void gomp_task_wake_parked (struct gomp_task *task)
{
    /* seq_cst: partner is sleep_for_descendants, which sets the bit and then looks again */
    if (!(atomic_load(&task->own.done) & GOMP_DONE_PARKED))
        return;
    if (atomic_fetch_and(&task->own.done, ~GOMP_DONE_PARKED) & GOMP_DONE_PARKED)
        gomp_unpark((int *)&task->own.done, 1);
}

void gomp_tasks_signal (struct gomp_team_tasks *tasks, int count)
{
    atomic_fetch_add(&tasks->signal, 1);
    gomp_unpark((int *)&tasks->signal, count);
}

/* Wake a team thread that may run any task. */
static void wake_any (struct gomp_team *team)
{
    struct gomp_region *region = team->barrier.region;
    if (!region || !gomp_region_call_helpers(region, 1))
        gomp_tasks_signal(gomp_team_tasks(team), 1);
}

void gomp_tasks_wake_all (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    if (team->barrier.region)
        gomp_region_call_helpers(team->barrier.region, INT_MAX);
    if ((uint32_t)atomic_load(&tasks->asleep) > 0)
        gomp_tasks_signal(tasks, INT_MAX);
}

/* Does a thread sleep that may run any task?  seq_cst, after a task was queued; partners are
 * sleep_at_barrier, wait_for_end and helper_sleep, which say that they sleep before they look for
 * tasks. */
static inline bool any_asleep (struct gomp_team *team)
{
    struct gomp_region *region = team->barrier.region;
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    return (uint32_t)atomic_load(&tasks->asleep) > 0 ||
           (region && (atomic_load(&region->master_waits) ||
                       atomic_load(&region->sleeping_helpers) > 0));
}

/* A thread sleeps and a child of `parent` has been queued. */
static void __attribute__((noinline)) wake_for (struct gomp_team *team, struct gomp_task *parent)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    /* seq_cst: partner is spin_for_task, which says that it looks no more, and then looks once
     * more */
    uint64_t hungry = atomic_load(&tasks->hungry);
    if (any_asleep(team)) {
        /* A thread that looks for tasks finds this one, and wakes the next thread if there are more. */
        if ((uint32_t)hungry == 0)
            wake_any(team);
        return;
    }
    for (; parent; parent = parent->own.depth > 0 ? parent->parent : NULL)
        if (atomic_load(&parent->own.done) & GOMP_DONE_PARKED) {
            gomp_task_wake_parked(parent);
            return;
        }
}

/* The first task of a region: from now on its barriers look for tasks.  Threads that sleep in one
 * already are woken.  They will sleep on `signal` of gomp_team_tasks, where wake_any finds them. */
static void __attribute__((noinline)) first_task (gomp_barrier_t *bar)
{
    __atomic_fetch_or(&bar->generation, BAR_TASKS, __ATOMIC_SEQ_CST);
    gomp_unpark((int *)&bar->generation, INT_MAX);
}

/* Before and after a task is queued. */
static inline void before_queueing (struct gomp_team *team)
{
    if (__builtin_expect(!(gomp_barrier_flags(&team->barrier) & BAR_TASKS), 0))
        first_task(&team->barrier);
}

static inline void after_queueing (struct gomp_team *team, struct gomp_task *parent)
{
    struct gomp_region *region = team->barrier.region;
    if (region)
        gomp_region_tasks_queued(region);
    /* seq_cst: after the exchange of gomp_queue_push, or the addition of
     * gomp_shared_queue_insert; partners are sleep_for_descendants, and those of any_asleep. */
    if (__builtin_expect(atomic_load(&gomp_team_tasks(team)->asleep) != 0 || any_asleep(team), 0))
        wake_for(team, parent);
}

/* --- queueing */

/* If nothing is stolen for long, fewer queued tasks are enough. */
static void adapt_threshold (struct gomp_task_slot *slot)
{
    int64_t top = atomic_load_explicit(&slot->queue.top, memory_order_relaxed);
    if (top != slot->old_top) {
        slot->old_top = top;
        slot->calm = 0;
    } else if (++slot->calm >= CALM_TASKS) {
        slot->calm = 0;
        if (slot->threshold > GOMP_THRESHOLD_LEAST)
            slot->threshold /= 2;
        inv_assert(slot->threshold >= GOMP_THRESHOLD_LEAST / 2);
    }
}

void gomp_task_schedule (struct gomp_task_slot *slot, struct gomp_task *task)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_task *parent = task->parent;
    before_queueing(team);
    task->kind = GOMP_TASK_WAITING;
    if (__builtin_expect(task->priority > 0, 0))
        gomp_shared_queue_insert(&gomp_team_tasks(team)->shared, task);
    else {
        adapt_threshold(slot);
        if (!gomp_queue_push(&slot->queue, task)) {
            gomp_task_execute(slot, task);
            return;
        }
    }
    after_queueing(team, parent);
}

void gomp_task_schedule_shared (struct gomp_team *team, struct gomp_task *task)
{
    struct gomp_task *parent = task->parent;
    before_queueing(team);
    task->kind = GOMP_TASK_WAITING;
    gomp_shared_queue_insert(&gomp_team_tasks_make(team)->shared, task);
    after_queueing(team, parent);
}

void gomp_tasks_schedule (struct gomp_team *team, struct gomp_task_slot *slot, struct gomp_task *first)
{
    for (struct gomp_task *next, *task = first; task; task = next) {
        next = task->own.link;
        if (slot)
            gomp_task_schedule(slot, task);
        else
            gomp_task_schedule_shared(team, task);
    }
}

/* --- finding */

/* Is the task a descendant of root?  If another thread takes the task meanwhile it may be gone.
 * Then the answer does not matter, but no pointer may be followed out of the pool.  Parents at
 * depth 1 and above are in the pool; those of tasks at depth 0, implicit ones, are not looked
 * at. */
static bool is_descendant (const void *entry, const void *root_task)
{
    const struct gomp_task *task = entry, *root = root_task;
    uint32_t depth = __atomic_load_n(&task->own.depth, __ATOMIC_RELAXED);
    for (; depth > root->own.depth; depth--) {
        const struct gomp_task *parent = __atomic_load_n(&task->parent, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&task->own.depth, __ATOMIC_RELAXED) != depth)
            return false; /* another task's memory now */
        if (depth == root->own.depth + 1)
            return parent == root;
        task = parent;
    }
    return false;
}

/* May there be a task in the shared queue for a thread that waits in root?  NULL: any task. */
static inline bool shared_in_sight (struct gomp_team_tasks *tasks, const struct gomp_task *root)
{
    return __builtin_expect(
               atomic_load_explicit(&tasks->shared.count, memory_order_relaxed) > 0, 0) &&
           (!root || (root->own.memory != GOMP_MEMORY_STACK &&
                      gomp_task_has_trait(&root->own, GOMP_TRAIT_SHARED)));
}

/* A task of the queue, which another thread may take meanwhile, and one that this thread has. */
static bool is_sibling (const void *entry, const void *first)
{
    const struct gomp_task *task = entry;
    return __atomic_load_n(&task->parent, __ATOMIC_RELAXED) ==
           ((const struct gomp_task *)first)->parent;
}

/* Takes more tasks of the queue from which the first one was stolen, up to `most` with it.  Returns
 * how many.  Siblings only: a thread that waits for them finds them as it found them before, since
 * it looks at the oldest task of a queue. */
static unsigned steal_siblings (struct gomp_task_slot *self, struct gomp_queue *from,
                                const struct gomp_task *first, unsigned most)
{
    unsigned count = 1;
    struct gomp_task *task;
    for (int64_t left = gomp_queue_size(from) / 2; left > 0 && count < most; left--) {
        if (!(task = gomp_queue_steal(from, is_sibling, first)))
            break;
        if (!gomp_queue_push(&self->queue, task))
            gomp_task_execute(self, task);
        count++;
    }
    /* A thread that slept while a task was in no queue has missed it. */
    if (count > 1)
        after_queueing(gomp_thread()->ts.team, first->parent);
    return count;
}

static struct gomp_task *steal_task (struct gomp_team_tasks *tasks, struct gomp_task_slot *self,
                                     const struct gomp_task *root, struct gomp_queue **from)
{
    unsigned used = atomic_load_explicit(&tasks->used, memory_order_acquire);
    self->random = self->random * 1664525u + 1013904223u;
    unsigned first = used > 1 ? (self->random >> 8) % used : 0;
    for (unsigned i = 0; i < used; i++) {
        unsigned at = first + i < used ? first + i : first + i - used;
        struct gomp_task_slot *victim = tasks->used_slot[at];
        struct gomp_task *task;
        *from = &victim->queue;
        if (victim != self &&
            (task = gomp_queue_steal(*from, root ? is_descendant : NULL, root)))
            return task;
    }
    return NULL;
}

/* A thread that may run any task, and whose queue is empty, steals one or several. */
static struct gomp_task *steal_batch (struct gomp_team_tasks *tasks, struct gomp_task_slot *self)
{
    struct gomp_queue *from;
    gomp_theft_look(&self->theft);
    struct gomp_task *task = steal_task(tasks, self, NULL, &from);
    if (!task)
        return NULL;
    void (*fn) (void *) = task->fn;
    unsigned most = gomp_theft_most(&self->theft, fn), count = 1;
    if (most > 1)
        count = steal_siblings(self, from, task, most);
    gomp_theft_note(&self->theft, fn, count);
    return task;
}

static struct gomp_task *shared_take (struct gomp_team_tasks *tasks, const struct gomp_task *root,
                                      unsigned least)
{
    return gomp_shared_queue_take(&tasks->shared, root ? is_descendant : NULL, root, least);
}

/* Finds a task to run: of the shared queue first, then the newest of the thread's own queue, then
 * the oldest of other queues.  root: the task that waits, of which only descendants may run; NULL:
 * any task. */
static struct gomp_task *find_task (struct gomp_team_tasks *tasks, struct gomp_task_slot *slot,
                                    const struct gomp_task *root)
{
    struct gomp_task *task;
    if (shared_in_sight(tasks, root) && (task = shared_take(tasks, root, 0)))
        return task;
    if ((task = gomp_queue_pop(&slot->queue, root ? root->own.mark : INT64_MIN)))
        return task;
    struct gomp_queue *from;
    return root ? steal_task(tasks, slot, root, &from) : steal_batch(tasks, slot);
}

struct gomp_task *gomp_tasks_find (struct gomp_thread *thr, struct gomp_task *root)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(thr->ts.team);
    if (!tasks || atomic_load_explicit(&tasks->used, memory_order_relaxed) == 0)
        return NULL;
    return find_task(tasks, gomp_task_slot(thr), root);
}

struct gomp_task *gomp_tasks_find_urgent (struct gomp_thread *thr, int priority)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(thr->ts.team);
    if (!tasks || !shared_in_sight(tasks, thr->task))
        return NULL;
    return shared_take(tasks, thr->task, gomp_priority_level(priority) + 1);
}

/* Steals from the own queue, too.  Only descendants may be popped: entries below the current task's
 * mark belong to suspended tasks on the stack, whose marks would then lie above the queue's bottom
 * for ever.  Stealing the oldest entry leaves the bottom where it is. */
struct gomp_task *gomp_tasks_find_any (struct gomp_thread *thr)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(thr->ts.team);
    if (!tasks || !gomp_tasks_visible(thr->ts.team))
        return NULL;
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    struct gomp_task *task = find_task(tasks, slot, thr->task);
    if (task || (task = shared_take(tasks, NULL, 0)))
        return task;
    struct gomp_queue *from;
    task = gomp_queue_steal(&slot->queue, NULL, NULL);
    return task ? task : steal_task(tasks, slot, NULL, &from);
}

/* --- running and completing */

bool gomp_task_cancelled (struct gomp_team *team, struct gomp_taskgroup *group)
{
    if (gomp_team_barrier_cancelled(&team->barrier))
        return true;
    return group &&
           (group->cancelled || (group->workshare && group->prev && group->prev->cancelled));
}

/* Tell a parent that children are over.  After this the parent may be gone, unless it has children
 * that are not released.  True when the parent has ended and this released its last child. */
static bool notify_parent (struct gomp_task *parent, uint64_t what)
{
    uint64_t now = atomic_fetch_add(&parent->own.done, what) + what;
    if ((what & GOMP_DONE_BODY) && gomp_done_bodies(now) == GOMP_DONE_WAKE)
        gomp_unpark((int *)&parent->own.done, 1); /* a key only: it may be gone */
    return (what & GOMP_DONE_RELEASED) && gomp_done_released(now) == GOMP_DONE_ENDED;
}

/* Is the task, which has ended, to be released by the caller?  Else its last child releases it. */
static bool no_child_left (struct gomp_task *task)
{
    inv_assert(task->own.created >= task->own.own_done);
    uint32_t others = task->own.created - task->own.own_done;
    if (others == 0)
        return true;
    uint64_t bias = (GOMP_DONE_ENDED - others) * GOMP_DONE_RELEASED;
    uint64_t now = atomic_fetch_add(&task->own.done, bias) + bias;
    inv_assert(gomp_done_released(now) <= GOMP_DONE_ENDED);
    return gomp_done_released(now) == GOMP_DONE_ENDED;
}

/* A task that has ended is kept for its children, and so are its ancestors: in a chain, where each
 * task creates the next, every task would be kept.  So a task that starts replaces a parent that
 * has ended and has no other child, and becomes the child of that parent's parent.  No other thread
 * looks at such a parent: its own thread has left it, and no walk from a descendant up to its
 * ancestors comes by, since the task that starts has no children yet. */
static void __attribute__((noinline)) replace_ended_parents (struct gomp_task *task)
{
    struct gomp_task *parent = task->parent;
    /* acquire: partner is no_child_left, by which the parent's thread has left it */
    while (parent->own.depth > 0 &&
           gomp_done_released(atomic_load_explicit(&parent->own.done, memory_order_acquire)) ==
               GOMP_DONE_ENDED - 1) {
        struct gomp_task *ended = parent;
        inv_assert(ended != gomp_thread()->task && task->own.created == 0);
        parent = ended->parent;
        set_parent(task, parent);
        gomp_task_add_trait(&task->own, GOMP_TRAIT_REPLACES);
        gomp_task_release(ended);
    }
}

void gomp_task_finish (struct gomp_task *task, struct gomp_task *waiting)
{
    struct gomp_task *parent = task->parent;
    uint64_t body = gomp_task_has_trait(&task->own, GOMP_TRAIT_REPLACES) ? 0 : GOMP_DONE_BODY;
    uint64_t what = body + GOMP_DONE_RELEASED;
    uint32_t others = task->own.created - task->own.own_done;
    if (others > 0 &&
        gomp_done_released(atomic_load_explicit(&task->own.done, memory_order_acquire)) != others) {
        if (body)
            notify_parent(parent, body);
        what = GOMP_DONE_RELEASED;
        if (!no_child_left(task))
            return;
    }
    gomp_task_release(task);
    if (parent == waiting && what != GOMP_DONE_RELEASED) {
        inv_assert(parent->own.own_done < parent->own.created);
        parent->own.own_done++; /* only this thread writes it: the parent is suspended here */
        return;
    }
    while (notify_parent(parent, what)) {
        task = parent;
        parent = task->parent;
        gomp_task_release(task);
        what = GOMP_DONE_RELEASED;
    }
}

void gomp_task_complete (struct gomp_team *team, struct gomp_task_slot *slot,
                         struct gomp_task *task)
{
    if (task->own.node)
        gomp_tasks_schedule(team, slot, gomp_deps_leave(task));
    if (task->depend_hash)
        gomp_deps_free(task);
    gomp_taskgroup_leave(task->taskgroup);
    gomp_task_finish(task, slot ? gomp_thread()->task : NULL);
    /* This comes last: once the sums are equal the team may end.  release, see
     * gomp_tasks_outstanding. */
    if (slot) {
        uint64_t n = atomic_load_explicit(&slot->completed, memory_order_relaxed);
        atomic_store_explicit(&slot->completed, n + 1, memory_order_release);
    } else
        atomic_fetch_add(&gomp_team_tasks(team)->completed_elsewhere, 1);
}

/* The body of a task has ended; is it complete? */
static bool body_ended (struct gomp_task *task)
{
    uint8_t running = GOMP_DETACH_RUNNING;
    if (__builtin_expect(
            atomic_load_explicit(&task->own.detach, memory_order_relaxed) == GOMP_DETACH_NONE, 1))
        return true;
    /* acq_rel: partner is omp_fulfill_event; the thread that comes second completes the task */
    return !atomic_compare_exchange_strong(&task->own.detach, &running, GOMP_DETACH_ENDED);
}

void gomp_task_execute (struct gomp_task_slot *slot, struct gomp_task *task)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *waiting = thr->task;
    struct gomp_team *team = thr->ts.team;
    inv_assert(task != waiting && slot == gomp_task_slot_made(thr));
    if (task->copy_ctors_done || !gomp_task_discarded(team, task->taskgroup)) {
        task->kind = GOMP_TASK_TIED;
        task->own.mark = gomp_queue_mark(&slot->queue);
        if (__builtin_expect(task->own.depth >= LONG_CHAIN, 0))
            replace_ended_parents(task);
        thr->task = task;
        if (__builtin_expect(task->fn != NULL, 1))
            task->fn(task->fn_data);
        else if (gomp_target_task_run(team, task)) {
            thr->task = waiting;
            return; /* the device runs it, and completes it later */
        }
        thr->task = waiting;
        if (!body_ended(task))
            return;
    }
    gomp_task_complete(team, slot, task);
    inv_triggers_test(INV_AT_TASK);
}

void __attribute__((noinline)) gomp_tasks_triggered (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team_tasks *tasks = thr->ts.team ? gomp_team_tasks(thr->ts.team) : NULL;
    struct gomp_task *task;
    inv_triggers_look(INV_AT_TASK);
    while (tasks && shared_in_sight(tasks, thr->task) &&
           (task = shared_take(tasks, thr->task, 0)))
        gomp_task_execute(gomp_task_slot(thr), task);
}

/* --- waiting */

struct wait {
    struct gomp_team *team;
    struct gomp_team_tasks *tasks;
    struct gomp_task_slot *slot;
    struct gomp_task *root; /* the task that waits: its descendants may run; NULL: any task may */
    bool (*done) (const struct wait *);
    struct gomp_task *found;
    unsigned pauses, until_look;
    bool give_up; /* other work needs the core */
    /* for a task that waits */
    bool (*condition) (const void *);
    const void *arg;
    uint64_t bias;
    /* for a thread that has no implicit task */
    bool (*over) (void *);
    void *over_arg;
    bool (*enough) (void);
    /* for a barrier */
    gomp_barrier_t *bar;
    unsigned base;
    bool cancellable;
};

static uint64_t hunger_of (const struct wait *w)
{
    return w->root ? GOMP_DESCENDANTS : GOMP_ANY;
}

/* Does other work need the core more than this wait does?  Threads and implicit tasks that do are
 * found by gomp_spin_until.  A thread that may execute descendants only leaves other explicit tasks
 * to other threads. */
static bool core_needed (const struct wait *w)
{
    /* The thread tests the requests that are pending, so it matters whether there are tasks now. */
    if (inv_triggers_pending())
        return w->root && (gomp_threads_waiting() || gomp_tasks_visible(w->team));
    return w->root && gomp_work_waiting();
}

static bool wait_ready (void *arg)
{
    struct wait *w = arg;
    if (--w->until_look > 0)
        return false;
    w->until_look = w->pauses;
    if (inv_triggers_pending()) /* then a task may come at any time, and from this thread */
        w->until_look = w->pauses = LOOK_LEAST;
    else if (w->pauses < LOOK_MOST)
        w->pauses *= 2;
    if (w->done(w))
        return true;
    /* No task now: while one ran here the carrier's loop, which can go on, could not. */
    if (gomp_context_is_in_the_way())
        return w->give_up = true;
    if ((w->found = find_task(w->tasks, w->slot, w->root)))
        return true;
    return w->give_up = inv_managed() && core_needed(w);
}

/* Nothing to run: look for something for a while.  False: it is time to sleep. */
static bool spin_for_task (struct wait *w)
{
    w->found = NULL;
    if (gomp_in_context() && gomp_context_leaves_work()) {
        gomp_idle_skipped();
        return false;
    }
    w->pauses = w->until_look = LOOK_LEAST;
    w->give_up = false;
    atomic_fetch_add_explicit(&w->tasks->hungry, hunger_of(w), memory_order_relaxed);
    bool ready = gomp_spin_until(wait_ready, w);
    /* seq_cst: a thread that queues a task and sees that this one looks for tasks wakes none
     * (wake_for).  Then the last look before the sleep, or the look below, finds the task. */
    uint64_t before = atomic_fetch_sub(&w->tasks->hungry, hunger_of(w));
    inv_assert(before >= hunger_of(w));
    if (!w->found)
        return ready && !w->give_up;
    /* A thread that queued a task while this thread looked has woken none. */
    if (__builtin_expect(any_asleep(w->team), 0) && gomp_tasks_visible(w->team))
        wake_any(w->team);
    return true;
}

/* Run w->found, if any.  A scheduling point afterwards: the core may be asked back. */
static void run_found (struct wait *w)
{
    if (!w->found)
        return;
    gomp_task_execute(w->slot, w->found);
    w->found = NULL;
    if (inv_managed())
        gomp_hold_checkpoint();
}

/* The current task sleeps until its condition may have changed, or a descendant is queued. */
static void sleep_for_descendants (struct wait *w)
{
    _Atomic uint64_t *done = &w->root->own.done;
    uint64_t add = GOMP_DONE_PARKED + w->bias;
    atomic_fetch_add(&w->tasks->asleep, GOMP_DESCENDANTS);
    /* seq_cst: partners are gomp_task_wake_parked and notify_parent */
    uint64_t now = atomic_fetch_add(done, add) + add;
    /* What follows looks by weaker loads: at the group, the node, and all queues.  Partners are the
     * seq_cst changes of those, after which the changing thread looks whether this one sleeps:
     * after_queueing, gomp_taskgroup_leave, finish_node in taskdeps.c. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!w->done(w) && !(w->found = find_task(w->tasks, w->slot, w->root)))
        gomp_park((int *)done, (int)(uint32_t)now);
    atomic_fetch_and(done, ~GOMP_DONE_PARKED);
    atomic_fetch_sub(done, w->bias);
    uint64_t before = atomic_fetch_sub(&w->tasks->asleep, GOMP_DESCENDANTS);
    inv_assert(before >= GOMP_DESCENDANTS);
}

static bool task_wait_done (const struct wait *w)
{
    return w->condition(w->arg);
}

void gomp_task_wait (enum gomp_wait_for what, bool (*done) (const void *), const void *arg)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    struct wait w = {.team = thr->ts.team,
                     .tasks = gomp_team_tasks(thr->ts.team),
                     .slot = slot,
                     .root = thr->task,
                     .done = task_wait_done,
                     .condition = done,
                     .arg = arg};
    while (!done(arg)) {
        gomp_context_make_way();
        if ((w.found = find_task(w.tasks, slot, w.root)) || spin_for_task(&w)) {
            run_found(&w);
            continue;
        }
        if (gomp_context_is_in_the_way())
            continue;
        if (what == GOMP_WAIT_CHILDREN)
            w.bias = GOMP_DONE_WAKE - (w.root->own.created - w.root->own.own_done);
        sleep_for_descendants(&w);
        w.bias = 0;
        run_found(&w);
    }
}

/* Opens the barrier if all have arrived and the last task is complete.  True: it has done so. */
static bool try_open (const struct wait *w)
{
    gomp_barrier_t *bar = w->bar;
    unsigned now = gomp_barrier_flags(bar);
    if ((now & -BAR_INCR) != w->base || !(now & BAR_WAITING_FOR_TASK) ||
        gomp_tasks_outstanding(w->team))
        return false;
    gomp_barrier_open(bar, now);
    return true;
}

static bool barrier_done (const struct wait *w)
{
    unsigned now = gomp_barrier_flags(w->bar);
    return (now & -BAR_INCR) != w->base || (w->cancellable && (now & BAR_CANCELLED)) ||
           try_open(w);
}

static void sleep_at_barrier (struct wait *w)
{
    struct gomp_team_tasks *tasks = w->tasks;
    struct gomp_region *region = w->bar->region;
    /* seq_cst: partners are gomp_queue_push and gomp_barrier_open */
    atomic_fetch_add(&tasks->asleep, GOMP_ANY);
    if (region)
        atomic_fetch_add(&region->barrier_sleepers, 1);
    int signal = atomic_load(&tasks->signal);
    /* What follows looks by weaker loads, at the generation and at all queues. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!w->done(w) && !(w->found = find_task(tasks, w->slot, NULL)))
        gomp_park((int *)&tasks->signal, signal);
    unsigned sleepers = region ? atomic_fetch_sub(&region->barrier_sleepers, 1) : 1;
    uint64_t before = atomic_fetch_sub(&tasks->asleep, GOMP_ANY);
    inv_assert(sleepers > 0 && (uint32_t)before > 0);
}

/* No task is left, and implicit tasks have not arrived: some may not have been started yet. */
static void wait_for_arrivals (gomp_barrier_t *bar, unsigned base)
{
    unsigned now = gomp_barrier_flags(bar);
    if ((now & -BAR_INCR) == base)
        gomp_carrier_run_unarrived(bar->region, (int *)&bar->generation, (int)now);
}

void gomp_tasks_at_barrier (gomp_barrier_t *bar, unsigned base, bool cancellable)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    struct wait w = {.team = thr->ts.team,
                     .tasks = gomp_team_tasks(thr->ts.team),
                     .slot = slot,
                     .done = barrier_done,
                     .bar = bar,
                     .base = base,
                     .cancellable = cancellable};
    while (!barrier_done(&w)) {
        gomp_context_make_way();
        if ((w.found = find_task(w.tasks, slot, NULL)) == NULL) {
            if (bar->region)
                gomp_region_no_tasks(bar->region);
            if (!gomp_tasks_outstanding(w.team))
                wait_for_arrivals(bar, base);
            if (!spin_for_task(&w) && !gomp_context_is_in_the_way())
                sleep_at_barrier(&w);
        }
        run_found(&w);
    }
}

bool gomp_tasks_run (struct gomp_team *team, bool (*enough) (void))
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task;
    bool ran = false;
    while (!enough() && (task = gomp_tasks_find(thr, NULL))) {
        gomp_task_execute(gomp_task_slot(thr), task);
        ran = true;
    }
    if (!ran && team->barrier.region)
        gomp_region_no_tasks(team->barrier.region);
    return ran;
}

/* --- waiting without an implicit task */

static bool idle_done (const struct wait *w)
{
    return w->over(w->over_arg);
}

static struct wait idle_wait (struct gomp_team *team, bool (*done) (const struct wait *))
{
    struct gomp_task_slot *slot = gomp_task_slot(gomp_thread());
    return (struct wait){.team = team,
                         .tasks = gomp_team_tasks(team),
                         .slot = slot,
                         .done = done,
                         .bar = &team->barrier,
                         .base = gomp_barrier_flags(&team->barrier) & -BAR_INCR};
}

bool gomp_tasks_idle (struct gomp_team *team, bool (*over) (void *), void *arg)
{
    struct wait w = idle_wait(team, idle_done);
    w.over = over;
    w.over_arg = arg;
    bool ready = spin_for_task(&w);
    run_found(&w);
    return ready;
}

static bool nothing_left (const struct wait *w)
{
    return try_open(w) || w->enough() || !gomp_tasks_outstanding(w->team);
}

void gomp_tasks_help (struct gomp_team *team, bool (*enough) (void))
{
    if (!gomp_team_tasks(team))
        return;
    struct wait w = idle_wait(team, nothing_left);
    w.enough = enough;
    do {
        gomp_tasks_run(team, enough);
        w.base = gomp_barrier_flags(w.bar) & -BAR_INCR;
        if (nothing_left(&w) || !spin_for_task(&w))
            break;
        if (w.found)
            gomp_task_execute(w.slot, w.found);
    } while (!enough());
    gomp_region_no_tasks(team->barrier.region);
}
