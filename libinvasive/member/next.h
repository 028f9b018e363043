/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* next.h - the C library's functions, for functions of ours that replace them in programs. */
#ifndef INV_NEXT_H
#define INV_NEXT_H

#include <dlfcn.h>
#include <stdatomic.h>

/* Of inv_next_definition.  Writers: threads that call the function. */
struct inv_next {
    _Atomic(void *) pthread_create, sched_getaffinity, pthread_getaffinity_np, sched_setaffinity,
        pthread_setaffinity_np; /* affinity.c */
    _Atomic(void *) execve, fexecve, execvpe, posix_spawn, posix_spawnp, system, popen; /* spawn.c */
};
extern struct inv_next inv_next __attribute__((visibility("hidden"))); /* affinity.c */

/* The C library's function of this name.  *cache, NULL at first, is found once; every thread finds the
 * same, so relaxed. */
static inline void *inv_next_definition(_Atomic(void *) *cache, const char *name)
{
    void *found = atomic_load_explicit(cache, memory_order_relaxed);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(cache, found, memory_order_relaxed);
    }
    return found;
}
#define INV_NEXT(name) ((__typeof__(name) *)inv_next_definition(&inv_next.name, #name))

#endif
