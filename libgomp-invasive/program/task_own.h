/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * task_own.h - what the task scheduler adds to upstream's structs (upstream.sh puts these in as
 * first members, `own`).  tasks.h says what they are for.  Comes to libgomp.h through bar.h, so
 * it knows no other type of libgomp's.
 */
#ifndef GOMP_TASK_OWN_H
#define GOMP_TASK_OWN_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gomp_task;
struct gomp_deps;
struct gomp_dep_node;
struct gomp_team_tasks;

/* In struct gomp_task. */
struct gomp_task_own {
    /* What other threads tell this task of its children; see GOMP_DONE_* in tasks.h. */
    _Atomic uint64_t done;
    /* Children that were queued, and those of them that the thread of this task has completed and
     * released itself.  Only touched by the thread that executes this task. */
    uint32_t created, own_done;
    /* Nesting of explicit tasks: 0 in implicit ones.  Thieves read depth and the parent of tasks
     * that may be gone (taskrun.c, is_descendant): accessed by relaxed atomics. */
    uint32_t depth;
    uint8_t memory; /* enum gomp_task_memory */
    uint8_t size_class;
    _Atomic uint8_t detach; /* enum gomp_task_detach */
    /* GOMP_TRAIT_*.  Relaxed: see gomp_shared_queue_insert, by which any thread adds one. */
    _Atomic uint8_t traits;
    union {
        /* while it runs: entries of its thread number's queue from here on are descendants */
        int64_t mark;
        struct gomp_task *link; /* while it is in the shared queue, or about to be queued */
    };
    struct gomp_dep_node *node; /* its dependences on siblings, or NULL */
    uint64_t code_from_ns;      /* of an implicit task: see gomp_cost_code_begins; 0: not timed */
};

enum {
    GOMP_TRAIT_OWN_ARGUMENTS = 1, /* fn_data is a block from malloc */
    GOMP_TRAIT_REPLACES = 2, /* its parent is that of another child, whose body is over already */
    GOMP_TRAIT_SHARED = 4    /* a descendant is in the shared queue, or was */
};

/* Not of a task on a stack, which has none. */
static inline bool gomp_task_has_trait (const struct gomp_task_own *own, uint8_t trait)
{
    return (atomic_load_explicit(&own->traits, memory_order_relaxed) & trait) != 0;
}

static inline void gomp_task_add_trait (struct gomp_task_own *own, uint8_t trait)
{
    atomic_fetch_or_explicit(&own->traits, trait, memory_order_relaxed);
}

/* In struct gomp_team. */
struct gomp_team_own {
    struct gomp_team_tasks *tasks;
};

/* In struct gomp_taskgroup. */
struct gomp_taskgroup_own {
    struct gomp_task *owner; /* the task that waits for the group; NULL: the region does */
};
#endif
