/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskloop.c - taskloops by recursive splitting.
 *
 * The loop is cut into chunks, as the clauses want.  At first there are few tasks, each with a
 * range of chunks: as many tasks as the cut-off would queue, so that where chunks are long all
 * cores have one before the first chunk ends.  The thread that executes such a task splits the
 * upper half of its range off, as a task to be stolen, whenever the thread's queue is empty; runs
 * its chunks, each a task that runs at once; and waits for the tasks that it has split off.  So a
 * loop that no other thread helps with makes few tasks, and a loop that is stolen from is split
 * where and when it is.
 *
 * Where the firstprivate variables need more than memcpy to be copied, the copies for all chunks
 * are made before the first one runs: it might change the originals (lastprivate).
 */
#include "points.h"
#include "process.h"
#include "tasks.h"
#include <limits.h>
#include <string.h>

enum { CHUNKS_PER_THREAD = 8 }; /* when no clause says how many */

/* Which iterations belong to which chunk: the first `nfirst` chunks have `first` iterations each,
 * the others `rest`.  Unsigned arithmetic: it wraps like the loop variable's. */
struct chunks {
    uint64_t start, step;
    uint64_t nfirst, first, rest;
    unsigned long count;
    bool is_long; /* the type of the loop variable; else unsigned long long */
};

struct body {
    void (*fn) (void *);
    size_t arg_size, arg_align;
    unsigned flags;
    int priority;
    struct copies *copies; /* or NULL: memcpy is enough */
};

/* The arguments of all chunks, each with the copies of its variables. */
struct copies {
    _Atomic unsigned long left; /* chunks that have not run; the thread that runs the last frees this */
    size_t stride;
    char *arg;
};

/* The arguments of a task with a range of chunks; behind it, aligned, those of the loop's body. */
struct range {
    struct chunks chunks;
    struct body body;
    unsigned long low, high; /* its chunks */
    void *arg;
};

static uint64_t chunk_start (const struct chunks *c, unsigned long i)
{
    uint64_t iterations =
        i < c->nfirst ? i * c->first : c->nfirst * c->first + (i - c->nfirst) * c->rest;
    return c->start + iterations * c->step;
}

/* Every body's arguments begin with the bounds of its chunk. */
static void set_bounds (const struct chunks *c, unsigned long i, void *arg)
{
    uint64_t start = chunk_start(c, i);
    uint64_t bounds[2] = {start, start + (i < c->nfirst ? c->first : c->rest) * c->step};
    if (c->is_long)
        memcpy(arg, (long[]){(long)bounds[0], (long)bounds[1]}, 2 * sizeof(long));
    else
        memcpy(arg, bounds, sizeof bounds);
}

/* --- running chunks */

static struct copies *make_copies (const struct chunks *c, const struct body *body,
                                   void (*cpyfn) (void *, void *), void *data)
{
    size_t stride = (body->arg_size + body->arg_align - 1) & ~(body->arg_align - 1);
    struct copies *copies = gomp_malloc(sizeof *copies + c->count * stride + body->arg_align);
    atomic_init(&copies->left, c->count);
    copies->stride = stride;
    copies->arg = (char *)(((uintptr_t)(copies + 1) + body->arg_align - 1) & ~(body->arg_align - 1));
    for (unsigned long i = 0; i < c->count; i++)
        cpyfn(copies->arg + i * stride, data);
    return copies;
}

/* Chunk i of a loop whose variables are copied by memcpy: one block serves chunk after chunk. */
static void run_chunk (const struct chunks *c, const struct body *body, unsigned long i, void *arg)
{
    struct gomp_thread *thr = gomp_thread();
    struct copies *copies = body->copies;
    if (copies)
        arg = copies->arg + i * copies->stride; /* must run, even if cancelled: it destroys them */
    else if (thr->ts.team && gomp_task_discarded(thr->ts.team, thr->task->taskgroup))
        return;
    set_bounds(c, i, arg);
    gomp_task_run_undeferred(body->fn, arg, body->flags);
    if (copies && atomic_fetch_sub_explicit(&copies->left, 1, memory_order_acq_rel) == 1)
        free(copies);
}

static void queue_range (const struct chunks *, const struct body *, unsigned long low,
                         unsigned long high, void *arg);

static void run_range (void *data)
{
    struct range *r = data;
    struct gomp_thread *thr = gomp_thread();
    while (r->low < r->high) {
        struct gomp_task_slot *slot = gomp_task_slot(thr);
        unsigned long left = r->high - r->low;
        if (left > 1 && gomp_queue_size(&slot->queue) <= 0) {
            unsigned long middle = r->low + (left + 1) / 2;
            queue_range(&r->chunks, &r->body, middle, r->high, r->arg);
            r->high = middle;
        }
        unsigned long i = r->low++;
        run_chunk(&r->chunks, &r->body, i, r->arg);
        if (inv_managed() && i % 16 == 0)
            gomp_hold_checkpoint();
    }
    GOMP_taskwait();
}

static void queue_range (const struct chunks *chunks, const struct body *body, unsigned long low,
                         unsigned long high, void *arg)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_task_slot *slot = gomp_task_slot(thr);
    if (thr->task->own.memory == GOMP_MEMORY_STACK)
        thr->task = gomp_task_promote(thr->task);
    struct gomp_task *parent = thr->task;
    size_t arg_size = body->copies ? 0 : body->arg_size;
    struct gomp_task *task =
        gomp_task_alloc(sizeof(struct range) + body->arg_align + arg_size, __alignof__(struct range));
    gomp_task_init_deferred(task, parent);
    struct range *r = task->fn_data;
    *r = (struct range){*chunks, *body, low, high, NULL};
    r->arg = (void *)(((uintptr_t)(r + 1) + body->arg_align - 1) & ~(body->arg_align - 1));
    memcpy(r->arg, arg, arg_size);
    task->copy_ctors_done = body->copies != NULL;
    task->fn = run_range;
    task->priority = body->priority;
    gomp_taskgroup_enter(task->taskgroup);
    gomp_task_count(slot, parent);
    gomp_task_schedule(slot, task);
}

/* Where part i of so many begins. */
static unsigned long part_start (unsigned long count, unsigned long parts, unsigned long i)
{
    unsigned long more = count % parts; /* parts that have one chunk more */
    return count / parts * i + (i < more ? i : more);
}

/* All chunks, in as many tasks as there is room for in the queue.  The last first: its owner takes
 * the newest. */
static void queue_ranges (const struct chunks *c, const struct body *body, void *data)
{
    struct gomp_task_slot *slot = gomp_task_slot(gomp_thread());
    int64_t room = slot->threshold - gomp_queue_size(&slot->queue);
    unsigned long parts = room < 1 ? 1 : (unsigned long)room;
    if (parts > c->count)
        parts = c->count;
    for (unsigned long i = parts; i-- > 0;)
        queue_range(c, body, part_start(c->count, parts, i), part_start(c->count, parts, i + 1),
                    data);
}

static void run_here (const struct chunks *c, const struct body *body, void *data)
{
    for (unsigned long i = 0; i < c->count; i++)
        run_chunk(c, body, i, data);
}

/* --- the construct */

/* How many chunks, and how large; n > 0. */
static void divide (struct chunks *c, uint64_t n, uint64_t wanted, unsigned flags)
{
    uint64_t count;
    if (flags & GOMP_TASK_FLAG_GRAINSIZE) {
        uint64_t grain = wanted ? wanted : 1;
        count = n / grain;
        if ((flags & GOMP_TASK_FLAG_STRICT) && count < ULONG_MAX) {
            c->nfirst = count;
            c->first = grain;
            c->rest = n % grain;
            c->count = (unsigned long)(count + (n % grain != 0));
            return;
        }
    } else {
        struct gomp_team *team = gomp_thread()->ts.team;
        count = wanted ? wanted : team ? (uint64_t)CHUNKS_PER_THREAD * team->nthreads : 1;
    }
    count = count < 1 ? 1 : count > n ? n : count;
    c->count = count > ULONG_MAX ? ULONG_MAX : (unsigned long)count;
    c->rest = n / c->count;
    c->nfirst = n % c->count;
    c->first = c->rest + 1;
}

static uintptr_t *reduction_block (void *data, bool is_long)
{
    uintptr_t *block;
    memcpy(&block, (char *)data + 2 * (is_long ? sizeof(long) : sizeof(long long)), sizeof block);
    return block;
}

/* The iterations of one group. */
static void run_chunks (const struct chunks *c, struct body *body,
                        void (*cpyfn) (void *, void *), void *data)
{
    struct gomp_thread *thr = gomp_thread();
    if (cpyfn)
        body->copies = make_copies(c, body, cpyfn, data);
    if (!(body->flags & GOMP_TASK_FLAG_IF) || !thr->ts.team || thr->ts.team->nthreads == 1 ||
        thr->task->final_task || c->count == 1)
        run_here(c, body, data);
    else
        queue_ranges(c, body, data);
}

static void taskloop (struct chunks *c, struct body *body, void (*cpyfn) (void *, void *),
                      void *data, uint64_t n, uint64_t wanted)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    unsigned flags = body->flags;
    if (n == 0 || (team && gomp_team_barrier_cancelled(&team->barrier))) {
        if ((flags & (GOMP_TASK_FLAG_NOGROUP | GOMP_TASK_FLAG_REDUCTION)) ==
            GOMP_TASK_FLAG_REDUCTION)
            reduction_block(data, c->is_long)[2] = 0; /* says: never registered */
        return;
    }
    divide(c, n, wanted, flags);
    if (flags & GOMP_TASK_FLAG_NOGROUP) {
        if (team == NULL || !gomp_task_discarded(team, thr->task->taskgroup))
            run_chunks(c, body, cpyfn, data);
        return;
    }
    GOMP_taskgroup_start();
    if (flags & GOMP_TASK_FLAG_REDUCTION)
        GOMP_taskgroup_reduction_register(reduction_block(data, c->is_long));
    run_chunks(c, body, cpyfn, data);
    GOMP_taskgroup_end();
}

static struct body make_body (void (*fn) (void *), long arg_size, long arg_align, unsigned flags,
                              int priority)
{
    if (priority > gomp_max_task_priority_var)
        priority = gomp_max_task_priority_var;
    return (struct body){fn, (size_t)arg_size, (size_t)(arg_align > 0 ? arg_align : 1), flags,
                         priority > 0 ? priority : 0, NULL};
}

void GOMP_taskloop (void (*fn) (void *), void *data, void (*cpyfn) (void *, void *), long arg_size,
                    long arg_align, unsigned flags, unsigned long num_tasks, int priority,
                    long start, long end, long step)
{
    struct chunks c = {.start = (uint64_t)start, .step = (uint64_t)step, .is_long = true};
    struct body body = make_body(fn, arg_size, arg_align, flags, priority);
    unsigned long n = 0;
    if (step > 0 && start < end)
        n = ((unsigned long)end - (unsigned long)start - 1) / (unsigned long)step + 1;
    else if (step < 0 && start > end)
        n = ((unsigned long)start - (unsigned long)end - 1) / -(unsigned long)step + 1;
    taskloop(&c, &body, cpyfn, data, n, num_tasks);
}

void GOMP_taskloop_ull (void (*fn) (void *), void *data, void (*cpyfn) (void *, void *),
                        long arg_size, long arg_align, unsigned flags, unsigned long num_tasks,
                        int priority, unsigned long long start, unsigned long long end,
                        unsigned long long step)
{
    struct chunks c = {.start = start, .step = step};
    struct body body = make_body(fn, arg_size, arg_align, flags, priority);
    unsigned long long n = 0;
    if ((flags & GOMP_TASK_FLAG_UP) && start < end)
        n = (end - start - 1) / step + 1;
    else if (!(flags & GOMP_TASK_FLAG_UP) && start > end)
        n = (start - end - 1) / -step + 1;
    taskloop(&c, &body, cpyfn, data, n, num_tasks);
}
