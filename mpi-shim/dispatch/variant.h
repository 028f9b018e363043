/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* variant.h - what the wrappers ask of the dispatcher (variant.c). */
#ifndef SHIM_VARIANT_H
#define SHIM_VARIANT_H

#include "libinvasive/process/triggers.h"
#include "mpi-shim/dispatch/hook.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Written by the dispatcher (resolve.c) when it has loaded the variant and knows all of
 * shim_symbols; `hooked` by shim_watch_set_up. */
extern struct shim_dispatcher {
    /* First, since testsuite/mpi/test_threads.py reads it with a debugger.  True: the library calls
     * the hook while it waits.  The same in all ranks; set once. */
    bool hooked;
    ptrdiff_t caller_offset; /* of shim_caller from the thread pointer */
    void (*wrap)(bool wrap);
    void (*set_hook)(hook_polled *polled, unsigned every_polls);
} shim_dispatcher;

static inline bool shim_hooked(void) { return shim_dispatcher.hooked; }
/* Is a call of one rank watched?  Not while triggers are pending (triggers.h): the hook is inside of the
 * library's progress, where no request can be tested.  Collectives cannot choose, since all ranks must
 * take the same form. */
static inline bool shim_watches(void) { return shim_hooked() && !inv_triggers_pending(); }

/* From now on the entries lead to the wrappers, or to the library's own functions. */
void shim_entries_wrap(bool wrap);
/* From now on polled() is called whenever the library polls; NULL: no more (hook.h). */
void shim_hook_set(hook_polled *polled, unsigned every_polls);

#pragma GCC visibility pop
#endif
