/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tasktarget.c - `target nowait` as tasks, and the team that such a task gets when there is none.
 */
#include "tasks.h"
#include <string.h>

/* A team of one around the calling thread, outside any parallel region.  Its implicit task takes
 * the place of the thread's own one, at the root of whatever tasks are running. */
void gomp_create_artificial_team (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task *task = thr->task, *root, **link = &task;
    struct gomp_task_icv icv = task ? task->icv : *gomp_default_icv();
    struct gomp_team *team = gomp_new_team(1);
    team->prev_ts = thr->ts;
    thr->ts.team = team;
    thr->ts.team_id = 0;
    thr->ts.work_share = &team->work_shares[0];
    thr->ts.last_work_share = NULL;
    thr->ts.single_count = 0;
    thr->ts.static_trip = 0;
    gomp_init_task(&team->implicit_task[0], NULL, &icv);
    while ((root = *link) && root->kind != GOMP_TASK_IMPLICIT)
        link = &root->parent;
    *link = &team->implicit_task[0];
    if (root) {
        gomp_deps_free(root);
        free(root);
    } else
        pthread_setspecific(gomp_thread_destructor, thr);
    thr->task = task;
}

/* --- making one */

/* Room for the copies of firstprivate variables, in the order of the map. */
static size_t firstprivate_size (size_t mapnum, const size_t *sizes, const unsigned short *kinds,
                                 size_t *alignment)
{
    size_t bytes = 0;
    *alignment = 1;
    for (size_t i = 0; i < mapnum; i++)
        if ((kinds[i] & 0xff) == GOMP_MAP_FIRSTPRIVATE) {
            size_t align = (size_t)1 << (kinds[i] >> 8);
            if (align > *alignment)
                *alignment = align;
            bytes = ((bytes + align - 1) & ~(align - 1)) + sizes[i];
        }
    return bytes;
}

static void copy_firstprivate (struct gomp_target_task *t, char *to)
{
    size_t at = 0;
    for (size_t i = 0; i < t->mapnum; i++)
        if ((t->kinds[i] & 0xff) == GOMP_MAP_FIRSTPRIVATE) {
            size_t align = (size_t)1 << (t->kinds[i] >> 8);
            at = (at + align - 1) & ~(align - 1);
            memcpy(to + at, t->hostaddrs[i], t->sizes[i]);
            t->hostaddrs[i] = to + at;
            at += t->sizes[i];
        }
}

/* Words up to and with the NULL that ends the list of arguments for the device. */
static size_t count_args (void **args)
{
    size_t n = 0;
    if (args) {
        for (; args[n]; n++)
            if ((intptr_t)args[n] & GOMP_TARGET_ARG_SUBSEQUENT_PARAM)
                n++;
        n++;
    }
    return n;
}

/* Everything that the construct was given, in one block behind the task. */
static struct gomp_task *make_task (struct gomp_task *parent, struct gomp_device_descr *device,
                                    void (*fn) (void *), size_t mapnum, void **hostaddrs,
                                    size_t *sizes, unsigned short *kinds, unsigned flags,
                                    void **args, enum gomp_target_task_state state)
{
    size_t alignment = 1, nargs = fn ? count_args(args) : 0;
    size_t copies = fn ? firstprivate_size(mapnum, sizes, kinds, &alignment) : 0;
    size_t bytes = sizeof(struct gomp_target_task) + nargs * sizeof *args +
                   mapnum * (sizeof *hostaddrs + sizeof *sizes + sizeof *kinds) + copies + alignment;
    struct gomp_task *task = gomp_task_alloc(bytes, __alignof__(struct gomp_target_task));
    struct gomp_target_task *t = task->fn_data;
    gomp_task_init_deferred(task, parent);
    task->fn = NULL;
    memset(t, 0, sizeof *t);
    t->devicep = device;
    t->fn = fn;
    t->mapnum = mapnum;
    t->flags = flags;
    t->state = state;
    t->task = task;
    t->team = gomp_thread()->ts.team;
    memcpy(t->hostaddrs, hostaddrs, mapnum * sizeof *hostaddrs);
    t->args = nargs ? &t->hostaddrs[mapnum] : args;
    if (nargs)
        memcpy(t->args, args, nargs * sizeof *args);
    t->sizes = (size_t *)&t->hostaddrs[mapnum + nargs];
    memcpy(t->sizes, sizes, mapnum * sizeof *sizes);
    t->kinds = (unsigned short *)&t->sizes[mapnum];
    memcpy(t->kinds, kinds, mapnum * sizeof *kinds);
    uintptr_t to = (uintptr_t)&t->kinds[mapnum];
    if (copies)
        copy_firstprivate(t, (char *)((to + alignment - 1) & ~(alignment - 1)));
    return task;
}

/* False: no task was made, since there is nothing to wait for.  The caller moves the data at once
 * (state DATA only). */
bool gomp_create_target_task (struct gomp_device_descr *device, void (*fn) (void *), size_t mapnum,
                              void **hostaddrs, size_t *sizes, unsigned short *kinds,
                              unsigned flags, void **depend, void **args,
                              enum gomp_target_task_state state)
{
    struct gomp_thread *thr = gomp_thread();
    if (gomp_task_discarded(thr->ts.team, thr->task->taskgroup))
        return true;
    if (state == GOMP_TARGET_TASK_DATA &&
        !(depend && thr->task->depend_hash && gomp_deps_pending(thr->task, depend)))
        return false;
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    if (thr->task->own.memory == GOMP_MEMORY_STACK)
        thr->task = gomp_task_promote(thr->task);
    struct gomp_task *parent = thr->task;
    struct gomp_task *task =
        make_task(parent, device, fn, mapnum, hostaddrs, sizes, kinds, flags, args, state);
    gomp_taskgroup_enter(task->taskgroup);
    gomp_task_count(slot, parent);
    struct gomp_task *others = NULL;
    if (depend && !gomp_deps_enter(parent, task, depend, &others)) {
        gomp_tasks_schedule(thr->ts.team, slot, others);
        return true;
    }
    /* A device: map and launch from here, so that it runs beside this thread. */
    if (device != NULL && (device->capabilities & GOMP_OFFLOAD_CAP_OPENMP_400))
        gomp_task_execute(slot, task);
    else
        gomp_task_schedule(slot, task);
    return true;
}

/* --- running one */

bool gomp_target_task_run (struct gomp_team *team, struct gomp_task *task)
{
    struct gomp_target_task *t = task->fn_data;
    if (!gomp_target_task_fn(t))
        return false;
    /* The task runs on the device.  The device's thread may have finished it already. */
    gomp_mutex_lock(&team->task_lock);
    bool over = t->state == GOMP_TARGET_TASK_FINISHED;
    if (!over) {
        task->kind = GOMP_TASK_ASYNC_RUNNING;
        t->state = GOMP_TARGET_TASK_RUNNING;
    }
    gomp_mutex_unlock(&team->task_lock);
    if (over)
        gomp_task_schedule_shared(team, task);
    return true;
}

/* The device has finished: run the task once more, to unmap.  Called by a thread of the plugin's,
 * hence under the lock: see complete_from_anywhere in task.c. */
void GOMP_PLUGIN_target_task_completion (void *data)
{
    struct gomp_target_task *t = data;
    struct gomp_team *team = t->team;
    gomp_mutex_lock(&team->task_lock);
    bool launched = t->state != GOMP_TARGET_TASK_READY_TO_RUN;
    t->state = GOMP_TARGET_TASK_FINISHED;
    if (launched)
        gomp_task_schedule_shared(team, t->task);
    gomp_mutex_unlock(&team->task_lock);
}
