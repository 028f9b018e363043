/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * arena.h - arena allocation for policies: memory of the snapshot, given out from the front.  A
 * function that gets a struct rmd_arena by value frees what it has allocated when it returns.
 */
#ifndef RMD_ARENA_H
#define RMD_ARENA_H

#include "libinvasive/base/assertion.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

struct rmd_arena {
    char *at;
};

/* Memory for `count` objects of `size` bytes, aligned as by malloc.  The arena must have room. */
static inline void *rmd_arena_alloc(struct rmd_arena *arena, size_t count, size_t size)
{
    void *memory = arena->at;
    size_t align = alignof(max_align_t);
    inv_assert((uintptr_t)memory % align == 0);
    arena->at += (count * size + align - 1) / align * align;
    return memory;
}

#endif
