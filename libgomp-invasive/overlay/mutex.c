/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * mutex.c - upstream's mutex.c, waiting and waking through overlay/wait.h.
 *
 * Upstream's file would find the wait.h beside itself.  The overlay's is included first and has the
 * same include guard.
 */
#include "wait.h"
#include "hold.h"

/* Upstream's file calls futex_wake in one place: to unlock a mutex. */
#define futex_wake gomp_unlock_wake
#include <config/linux/mutex.c>
