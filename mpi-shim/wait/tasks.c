/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tasks.c - `invade --mpi-tasks`: a thread that waits in MPI runs ready OpenMP tasks of its team
 * meanwhile, through the scheduling point that the OpenMP runtime offers (process.h).
 *
 * The thread then waits for "done, or a task is ready".  A task runs on top of the waiting call, on
 * the same stack.  Its MPI calls are calls of the program, so the thread counts as outside of the
 * shim for that time.  So the hook is not used with --mpi-tasks (watch.c): the thread would be in
 * the library's progress engine.
 */
#include "mpi-shim/wait/tasks.h"
#include "libinvasive/base/environment.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/wait/wait.h"
#include "libinvasive/process.h"
#include "mpi-shim/ranks/world.h"

void shim_tasks_start(void)
{
    shim_world.tasks_wanted = inv_mpi_tasks_asked();
}

struct either {
    struct shim_wait *wait;
    const struct inv_task_point *point;
    bool done;
};

static bool check_done_or_task(struct shim_wait *w)
{
    struct either *e = w->arg;
    e->done = e->wait->done(e->wait);
    return e->done || e->point->ready();
}

static bool run_task(const struct inv_task_point *point)
{
    struct shim_thread here = shim_thread;
    unsigned place = shim_site_stats_current();
    shim_thread.frame = 0;
    bool ran = point->run();
    shim_thread.frame = here.frame;
    shim_thread.site = here.site;
    shim_site_stats_set_current(place);
    return ran;
}

bool shim_tasks_wait(struct shim_wait *w, const void *call_site)
{
    const struct inv_task_point *point = inv_task_point();
    if (!point)
        return false;
    struct either e = {.wait = w, .point = point};
    struct shim_wait either = {
        .done = check_done_or_task, .arg = &e, .comm = w->comm, .at_arrival = w->at_arrival};
    while (!e.done) {
        if (point->ready() && run_task(point))
            e.done = w->done(w);
        else
            shim_wait_idle(&either, call_site);
    }
    return true;
}
