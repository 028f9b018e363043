/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * dependences.h - what task/taskdeps.c needs of other files, for a program that is linked with it
 * alone.  Nodes are blocks from malloc, so that AddressSanitizer sees each use of one.
 */
#ifndef DEPENDENCES_H
#define DEPENDENCES_H

#include "tasks.h"
#include <stdlib.h>

/* That are in use.  Blocks that belong to nodes for which many others wait count, too. */
static _Atomic unsigned nodes;

const unsigned short gomp_pool_size[GOMP_POOL_CLASSES] = GOMP_POOL_SIZES;
#undef gomp_own_pool
__thread struct gomp_pool *gomp_own_pool; /* none: each block comes from gomp_pool_refill */
bool gomp_cancel_var;

void *gomp_pool_refill (int class)
{
    atomic_fetch_add_explicit(&nodes, 1, memory_order_relaxed);
    return gomp_malloc(gomp_pool_size[class]);
}

void gomp_pool_overflow (int class, void *block)
{
    (void)class;
    atomic_fetch_sub_explicit(&nodes, 1, memory_order_relaxed);
    free(block);
}

bool gomp_task_cancelled (struct gomp_team *team, struct gomp_taskgroup *group)
{
    (void)team, (void)group;
    return false;
}

void GOMP_task (void (*fn) (void *), void *data, void (*copy) (void *, void *), long size,
                long align, bool deferred, unsigned flags, void **depend, int priority,
                void *detach)
{
    (void)fn, (void)data, (void)copy, (void)size, (void)align, (void)deferred, (void)flags;
    (void)depend, (void)priority, (void)detach;
    gomp_fatal("a task is made");
}

#endif
