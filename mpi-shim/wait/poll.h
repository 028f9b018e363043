/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* poll.h - a streak of failed tests is a wait (poll.c). */
#ifndef SHIM_POLL_H
#define SHIM_POLL_H

#include "mpi-shim/wait/wait.h"

#pragma GCC visibility push(hidden)

/* The MPI library has made this number of threads of its own, which wait for no lock of the
 * program. */
void shim_poll_library_has(unsigned threads);
/* Has the thread with this address of its own polled last, too?  A hint.  Any thread. */
bool shim_poll_is_by_one_thread(const void *own);
/* Called before a test. */
void shim_poll_begin(void);
/* A test has failed.  True: it is one of a streak, and lending the core is worth it now. */
bool shim_poll_failed(void);
/* Waits inside the test for a short while.  True: done. */
bool shim_poll_wait(struct shim_wait *w);
/* A test has succeeded, which ends the streak. */
void shim_poll_hit(const void *call_site);

#pragma GCC visibility pop
#endif
