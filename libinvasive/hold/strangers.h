/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * strangers.h - threads of the process that neither the OpenMP runtime nor the MPI shim has made: those
 * of the program and of its libraries.
 *
 * While they compute, the kernel places the threads that hold a core, on any core of the domain.  A
 * library whose threads wait for each other calls sched_yield, or sleeps for a moment, and relies on the
 * kernel to move a thread that has work to a processor that has none; the kernel cannot where threads
 * are bound.
 */
#ifndef INV_STRANGERS_H
#define INV_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is one.  At its start; any thread, lock-free.  Of more than INV_STRANGERS threads
 * the later ones are not looked at. */
enum { INV_STRANGERS = 64 };
void inv_stranger_begins(void);
void inv_stranger_ends(void);
/* The calling thread creates threads of the runtime, until it says otherwise. */
void inv_creates_own_threads(bool own);
bool inv_creates_strangers(void);

/* How many strangers there have been.  Writers: inv_stranger_begins, inv_strangers_forget.  relaxed: a
 * hint. */
extern _Atomic uint32_t inv_strangers_count;

/* Look at how much the strangers compute, if the last look was long enough ago, and decide.  Any thread
 * of a managed process that binds its threads to cores; one at a time looks, others return at once. */
void inv_strangers_look(void);
/* The child of a fork has none. */
void inv_strangers_forget(void);

#endif
