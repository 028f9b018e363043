/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.h - what upstream's files call to wait for a word and to wake threads that do (waiting.h).
 * Replaces config/linux/wait.h and config/linux/<cpu>/futex.h.
 */
#ifndef GOMP_WAIT_H
#define GOMP_WAIT_H 1

#include "libgomp.h"
#include "waiting.h"
#include <errno.h>
#include <limits.h>

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_PRIVATE_FLAG 128

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

extern int gomp_futex_wait, gomp_futex_wake; /* defined by upstream's mutex.c */

static inline void cpu_relax (void)
{
    inv_cpu_relax();
}

/* Spin until *addr != val.  Returns 0 when it changed, 1 when it is time to park. */
static inline int do_spin (int *addr, int val)
{
    return __atomic_load_n(addr, MEMMODEL_RELAXED) == val && !gomp_spin(addr, val);
}

static inline void futex_wait (int *addr, int val)
{
    gomp_park(addr, val);
}

static inline void futex_wake (int *addr, int count)
{
    gomp_unpark(addr, count);
}

static inline void do_wait (int *addr, int val)
{
    gomp_wait_while(addr, val);
}

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
