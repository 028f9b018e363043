/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* hook.h - being called whenever the MPI library polls (hook.c). */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include <stdbool.h>

/* From now on polled() is called when a thread is in the library's progress engine, in a
 * library that can be made to: once for about so many polls (Open MPI: 8).  It is told how many
 * it were, and whether the library yields the core afterwards; NULL: no more.  Called in set-up,
 * before there are waits. */
void hook_set(void (*polled)(unsigned polls, bool library_yields), unsigned every_polls);

#endif
