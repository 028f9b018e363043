/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * current.h - what gomp_thread() is.
 *
 * libgomp keeps what it knows of a thread of a team in a struct of the kernel thread.  An implicit
 * task that runs in a context (context.h) takes that struct along from one kernel thread to another.
 *
 * Comes to libgomp.h through bar.h, where all symbols are hidden, so it includes none of the C library.
 */
#ifndef GOMP_CURRENT_H
#define GOMP_CURRENT_H 1

#include "own.h"

struct gomp_thread;

/* The struct of the context that the calling kernel thread executes; NULL: of the kernel thread
 * itself.  (See upstream.sh.) */
extern __thread struct gomp_thread *gomp_current
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define gomp_current GOMP_OWN(gomp_current)

#endif
