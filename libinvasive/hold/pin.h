/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * pin.h - where threads may run: the calling thread on the core that it holds, an evicted one on all
 * others, a child where the program may.
 *
 * A thread that holds a core is pinned to it.  Threads of a process that has no region of our
 * OpenMP runtime are only moved there (inv_pinning_enable), and while strangers compute
 * (strangers.h) the kernel places the threads.
 */
#ifndef INV_PIN_H
#define INV_PIN_H

#include "libinvasive/process/thread.h"

/* From now on threads that hold a core are pinned to it (inv_pin_threads of hold.h, which also pins
 * the caller).  Returns whether they were before. */
bool inv_pinning_enable(void);
/* Are they?  relaxed: a thread that reads it late is pinned when its next hold begins. */
bool inv_pinning_enabled(void);
/* Pins the calling thread to the core that it holds from now on, if it is not pinned there already.
 * pinned: the waker has pinned it. */
void inv_thread_pin(int core, bool pinned);
/* The calling thread has lost its core: the evicting process has re-pinned the thread. */
void inv_thread_lost_core(void);
/* For the child of a fork: what its thread knows of its affinity is void. */
void inv_pin_forget(void);
/* by_kernel true: the kernel places the threads that hold a core, those that hold one now at once.
 * False: they are pinned again.  Otherwise a thread follows when its next hold begins.  The
 * argument differs from that of the last call, at first false.  One thread at a time. */
void inv_place_by_kernel(bool by_kernel);
bool inv_placed_by_kernel(void);
/* The calling thread, which may keep its hold for long, follows inv_place_by_kernel now. */
void inv_thread_follow_placement(void);
/* Pins thread `tid` of the process, which holds `core`, to the CPU where the caller runs, until it
 * begins another hold, or inv_thread_move_back.  Returns the CPU; -1, and nothing is done, if the
 * thread was not pinned to its core: the program or an operator has set its CPUs. */
int inv_thread_move_here(int tid, int core);
/* Pins the thread to that core again, or if it does not hold that any more, when its next hold
 * begins.  Nothing is done if its CPUs are not that `cpu` any more. */
void inv_thread_move_back(int tid, int core, int cpu);
/* The core that the calling thread is pinned to as far as it knows, INV_HOLD_NONE if it is not. */
int inv_thread_core(void);
/* May we have set the calling thread's affinity: to one core or, since it was evicted, to all but
 * one? */
bool inv_thread_pinned(void);
/* The calling thread may run wherever threads of the process may, until inv_thread_repin with the
 * number that this returns.  _for_child: with the affinity that the program sees, for a thread or
 * process that the caller is about to create. */
int inv_thread_unpin(void);
int inv_thread_unpin_for_child(void);
/* Ends inv_thread_unpin, which returned `pinned`. */
void inv_thread_repin(int pinned);
/* The calling thread holds a token beside holders of cores: it runs where the kernel puts it, until its
 * next hold begins. */
void inv_thread_float(void);
/* The calling thread lends its core, and may be awake: it runs where the kernel puts it, soon after it
 * wakes, until its next hold begins or it makes a child. */
void inv_thread_let_go(void);
/* The CPUs where threads without a hold may run: wide_mask, without the CPUs of cores that are
 * another user's now (table.h, INV_ELSEWHERE). */
void inv_wide_cpus(struct inv_cpus *cpus);
/* The CPUs that the program sees: the same, or those that its launcher has bound it to. */
void inv_own_cpus(struct inv_cpus *cpus);
/* The caller has slept where a waker may have pinned it: inv_thread_core does not know any more. */
void inv_thread_was_asleep(void);
/* The same, and the waker has most likely pinned it to `core`, which inv_thread_core returns
 * then. */
void inv_thread_woken_on(int core);
/* Anonymous mode: the calling thread, which has joined, is the one that inv_assigned_core_follow
 * concerns. */
void inv_assigned_core_enable(void);
/* If rmd has changed the slot's `assigned`, and threads are pinned: that thread runs on the
 * assigned core from now on, or on any core again.  Does nothing in other threads.  Two loads when
 * nothing has changed. */
void inv_assigned_core_follow(void);
/* Writes into our slot whether threads are pinned.  Called when the process has joined; any
 * thread. */
void inv_slot_publish_pinning(void);
/* Does the process in this slot pin its threads to their cores (inv_pin_threads)? */
bool inv_slot_pins(unsigned slot);
/* Moves the thread that has been evicted from `core`, a thread of the process in this slot, to the
 * other cores of the domain. */
void inv_repin_evicted(int core, unsigned slot);
/* Lets thread `tid` of any process of the domain run on all cores of the domain but `core`
 * (INV_NO_CORE: on all).  pins: the thread's process pins its threads.  If it does not, the
 * thread is moved off the core and gets its former affinity back: its process may be about to ask
 * the kernel how many threads it may have. */
void inv_repin_but(int core, int tid, bool pins);

#endif
