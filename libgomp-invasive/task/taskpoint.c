/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskpoint.c - the scheduling point for waits that are not OpenMP's: a thread that waits in MPI
 * runs ready explicit tasks of its team meanwhile, when the user has asked for that (invade
 * --mpi-tasks; mpi-shim(7) says what a program must not do then).
 *
 * OpenMP allows a thread that waits inside a tied task to start descendants of it only.  A program
 * that puts each receive into a task of its own would gain nothing from that, so here any task of
 * the team may run.  The tasks then lie above the waiting one on the same stack, which goes on when
 * they have returned; such waits may be nested, up to a limit that keeps the stack within bounds.
 */
#include "process.h"
#include "tasks.h"

enum { NESTED_MOST = 8 };

/* Tasks that run inside a wait of this thread, and have not returned. */
static __thread unsigned nested __attribute__((tls_model("initial-exec"), used));
#define nested GOMP_OWN(nested)

static bool may_run (const struct gomp_thread *thr)
{
    return thr->ts.team && thr->task && nested < NESTED_MOST;
}

static bool task_is_ready (void)
{
    struct gomp_thread *thr = gomp_thread();
    return may_run(thr) && gomp_tasks_visible(thr->ts.team);
}

static bool run_task (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task = may_run(thr) ? gomp_tasks_find_any(thr) : NULL;
    if (!task)
        return false;
    nested++;
    gomp_task_execute(gomp_task_slot(thr), task);
    nested--;
    return true;
}

const struct inv_task_point gomp_task_point = {task_is_ready, run_task};
