/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * pin.h - where threads may run: the calling thread on the core that it holds, an evicted one on all
 * others, a child where the program may.
 *
 * A thread that holds a core is pinned to it.  Threads of a process that has no region of our OpenMP
 * runtime are only moved there (inv_threads_bind), and while strangers compute (strangers.h) the kernel
 * places the threads.
 */
#ifndef INV_PIN_H
#define INV_PIN_H

#include "libinvasive/process/thread.h"

/* From now on threads that hold a core are bound to it (inv_bind_threads of hold.h, which also binds
 * the caller).  Returns whether they were before. */
bool inv_threads_bind(void);
bool inv_threads_are_bound(void);
/* Pins the calling thread to the core that it holds from now on, if it is not there.  pinned: the waker
 * has pinned it. */
void inv_thread_pin(int core, bool pinned);
/* The calling thread has lost its core: the evicting process has re-pinned the thread. */
void inv_thread_lost_core(void);
/* For the child of a fork: what its thread knows of its affinity is void. */
void inv_pin_forget(void);
/* Let the kernel place the threads that hold a core, or bind them again.  Threads that hold a core now
 * are let go at once; the others, and binding, when their next hold begins.  One thread at a time. */
void inv_place_by_kernel(bool by_kernel);
bool inv_placed_by_kernel(void);
/* What that has said last, for the calling thread, which may hold its core for long. */
void inv_thread_follow_placement(void);
/* The core that the calling thread is pinned to as far as it knows, INV_HOLD_NONE if it is not. */
int inv_thread_core(void);
/* May the calling thread's affinity be ours: one core, or, since it was evicted, all but one? */
bool inv_thread_pinned(void);
/* Let it run wherever threads of the process may, for a while; returns what to repin it with.  For
 * a child: with the affinity that the program sees. */
int inv_thread_unpin(void);
int inv_thread_unpin_for_child(void);
/* The calling thread holds a token beside holders of cores: it runs where the kernel puts it, until its
 * next hold begins. */
void inv_thread_float(void);
/* The calling thread lends its core, and may be awake: it runs where the kernel puts it, soon after it
 * wakes, until its next hold begins or it makes a child. */
void inv_thread_let_go(void);
/* Where threads may run that hold no core: wide_mask, without the CPUs of cores that are another
 * user's now (table.h, INV_ELSEWHERE). */
void inv_wide_cpus(struct inv_cpus *cpus);
/* What the program has: the same, or the CPUs that its launcher has bound it to. */
void inv_own_cpus(struct inv_cpus *cpus);
/* Back to where inv_thread_unpin said. */
void inv_thread_repin(int pinned);
/* The caller has slept where a waker may have pinned it: what it knew of that is void. */
void inv_thread_was_asleep(void);
/* The same, and most likely to this core.  (What inv_thread_core says then is a guess.) */
void inv_thread_woken_on(int core);
/* Anonymous mode, for the thread that joined: from now on inv_assigned_core_follow is for it. */
void inv_assigned_core_enable(void);
/* Run on the assigned core from now on, or on any core again, if that has changed and threads are
 * bound.  For that thread; others ignore it.  Two loads when nothing has changed. */
void inv_assigned_core_follow(void);
/* Say in our slot whether threads are bound, for the caller, which has just joined.  Any thread. */
void inv_slot_publish_binding(void);
/* Does the process in this slot bind its threads to their cores (inv_bind_threads)? */
bool inv_slot_binds(unsigned slot);
/* Move the thread that has been evicted from a core, a thread of the process in this slot, to the
 * other cores of the domain. */
void inv_repin_evicted(int core, unsigned slot);
/* Let any thread of the domain compute on all of its cores but one; INV_NO_CORE: on all.  binds:
 * the thread's process binds its threads.  If it does not, the thread is moved off the core and has
 * its former affinity again: its process may be about to ask the kernel how many threads it may
 * have. */
void inv_repin_but(int core, int tid, bool binds);

#endif
