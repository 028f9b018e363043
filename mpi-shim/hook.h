/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* hook.h - being called whenever the MPI library polls (hook.c). */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include <stdbool.h>

/* From now on polled() is called whenever a thread is in the library's progress engine, in a
 * library that can be made to, and is told whether the library yields the core afterwards;
 * NULL: no more.  Called in set-up, before there are waits. */
void hook_set(void (*polled)(bool library_yields));

#endif
