/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * mutex.c - upstream's mutex.c, waiting and waking through our wait.h.
 *
 * Upstream's file would find the wait.h beside itself; ours is included first and has
 * the same include guard.
 */
#include "wait.h"
#include "hold.h"

/* Only a mutex that is unlocked wakes threads in that file. */
#define futex_wake gomp_unlock_wake
#include <config/linux/mutex.c>
