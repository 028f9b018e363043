/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * ptrlock.c - upstream's ptrlock.c, waiting and waking through overlay/wait.h.
 *
 * Upstream's file would find the wait.h beside itself.  The overlay's is included first and has the
 * same include guard.
 */
#include "wait.h"

#include <config/linux/ptrlock.c>
