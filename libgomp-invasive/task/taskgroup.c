/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * taskgroup.c - taskgroups and the reductions over them.
 *
 * A group counts the queued tasks in it; its end is reached when the count is zero.  A reduction
 * has one copy of its variables for each thread number of the team; a task finds the copy of the
 * number that runs it by the address of the original, in a table that goes with the group.
 */
#include "tasks.h"
#include <string.h>

static struct gomp_taskgroup *make_group (struct gomp_taskgroup *outer, struct gomp_task *owner)
{
    struct gomp_taskgroup *group = gomp_malloc_cleared(sizeof *group);
    group->prev = outer;
    group->reductions = outer ? outer->reductions : NULL;
    group->own.owner = owner;
    gomp_sem_init(&group->taskgroup_sem, 0);
    return group;
}

void GOMP_taskgroup_start (void)
{
    struct gomp_thread *thr = gomp_thread();
    /* Without a team every task runs at once: there is nothing to wait for. */
    if (thr->ts.team)
        thr->task->taskgroup = make_group(thr->task->taskgroup, thr->task);
}

static bool group_done (const void *arg)
{
    const struct gomp_taskgroup *group = arg;
    return __atomic_load_n(&group->num_children, __ATOMIC_ACQUIRE) == 0;
}

void GOMP_taskgroup_end (void)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_team *team = thr->ts.team;
    if (team == NULL)
        return;
    struct gomp_taskgroup *group = thr->task->taskgroup;
    if (__builtin_expect(group == NULL, 0) && thr->ts.level == 0) {
        /* The group began without a team, and a target task inside has made an artificial one. */
        gomp_team_barrier_wait(&team->barrier);
        return;
    }
    if (!group_done(group))
        gomp_task_wait(GOMP_WAIT_GROUP, group_done, group);
    inv_assert(group_done(group));
    thr->task->taskgroup = group->prev;
    gomp_sem_destroy(&group->taskgroup_sem);
    free(group);
}

/* --- reductions
 *
 * The compiler passes blocks of words, each with one or more variables:
 *   [0] number of variables   [1] bytes of one thread's copy    [2] alignment; then the copies' memory
 *   [3] allocator             [4] next block; in the last one: the registration outside this one
 *   [5] the table, in the last block only                        [6] end of that memory
 *   [7 + 3 i] address of the original, [8 + 3 i] its offset in a copy, [9 + 3 i] its block
 * Field [5] of all other blocks must be 0; unregistering stops by it. */
enum { COUNT, SIZE, MEMORY, ALLOCATOR, NEXT, TABLE, MEMORY_END, VARIABLES };
enum { ORIGINAL, OFFSET, BLOCK, PER_VARIABLE };

/* From the address of an original to its entry in a block; open addressing. */
struct table {
    size_t mask, used;
    uintptr_t *entry[];
};

static struct table *table_make (size_t entries)
{
    size_t size = 8;
    while (size < 2 * entries)
        size *= 2;
    struct table *table = gomp_malloc_cleared(sizeof *table + size * sizeof table->entry[0]);
    table->mask = size - 1;
    return table;
}

static uintptr_t **table_slot (struct table *table, uintptr_t original)
{
    size_t at = (size_t)(original * UINT64_C(0x9e3779b97f4a7c15) >> 20) & table->mask;
    while (table->entry[at] && table->entry[at][ORIGINAL] != original)
        at = (at + 1) & table->mask;
    return &table->entry[at];
}

static void table_insert (struct table *table, uintptr_t *entry)
{
    uintptr_t **slot = table_slot(table, entry[ORIGINAL]);
    inv_assert(*slot || table->used < table->mask); /* a search always comes to an end */
    if (!*slot)
        table->used++;
    *slot = entry;
}

/* Memory of a block for all threads: new, or what the first thread that came has allocated. */
static void give_memory (uintptr_t *block, const uintptr_t *first, unsigned nthreads)
{
    if (first) {
        block[MEMORY] = first[MEMORY];
        block[MEMORY_END] = first[MEMORY_END];
    } else {
        size_t bytes = block[SIZE] * nthreads;
        void *memory = gomp_aligned_alloc(block[MEMORY], bytes);
        memset(memory, 0, bytes);
        block[MEMORY] = (uintptr_t)memory;
        block[MEMORY_END] = block[MEMORY] + bytes;
    }
    block[TABLE] = 0;
}

static void register_blocks (uintptr_t *data, uintptr_t *outer, uintptr_t *first,
                             unsigned nthreads)
{
    struct table *outer_table = outer ? (struct table *)outer[TABLE] : NULL;
    size_t variables = outer_table ? outer_table->used : 0;
    uintptr_t *block = data, *last;
    do {
        give_memory(block, first, nthreads);
        first = first ? (uintptr_t *)first[NEXT] : NULL;
        variables += block[COUNT];
        last = block;
        block = (uintptr_t *)block[NEXT];
    } while (block);
    last[NEXT] = (uintptr_t)outer;
    struct table *table = table_make(variables);
    for (size_t i = 0; outer_table && i <= outer_table->mask; i++)
        if (outer_table->entry[i])
            table_insert(table, outer_table->entry[i]);
    for (block = data;; block = (uintptr_t *)block[NEXT]) {
        for (size_t i = 0; i < block[COUNT]; i++) {
            uintptr_t *entry = block + VARIABLES + i * PER_VARIABLE;
            entry[BLOCK] = (uintptr_t)block;
            table_insert(table, entry);
        }
        if (block == last)
            break;
    }
    /* A look-up reads the first block's table; unregistering stops before the next block that has one. */
    last[TABLE] = 0;
    data[TABLE] = (uintptr_t)table;
}

void GOMP_taskgroup_reduction_register (uintptr_t *data)
{
    struct gomp_thread *thr = gomp_thread();
    if (__builtin_expect(thr->ts.team == NULL, 0)) {
        /* The copies belong to the thread numbers of a team. */
        gomp_create_artificial_team();
        GOMP_taskgroup_start();
    }
    struct gomp_taskgroup *group = thr->task->taskgroup;
    register_blocks(data, group->reductions, NULL, thr->ts.team->nthreads);
    group->reductions = data;
}

void GOMP_taskgroup_reduction_unregister (uintptr_t *data)
{
    free((struct table *)data[TABLE]);
    uintptr_t *block = data;
    do {
        gomp_aligned_free((void *)block[MEMORY]);
        block = (uintptr_t *)block[NEXT];
    } while (block && !block[TABLE]);
}

/* The block in whose memory an address lies, of this registration or one outside it. */
static uintptr_t *block_around (uintptr_t *data, uintptr_t address)
{
    for (uintptr_t *block = data; block; block = (uintptr_t *)block[NEXT])
        if (address >= block[MEMORY] && address < block[MEMORY_END])
            return block;
    return NULL;
}

/* The variable at that offset of a block's copies; they are sorted by it. */
static uintptr_t original_at (const uintptr_t *block, uintptr_t offset)
{
    size_t low = 0, high = block[COUNT];
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uintptr_t *entry = block + VARIABLES + middle * PER_VARIABLE;
        if (entry[OFFSET] == offset)
            return entry[ORIGINAL];
        if (entry[OFFSET] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* Replace addresses of originals, or of any thread's copies, by those of the calling thread's
 * copies.  For the first `originals`, the address of the original goes behind the `count`
 * pointers. */
void GOMP_task_reduction_remap (size_t count, size_t originals, void **pointers)
{
    struct gomp_thread *thr = gomp_thread();
    uintptr_t id = thr->ts.team_id, *data = thr->task->taskgroup->reductions;
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = (uintptr_t)pointers[i];
        const uintptr_t *entry = *table_slot((struct table *)data[TABLE], address);
        const uintptr_t *block = entry ? (uintptr_t *)entry[BLOCK] : block_around(data, address);
        uintptr_t original = address;
        if (block == NULL)
            gomp_fatal("couldn't find matching task_reduction or reduction with task modifier "
                       "for %p", pointers[i]);
        uintptr_t offset = entry ? entry[OFFSET] : (address - block[MEMORY]) % block[SIZE];
        if (!entry && i < originals && !(original = original_at(block, offset)))
            gomp_fatal("couldn't find matching task_reduction or reduction with task modifier "
                       "for %p", pointers[i]);
        pointers[i] = (void *)(block[MEMORY] + id * block[SIZE] + offset);
        if (i < originals)
            pointers[count + i] = (void *)original;
    }
}

/* The reductions of a whole region: no task waits for this group, the end of the region does. */
struct gomp_taskgroup *gomp_parallel_reduction_register (uintptr_t *data, unsigned nthreads)
{
    struct gomp_taskgroup *group = make_group(NULL, NULL);
    register_blocks(data, NULL, NULL, nthreads);
    group->reductions = data;
    return group;
}

/* The blocks of a worksharing construct: `first` was registered by the thread that came first. */
void gomp_workshare_task_reduction_register (uintptr_t *data, uintptr_t *first)
{
    struct gomp_thread *thr = gomp_thread();
    struct gomp_taskgroup *group = thr->task->taskgroup;
    register_blocks(data, group->reductions, first, thr->ts.team->nthreads);
    group->reductions = data;
}

void gomp_workshare_taskgroup_start (void)
{
    struct gomp_thread *thr = gomp_thread();
    if (thr->ts.team == NULL)
        gomp_create_artificial_team();
    thr->task->taskgroup = make_group(thr->task->taskgroup, thr->task);
    thr->task->taskgroup->workshare = true;
}

void GOMP_workshare_task_reduction_unregister (bool cancelled)
{
    struct gomp_thread *thr = gomp_thread();
    uintptr_t *data = thr->task->taskgroup->reductions;
    GOMP_taskgroup_end();
    if (thr->ts.team_id == 0)
        GOMP_taskgroup_reduction_unregister(data);
    else
        free((struct table *)data[TABLE]);
    if (!cancelled)
        gomp_team_barrier_wait(&thr->ts.team->barrier);
}

ialias (GOMP_taskgroup_start)
ialias (GOMP_taskgroup_end)
ialias (GOMP_taskgroup_reduction_register)
ialias (GOMP_taskgroup_reduction_unregister)
