/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * task.c - explicit tasks: what compiled code calls to create one and to wait for its children.
 * Replaces upstream's task.c; tasks.h has the idea.
 */
#include "wait.h"
#include "cores.h"
#include "points.h"
#include "process.h"
#include "tasks.h"
#include <string.h>

enum {
    CHECKPOINT_EVERY = 32, /* tasks that run at once between two looks whether the core is asked
                              back */
    MOST_CHILDREN = 8192,  /* unfinished ones of a task, before it works on them */
    MOST_URGENT = 8192,    /* tasks with a priority that are queued, of a team */
    MOST_NESTED = 64,      /* tasks that run at once, each within the one before; a power of two */
};

/* Clauses that may forbid that a task runs at once; few tasks have one. */
#define WITH_MORE (GOMP_TASK_FLAG_DETACH | GOMP_TASK_FLAG_DEPEND | GOMP_TASK_FLAG_PRIORITY)

/* --- tasks as such */

/* An implicit task, or one made by hand (target.c). */
void gomp_init_task (struct gomp_task *task, struct gomp_task *parent, struct gomp_task_icv *icv)
{
    memset(&task->own, 0, sizeof task->own);
    task->own.memory = GOMP_MEMORY_IMPLICIT;
    task->own.mark = INT64_MIN;
    task->parent = parent;
    task->taskgroup = NULL;
    task->depend_hash = NULL;
    task->completion_sem = NULL;
    task->deferred_p = false;
    task->icv = *icv;
    task->kind = GOMP_TASK_IMPLICIT;
    task->in_tied_task = false;
    task->final_task = false;
    task->copy_ctors_done = false;
}

void gomp_end_task (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task = thr->task;
    gomp_deps_free(task);
    thr->task = task->parent;
}

/* --- a task that runs at once */

/* What a task on the stack starts from.  Only what may be looked at: most tasks are as short as a
 * call. */
static inline void init_undeferred (struct gomp_task *task, struct gomp_task *parent,
                                    unsigned flags)
{
    atomic_init(&task->own.done, 0);
    task->own.created = task->own.own_done = 0;
    task->own.memory = GOMP_MEMORY_STACK;
    atomic_init(&task->own.detach, GOMP_DETACH_NONE);
    task->own.node = NULL;
    task->parent = parent;
    task->depend_hash = NULL;
    task->completion_sem = NULL;
    task->deferred_p = false;
    task->kind = GOMP_TASK_UNDEFERRED;
    task->copy_ctors_done = false;
    task->priority = 0;
    task->final_task = (flags & GOMP_TASK_FLAG_FINAL) != 0;
    if (__builtin_expect(parent != NULL, 1)) {
        task->own.depth = parent->own.depth + 1;
        task->taskgroup = parent->taskgroup;
        task->in_tied_task = parent->in_tied_task;
        task->final_task |= parent->final_task;
        task->icv = parent->icv;
    } else {
        task->own.depth = 1;
        task->taskgroup = NULL;
        task->in_tied_task = false;
        task->icv = *gomp_default_icv();
    }
}

/* Ends a task that ran on the caller's stack, but has queued children and so moved to the heap. */
static void __attribute__((noinline)) end_promoted (struct gomp_thread *thr)
{
    struct gomp_task *task = thr->task, *parent = task->parent;
    thr->task = parent;
    if (task->depend_hash)
        gomp_deps_free(task);
    gomp_task_finish(task, parent);
}

static inline void end_undeferred (struct gomp_thread *thr, struct gomp_task *task)
{
    if (__builtin_expect(thr->task == task, 1))
        thr->task = task->parent;
    else
        end_promoted(thr);
}

static void __attribute__((noinline)) call_with_copy (void (*fn) (void *), void *data,
                                                      void (*cpyfn) (void *, void *),
                                                      long arg_size, long arg_align)
{
    char buffer[arg_size + arg_align - 1];
    uintptr_t at = ((uintptr_t)buffer + (size_t)arg_align - 1) & ~((uintptr_t)arg_align - 1);
    cpyfn((void *)at, data);
    fn((void *)at);
}

/* With a detach clause the construct lasts until the event is fulfilled. */
static void __attribute__((noinline))
run_undeferred_detached (void (*fn) (void *), void *data, void (*cpyfn) (void *, void *),
                         long arg_size, long arg_align, unsigned flags, void *detach)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task task;
    gomp_sem_t completion;
    init_undeferred(&task, thr->task, flags);
    task.own.mark = thr->ts.team ? gomp_queue_mark(&gomp_task_slot(thr)->queue) : 0;
    gomp_sem_init(&completion, 0);
    task.completion_sem = &completion;
    *(void **)detach = &task;
    if (data)
        *(void **)data = &task;
    thr->task = &task;
    if (cpyfn)
        call_with_copy(fn, data, cpyfn, arg_size, arg_align);
    else
        fn(data);
    gomp_sem_wait(&completion);
    gomp_sem_destroy(&completion);
    end_undeferred(thr, &task);
}

static inline void __attribute__((always_inline))
run_on_stack (struct gomp_thread *thr, struct gomp_task_slot *slot, void (*fn) (void *), void *data,
              void (*cpyfn) (void *, void *), long arg_size, long arg_align, unsigned flags)
{
    struct gomp_task task;
    init_undeferred(&task, thr->task, flags);
    /* Without a queue: all that will ever be in it is queued by this task or later. */
    task.own.mark = slot ? gomp_queue_mark(&slot->queue) : INT64_MIN;
    thr->task = &task;
    if (__builtin_expect(cpyfn != NULL, 0))
        call_with_copy(fn, data, cpyfn, arg_size, arg_align);
    else
        fn(data);
    end_undeferred(thr, &task);
}

static void __attribute__((noinline))
run_undeferred (struct gomp_thread *thr, struct gomp_task_slot *slot, void (*fn) (void *), void *data,
                void (*cpyfn) (void *, void *), long arg_size, long arg_align, unsigned flags)
{
    run_on_stack(thr, slot, fn, data, cpyfn, arg_size, arg_align, flags);
}

void gomp_task_run_undeferred (void (*fn) (void *), void *data, unsigned flags)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task_slot *slot = thr->ts.team ? gomp_task_slot_made(thr) : NULL;
    run_undeferred(thr, slot, fn, data, NULL, 0, 1, flags);
}

/* --- whether to run it at once */

/* The cut-off: the queue holds enough for threads that may come to steal. */
static inline bool enough_queued (struct gomp_team *team, struct gomp_task_slot *slot)
{
    if (team->nthreads == 1)
        return true;
    if (__builtin_expect(slot == NULL, 0))
        return false;
    int64_t size = gomp_queue_size(&slot->queue);
    if (size < slot->threshold)
        return false;
    uint64_t hungry = atomic_load_explicit(&gomp_team_tasks(team)->hungry, memory_order_relaxed);
    return size >= (int64_t)((uint32_t)hungry + (hungry >> 32));
}

/* A task that runs at once needs its creator's stack.  A chain, each task of which creates the next
 * one, may have any length.  So one in so many is queued, and runs when those before it have
 * returned. */
static inline bool nests_deep (const struct gomp_task *parent)
{
    return parent->own.depth % MOST_NESTED == MOST_NESTED - 1;
}

/* The queue was full before a task ran at once, and is empty now: the task took too long for the
 * thieves, so more tasks are queued from now on.  (`hungry` does not tell that: thieves may sleep
 * by now, or their cores may have gone to another process.)  It was long enough to look whether the
 * core is asked back, too. */
static void __attribute__((noinline)) thieves_starved (struct gomp_team *team,
                                                       struct gomp_task_slot *slot)
{
    int64_t first = gomp_team_tasks(team)->threshold;
    int64_t twice = slot->threshold < GOMP_THRESHOLD_MOST / 2 ? 2 * slot->threshold
                                                             : GOMP_THRESHOLD_MOST;
    slot->threshold = twice > first ? twice : first;
    if (inv_managed())
        gomp_hold_checkpoint();
}

/* full: the task was run at once since the queue held enough. */
static inline void after_undeferred (struct gomp_team *team, struct gomp_task_slot *slot, bool full)
{
    if (__builtin_expect(full && gomp_queue_size(&slot->queue) <= 0 && team->nthreads > 1, 0))
        thieves_starved(team, slot);
    if (++slot->inlined % CHECKPOINT_EVERY == 0 && inv_managed())
        gomp_hold_checkpoint();
    if (inv_triggers_pending())
        gomp_tasks_triggered();
}

/* --- a task that is queued */

static int clamp_priority (int priority)
{
    return priority > gomp_max_task_priority_var ? gomp_max_task_priority_var
           : priority < 0                        ? 0
                                                 : priority;
}

/* Has the task a priority that counts?  OMP_MAX_TASK_PRIORITY is 0 unless the user sets it. */
static inline bool has_priority (unsigned flags, int priority)
{
    return (flags & GOMP_TASK_FLAG_PRIORITY) && clamp_priority(priority) > 0;
}

/* Each takes memory, and nothing else bounds them. */
static bool too_many_urgent (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(team);
    return tasks &&
           atomic_load_explicit(&tasks->shared.count, memory_order_relaxed) >= MOST_URGENT;
}

static inline bool urgent_queued (struct gomp_team *team)
{
    struct gomp_team_tasks *tasks;
    return __builtin_expect(gomp_max_task_priority_var > 0, 0) && (tasks = gomp_team_tasks(team)) &&
           atomic_load_explicit(&tasks->shared.count, memory_order_relaxed) > 0;
}

/* A child of the current task runs at once: descendants of higher priority come before it. */
static void __attribute__((noinline)) run_more_urgent (struct gomp_thread *thr, unsigned flags,
                                                       int priority)
{
    int own = flags & GOMP_TASK_FLAG_PRIORITY ? clamp_priority(priority) : 0;
    struct gomp_task *task;
    while ((task = gomp_tasks_find_urgent(thr, own)))
        gomp_task_execute(gomp_task_slot(thr), task);
}

/* A child of the current task, its arguments copied. */
static struct gomp_task *make_deferred (struct gomp_thread *thr, void (*fn) (void *), void *data,
                                        void (*cpyfn) (void *, void *), long arg_size,
                                        long arg_align, unsigned flags, void *detach)
{
    struct gomp_task *parent = thr->task;
    struct gomp_task *task = gomp_task_alloc((size_t)arg_size, (size_t)arg_align);
    gomp_task_init_deferred(task, parent);
    task->final_task = (flags & GOMP_TASK_FLAG_FINAL) != 0;
    if (flags & GOMP_TASK_FLAG_DETACH) {
        atomic_store_explicit(&task->own.detach, GOMP_DETACH_RUNNING, memory_order_relaxed);
        *(void **)detach = task;
        if (data)
            *(void **)data = task;
    }
    if (cpyfn) {
        thr->task = task;
        cpyfn(task->fn_data, data);
        thr->task = parent;
        task->copy_ctors_done = true;
    } else
        memcpy(task->fn_data, data, (size_t)arg_size);
    task->fn = fn;
    return task;
}

static void __attribute__((noinline))
create_deferred (struct gomp_thread *thr, void (*fn) (void *), void *data,
                 void (*cpyfn) (void *, void *), long arg_size, long arg_align, unsigned flags,
                 void **depend, int priority, void *detach)
{
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    if (thr->task->own.memory == GOMP_MEMORY_STACK)
        thr->task = gomp_task_promote(thr->task);
    struct gomp_task *task =
        make_deferred(thr, fn, data, cpyfn, arg_size, arg_align, flags, detach);
    if (flags & GOMP_TASK_FLAG_PRIORITY)
        task->priority = clamp_priority(priority);
    gomp_taskgroup_enter(task->taskgroup);
    gomp_task_count(slot, task->parent);
    struct gomp_task *others = NULL;
    if (!(flags & GOMP_TASK_FLAG_DEPEND) || gomp_deps_enter(thr->task, task, depend, &others))
        gomp_task_schedule(slot, task);
    else
        gomp_tasks_schedule(thr->ts.team, slot, others);
}

/* Has the task so many unfinished children that it should work on them before it makes more?  Those
 * that wait for predecessors are in no queue, so nothing else bounds them. */
static inline bool too_many_children (struct gomp_task *parent)
{
    uint32_t children = parent->own.created - parent->own.own_done;
    return __builtin_expect(children > MOST_CHILDREN, 0) &&
           children - gomp_done_bodies(
                          atomic_load_explicit(&parent->own.done, memory_order_relaxed)) >
               MOST_CHILDREN;
}

/* Has the task something that it could not have if it ran at once: a detach clause, or dependences
 * on unfinished siblings? */
static inline bool must_defer (struct gomp_task *parent, unsigned flags, void **depend)
{
    if (flags & GOMP_TASK_FLAG_DETACH)
        return true;
    return (flags & GOMP_TASK_FLAG_DEPEND) && parent->depend_hash &&
           !too_many_children(parent) && gomp_deps_pending(parent, depend);
}

/* Is a child of the current task to be queued, rather than run at once? */
static inline bool should_queue (struct gomp_team *team, struct gomp_task_slot *slot,
                                 struct gomp_task *parent, unsigned flags, void **depend,
                                 int priority)
{
    if (__builtin_expect(!(flags & WITH_MORE), 1))
        return !enough_queued(team, slot) || nests_deep(parent);
    bool enough = has_priority(flags, priority) ? too_many_urgent(team) : enough_queued(team, slot);
    return !enough || nests_deep(parent) || must_defer(parent, flags, depend);
}

/* Runs a task at once that could be queued, so it has no detach clause.  A function of its own, as
 * the next one, so that their callers save few registers. */
static void __attribute__((noinline))
run_after_urgent (struct gomp_thread *thr, void (*fn) (void *), void *data,
                  void (*cpyfn) (void *, void *), long arg_size, long arg_align, unsigned flags,
                  void **depend, int priority)
{
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    run_more_urgent(thr, flags, priority);
    if ((flags & GOMP_TASK_FLAG_DEPEND) && thr->task->depend_hash)
        gomp_task_maybe_wait_for_dependencies(depend);
    run_undeferred(thr, slot, fn, data, cpyfn, arg_size, arg_align, flags);
    after_undeferred(thr->ts.team, slot, true);
}

/* Runs a task at once in a team of one thread, where only tasks are queued that have to be.  A
 * function of its own, so that GOMP_task saves few registers. */
static void __attribute__((noinline)) run_alone (struct gomp_thread *thr, void (*fn) (void *), void *data,
                                                 unsigned flags)
{
    struct gomp_task_slot *slot = gomp_task_slot_made(thr);
    if (__builtin_expect(slot && urgent_queued(thr->ts.team), 0) && !thr->task->final_task) {
        run_after_urgent(thr, fn, data, NULL, 0, 1, flags, NULL, 0);
        return;
    }
    run_on_stack(thr, slot, fn, data, NULL, 0, 1, flags);
    if (slot)
        after_undeferred(thr->ts.team, slot, false);
}

/* Any other task: queues it, or runs it at once. */
static void __attribute__((noinline))
queue_or_run (void (*fn) (void *), void *data, void (*cpyfn) (void *, void *), long arg_size,
              long arg_align, bool if_clause, unsigned flags, void **depend, int priority,
              void *detach)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    struct gomp_task *parent = thr->task;
    struct gomp_task_slot *slot = NULL;
    bool may_queue = false;

    if (__builtin_expect(team != NULL, 1)) {
        if (gomp_task_discarded(team, parent->taskgroup))
            return;
        slot = gomp_task_slot_made(thr);
        may_queue = if_clause && !parent->final_task;
        if (__builtin_expect(may_queue, 1) &&
            should_queue(team, slot, parent, flags, depend, priority)) {
            create_deferred(thr, fn, data, cpyfn, arg_size, arg_align, flags, depend, priority,
                            detach);
            return;
        }
        if (may_queue && urgent_queued(team)) {
            run_after_urgent(thr, fn, data, cpyfn, arg_size, arg_align, flags, depend, priority);
            return;
        }
    }
    if ((flags & GOMP_TASK_FLAG_DEPEND) && parent && parent->depend_hash)
        gomp_task_maybe_wait_for_dependencies(depend);
    if (__builtin_expect(flags & GOMP_TASK_FLAG_DETACH, 0)) {
        run_undeferred_detached(fn, data, cpyfn, arg_size, arg_align, flags, detach);
        return;
    }
    run_undeferred(thr, slot, fn, data, cpyfn, arg_size, arg_align, flags);
    if (slot)
        after_undeferred(team, slot, may_queue);
}

/* The construct that compiled code calls; DEPEND is described in taskdeps.c. */
void GOMP_task (void (*fn) (void *), void *data, void (*cpyfn) (void *, void *), long arg_size,
                long arg_align, bool if_clause, unsigned flags, void **depend, int priority,
                void *detach)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    if (team && team->nthreads == 1 && !cpyfn && !(flags & WITH_MORE) && !gomp_cancel_var &&
        !nests_deep(thr->task))
        run_alone(thr, fn, data, flags);
    else {
        queue_or_run(fn, data, cpyfn, arg_size, arg_align, if_clause, flags, depend, priority, detach);
        /* Not a jump, for which the arguments would be written back to where they came from: programs of old
         * compilers pass fewer of them, and have data of their own in these places. */
        __asm__ volatile ("");
    }
}

ialias (GOMP_task)

/* --- waiting for children */

static bool children_done (const void *arg)
{
    const struct gomp_task *task = arg;
    uint32_t others = gomp_done_bodies(
        atomic_load_explicit(&((struct gomp_task *)task)->own.done, memory_order_acquire));
    return (others & GOMP_DONE_WAKE) || task->own.own_done + others == task->own.created;
}

void GOMP_taskwait (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task = thr->task;
    if (task == NULL || task->own.created == task->own.own_done || children_done(task))
        return;
    gomp_task_wait(GOMP_WAIT_CHILDREN, children_done, task);
}

void GOMP_taskyield (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    struct gomp_task *task;
    if (inv_triggers_pending())
        gomp_tasks_triggered();
    if (team && thr->task && (task = gomp_tasks_find(thr, thr->task)))
        gomp_task_execute(gomp_task_slot(thr), task);
    if (inv_managed() && gomp_work_waiting())
        gomp_yield_point();
}

int omp_in_final (void)
{
    struct gomp_thread *thr = gomp_thread();
    return thr->task && thr->task->final_task;
}

ialias (omp_in_final)

/* Since GCC 13: see newer.c.  While the firstprivate copies of a task are made, the task has its
 * depth, but no kind yet. */
int omp_in_explicit_task (void)
{
    struct gomp_task *task = gomp_thread()->task;
    return task && task->own.depth > 0;
}

ialias (omp_in_explicit_task)

/* --- events */

/* Completes a task from any thread, also of no team.  The task's team may end as soon as the task
 * counts as complete.  So the lock, which gomp_team_end takes as well, keeps the team until its
 * waiters have been woken. */
static void complete_from_anywhere (struct gomp_task *task)
{
    struct gomp_team *team = task->detach_team;
    gomp_mutex_lock(&team->task_lock);
    gomp_task_complete(team, NULL, task);
    if (!gomp_tasks_outstanding(team))
        gomp_tasks_wake_all(team);
    gomp_mutex_unlock(&team->task_lock);
    if (gomp_thread()->thread_pool == NULL && gomp_thread()->ts.team == NULL)
        gomp_pool_donate(); /* the end of such a thread is not noticed */
}

void omp_fulfill_event (omp_event_handle_t event)
{
    struct gomp_task *task = (struct gomp_task *)event;
    if (!task->deferred_p) {
        if (gomp_sem_getcount(task->completion_sem) > 0)
            gomp_fatal("omp_fulfill_event: %p event already fulfilled!\n", (void *)task);
        gomp_sem_post(task->completion_sem);
        return;
    }
    uint8_t state = GOMP_DETACH_RUNNING;
    /* acq_rel: partner is body_ended */
    if (atomic_compare_exchange_strong(&task->own.detach, &state, GOMP_DETACH_FULFILLED))
        return;
    if (state != GOMP_DETACH_ENDED)
        gomp_fatal("omp_fulfill_event: %p event is invalid or has already been fulfilled!\n",
                   (void *)task);
    complete_from_anywhere(task);
}

ialias (omp_fulfill_event)
