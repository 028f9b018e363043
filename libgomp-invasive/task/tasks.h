/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tasks.h - the scheduler of explicit tasks, in place of upstream's one lock and three queues for a
 * team.
 *
 * The idea: a task that no thread would steal is run at once, in a struct on its creator's stack,
 * without any atomic operation (task.c).  Only if a thread idles or may soon, a task is queued:
 * in a deque of its creator's thread number (taskqueue.h), from where idle team threads steal
 * (taskrun.c).  That is the cut-off of "Handling Transient and Persistent Imbalance", VI and VII.
 *
 * Counting.  A team has no counter of tasks.  Each thread number counts what it has created and
 * what it has completed in a task slot of its own; a barrier adds them up when all have arrived
 * (see gomp_tasks_outstanding).  A task counts its queued children itself (created, own_done); other
 * threads that complete or release a child add to its `done`.  A task's memory is released when it
 * is complete and all of its children are released: so the chain of parents of any task is there,
 * which tells whether a task is a descendant.  (In long chains a task may take the place of
 * parents that have ended: replace_ended_parents.)
 *
 * A task on the stack that queues a child moves to the heap first, with all of its ancestors that
 * are on the stack: a queued task has no parent on a stack.
 */
#ifndef GOMP_TASKS_H
#define GOMP_TASKS_H 1

#include "libgomp.h"
#include "upstream.h"
#include "taskpool.h"
#include "sharedqueue.h"
#include "taskqueue.h"
#include "theft.h"
#include "spinlock.h"

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

enum gomp_task_memory { GOMP_MEMORY_IMPLICIT, GOMP_MEMORY_STACK, GOMP_MEMORY_POOL };

/* A task with a detach clause: the end of its body and its event may come in any order. */
enum gomp_task_detach {
    GOMP_DETACH_NONE,
    GOMP_DETACH_RUNNING,   /* neither has come */
    GOMP_DETACH_ENDED,     /* the body has ended: the thread that fulfils the event completes the task */
    GOMP_DETACH_FULFILLED, /* the event is fulfilled: the end of the body completes it */
};

/* The word `done` of a task.  Low half: children that other threads have completed, and whether the
 * task sleeps for them.  High half: children that other threads have released.  A task that waits for its
 * children adds a bias so that GOMP_DONE_WAKE is reached with the last; one that has ended adds a
 * bias so that GOMP_DONE_ENDED is.  Adding is acq_rel: what a child did happens before what its
 * parent does after taskwait, and before the memory is used again. */
#define GOMP_DONE_BODY UINT64_C(1)
#define GOMP_DONE_WAKE (UINT64_C(1) << 30)
#define GOMP_DONE_PARKED (UINT64_C(1) << 31)
#define GOMP_DONE_RELEASED (UINT64_C(1) << 32)
#define GOMP_DONE_ENDED UINT64_C(0x80000000) /* in the high half */

static inline uint32_t gomp_done_bodies (uint64_t done)
{
    return (uint32_t)done & (uint32_t)(GOMP_DONE_PARKED - 1);
}

static inline uint32_t gomp_done_released (uint64_t done)
{
    return (uint32_t)(done >> 32);
}

enum { GOMP_THRESHOLD_LEAST = 4, GOMP_THRESHOLD_MOST = 256 };

/* What belongs to a thread number of a team.  Made when it first queues or completes a task; only
 * the thread that has the number writes here, but for the queue's top. */
struct gomp_task_slot {
    struct gomp_queue queue;
    /* release; partner: the acquire loads of gomp_tasks_outstanding */
    _Atomic uint64_t created __attribute__((aligned(64))), completed;
    /* The cut-off: tasks are queued while the queue has fewer than this.  At first enough for all
     * cores.  Raised when thieves have emptied the queue while a task ran at once (task.c), halved
     * when nothing is stolen for long (taskrun.c). */
    int64_t threshold;
    unsigned calm;   /* tasks that were queued and not stolen, since one was */
    int64_t old_top; /* the queue's top at the last look for thefts */
    unsigned random;
    unsigned inlined;
    struct gomp_theft theft;
};

struct gomp_team_tasks {
    /* Low half: team threads that look for any task and find none; high half: those that look for
     * descendants of the task that they wait in.  Counts; hints for threads that create tasks. */
    _Atomic uint64_t hungry;
    /* The same for team threads that sleep.  seq_cst: partners are gomp_queue_push and
     * after_queueing. */
    _Atomic uint64_t asleep;
    _Atomic unsigned used;         /* task slots in use; release/acquire, under lock */
    unsigned nthreads;
    int64_t threshold; /* of a thread number, at first */
    struct gomp_task_slot **used_slot; /* [nthreads], the first `used` are set */
    struct gomp_spinlock lock;
    /* team threads that sleep in a barrier of a region with tasks sleep on this */
    _Atomic int signal __attribute__((aligned(64)));
    struct gomp_shared_queue shared;
    /* tasks that were completed by threads outside the team */
    _Atomic uint64_t completed_elsewhere;
    struct gomp_task_slot *slot[]; /* by thread number; NULL: none yet */
};

#define GOMP_ANY UINT64_C(1)
#define GOMP_DESCENDANTS (UINT64_C(1) << 32)

/* --- taskrun.c: finding, running and completing tasks */

/* The scheduler's part of a team; made by the first call. */
extern struct gomp_team_tasks *gomp_team_tasks_make (struct gomp_team *);
extern void gomp_team_tasks_free (struct gomp_team *);
extern struct gomp_task_slot *gomp_task_slot_make (struct gomp_team *, unsigned id);

/* That part; NULL: not made yet.  acquire; partner: the CAS of gomp_team_tasks_make, which any
 * team thread may have called, also while others have found it. */
static inline struct gomp_team_tasks *gomp_team_tasks (struct gomp_team *team)
{
    return __atomic_load_n(&team->own.tasks, __ATOMIC_ACQUIRE);
}

/* The task slot of the calling thread, which is in a team; NULL: not made yet. */
static inline struct gomp_task_slot *gomp_task_slot_made (struct gomp_thread *thr)
{
    struct gomp_team_tasks *tasks = gomp_team_tasks(thr->ts.team);
    return tasks ? tasks->slot[thr->ts.team_id] : NULL;
}

/* The same; makes it. */
static inline struct gomp_task_slot *gomp_task_slot (struct gomp_thread *thr)
{
    struct gomp_task_slot *slot = gomp_task_slot_made(thr);
    return __builtin_expect(slot != NULL, 1)
               ? slot
               : gomp_task_slot_make(thr->ts.team, thr->ts.team_id);
}

/* A task of the pool for so many bytes of arguments, whose address goes to fn_data. */
extern struct gomp_task *gomp_task_alloc (size_t arg_size, size_t arg_align);
extern void gomp_task_release (struct gomp_task *);
/* What a task that is to be queued starts from; fn, fn_data and kind are for the caller. */
extern void gomp_task_init_deferred (struct gomp_task *, struct gomp_task *parent);
/* The task that queues a child must not be on the stack. */
extern struct gomp_task *gomp_task_promote (struct gomp_task *);
/* Count a child of the current task that is to be queued, or is until its predecessors are done. */
extern void gomp_task_count (struct gomp_task_slot *, struct gomp_task *);
/* Queue a task that may run, or run it here if there is no room. */
extern void gomp_task_schedule (struct gomp_task_slot *, struct gomp_task *);
/* The same of tasks that are linked by own.link; slot NULL: from a thread that may not be of the team. */
extern void gomp_tasks_schedule (struct gomp_team *, struct gomp_task_slot *, struct gomp_task *first);
/* The same of one task from such a thread: into the shared queue. */
extern void gomp_task_schedule_shared (struct gomp_team *, struct gomp_task *);
/* A task's body has ended, or will never run: `slot` NULL: the calling thread is none that runs
 * tasks of this team. */
extern void gomp_task_complete (struct gomp_team *, struct gomp_task_slot *, struct gomp_task *);
/* The end of a task that was counted as a child but not as a task of the team. */
extern void gomp_task_finish (struct gomp_task *, struct gomp_task *waiting);
/* Run a task within the current one, and complete it. */
extern void gomp_task_execute (struct gomp_task_slot *, struct gomp_task *);

/* Is this task not to be started any more, because its taskgroup or region is cancelled? */
extern bool gomp_task_cancelled (struct gomp_team *, struct gomp_taskgroup *);
static inline bool gomp_task_discarded (struct gomp_team *team, struct gomp_taskgroup *group)
{
    return __builtin_expect(gomp_cancel_var, 0) && gomp_task_cancelled(team, group);
}

/* Wake a task that sleeps for something that is true now, or might be. */
extern void gomp_task_wake_parked (struct gomp_task *);
/* Wake up to `count` threads that wait in the team's barrier. */
extern void gomp_tasks_signal (struct gomp_team_tasks *, int count);
/* The last task of the team may be complete: wake all threads that wait for that. */
extern void gomp_tasks_wake_all (struct gomp_team *);

/* Is there a task of this team that is not complete?  All of its implicit tasks have ended or
 * wait in the barrier, and the caller knows (acquire). */
extern bool gomp_tasks_outstanding (struct gomp_team *);
/* Is one queued? */
extern bool gomp_tasks_visible (struct gomp_team *);
/* Run any tasks, until none is found or `enough` says so.  True: at least one ran. */
extern bool gomp_tasks_run (struct gomp_team *, bool (*enough) (void));
/* Spin until over(arg) or a task is found, which is run; false: it is time to sleep. */
extern bool gomp_tasks_idle (struct gomp_team *, bool (*over) (void *), void *arg);
/* A team thread whose implicit task has ended runs tasks, until none is left or it has been idle
 * for too long, or `enough`. */
extern void gomp_tasks_help (struct gomp_team *, bool (*enough) (void));
/* A task that may run now, or NULL; root: only a descendant of that one. */
extern struct gomp_task *gomp_tasks_find (struct gomp_thread *, struct gomp_task *root);

/* A descendant of the current task whose priority is above that, or NULL. */
extern struct gomp_task *gomp_tasks_find_urgent (struct gomp_thread *, int priority);

/* A task for a thread that waits for something outside OpenMP in the middle of its own task: any task
 * of the team. */
extern struct gomp_task *gomp_tasks_find_any (struct gomp_thread *);
/* At a task scheduling point, while MPI requests are pending (inv_triggers_pending): tests some, and runs
 * descendants of the current task that have become ready by that, before what was ready already. */
extern void gomp_tasks_triggered (void);

/* Execute tasks until done(arg); sleep when there are none.  Only descendants of the current task
 * run meanwhile. */
enum gomp_wait_for { GOMP_WAIT_CHILDREN, GOMP_WAIT_GROUP, GOMP_WAIT_NODE };
extern void gomp_task_wait (enum gomp_wait_for, bool (*done) (const void *), const void *);
/* The same at a barrier, where any task may run; until the generation changes from `base`. */
extern void gomp_tasks_at_barrier (gomp_barrier_t *, unsigned base, bool cancellable);

/* task.c: run a body at once, as a child of the current task. */
extern void gomp_task_run_undeferred (void (*fn) (void *), void *data, unsigned flags);

/* tasktarget.c */
extern void gomp_create_artificial_team (void);
/* Run a target task; true when it goes on by itself and is not complete. */
extern bool gomp_target_task_run (struct gomp_team *, struct gomp_task *);

/* taskpoint.c: what waits outside OpenMP may run. */
extern const struct inv_task_point gomp_task_point;

/* --- taskdeps.c: dependences between the children of a task */

/* Does a task with these dependences have to wait for one of its siblings? */
extern bool gomp_deps_pending (struct gomp_task *parent, void **depend);
/* Enter a new child.  True when it may run now.  If not, *others, which is NULL before, has the children that may run
 * because this one may not. */
extern bool gomp_deps_enter (struct gomp_task *parent, struct gomp_task *child, void **depend,
                             struct gomp_task **others);
/* A child is complete.  Returns the children that waited for nothing else. */
extern struct gomp_task *gomp_deps_leave (struct gomp_task *child);
/* The parent has ended. */
extern void gomp_deps_free (struct gomp_task *parent);

/* --- taskgroup.c */

static inline void gomp_taskgroup_enter (struct gomp_taskgroup *group)
{
    if (group)
        __atomic_fetch_add(&group->num_children, 1, __ATOMIC_RELAXED);
}
/* acq_rel, and seq_cst for the sleeper: partner is gomp_task_wait. */
static inline void gomp_taskgroup_leave (struct gomp_taskgroup *group)
{
    struct gomp_task *owner = group ? group->own.owner : NULL;
    if (!group)
        return;
    size_t before = __atomic_fetch_sub(&group->num_children, 1, __ATOMIC_SEQ_CST);
    inv_assert(before > 0);
    if (before == 1 && owner)
        gomp_task_wake_parked(owner);
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
