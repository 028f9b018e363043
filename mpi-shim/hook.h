/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* hook.h - being called whenever the MPI library polls (hook.c). */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

/* What is known of a poll: the library yields the core afterwards; something has just arrived (UCX
 * only), and the library is to go and see what. */
enum { HOOK_YIELDS = 1, HOOK_ARRIVED = 2 };
/* Told how many polls there were since the last time; 0 with HOOK_ARRIVED.  Returns after how many
 * more it wants to be told again, 0: as usual (Open MPI: 8, whatever it says). */
typedef unsigned hook_polled(unsigned polls, unsigned how);

/* From now on polled() is called when a thread is in the library's progress engine, in a
 * library that can be made to: usually once for about so many polls; NULL: no more.  Called in
 * set-up, before there are waits; and again when threads may call at once, some of which may poll. */
void hook_set(hook_polled *polled, unsigned every_polls);

#endif
