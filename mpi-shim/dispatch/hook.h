/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* hook.h - being called whenever the MPI library polls (hook.c). */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

/* Flags of a poll.  YIELDS: the library yields the core afterwards.  ARRIVED: a message has just
 * arrived (UCX only), and the library should go on at once. */
enum { HOOK_YIELDS = 1, HOOK_ARRIVED = 2 };
/* polls: how many polls there were since the last call; 0 with HOOK_ARRIVED.  how: the flags above.
 * Returns the number of polls until the next call; 0: as set by hook_set.  With Open MPI the next
 * call comes after 8 polls in any case. */
typedef unsigned hook_polled(unsigned polls, unsigned how);

/* From now on polled() is called from the library's progress engine, if the library can call it,
 * about once in every_polls polls.  NULL: no more.  Called in set-up, before there are waits, and
 * again when threads may call at once, of which some may be polling. */
void hook_set(hook_polled *polled, unsigned every_polls);

#endif
