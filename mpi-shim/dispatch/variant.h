/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* variant.h - what the wrappers ask of the dispatcher (variant.c). */
#ifndef SHIM_VARIANT_H
#define SHIM_VARIANT_H

#include "mpi-shim/dispatch/hook.h"

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* From now on the entries lead to the wrappers, or to the library's own functions. */
void shim_entries_wrap(bool wrap);
/* From now on polled() is called whenever the library polls; NULL: no more (hook.h). */
void shim_hook_set(hook_polled *polled, unsigned every_polls);
/* Does the library call the hook while it waits?  The same in all ranks; set once, in set-up, by
 * shim_watch_set_up. */
extern bool shim_hooked;

#pragma GCC visibility pop
#endif
