/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * strangers.h - threads of the process that neither the OpenMP runtime nor the MPI shim has made: those
 * of the program and of its libraries.
 *
 * While they compute, the kernel places the threads that hold a core, on any core of the domain.  A
 * library whose threads wait for each other calls sched_yield, or sleeps for a moment, and relies on the
 * kernel to move a thread that has work to a processor that has none; the kernel cannot where threads
 * are pinned.
 */
#ifndef INV_STRANGERS_H
#define INV_STRANGERS_H

#include "libinvasive/process/thread.h"

#include <stdbool.h>
#include <stdint.h>

enum { INV_STRANGERS = 64 }; /* how many strangers are looked at, the first that begin */

/* Others than strangers.c read `count` only. */
extern struct inv_strangers {
    /* How many strangers there have been.  Writers: inv_stranger_begins, inv_strangers_forget.  relaxed:
     * a hint */
    _Atomic uint32_t count;
    /* Thread ids, 0: free.  Written by the thread itself, and by inv_strangers_sample when the
     * thread has ended: compare-and-swap, relaxed, since a wrong id only makes the guess worse */
    _Atomic int32_t threads[INV_STRANGERS];
    /* Was management asked for when the first thread was created?  0: not known yet, 1 yes, 2 no.
     * Writer: inv_creates_strangers; relaxed: any thread finds the same */
    _Atomic int asked;
    /* A thread is in inv_strangers_sample, which alone writes what follows */
    _Atomic bool looking;
    _Atomic uint64_t next_ns; /* earliest time of the next sample; relaxed */
    struct {
        struct inv_seen_stranger {
            int32_t tid;
            struct inv_thread_time time;
        } of[INV_STRANGERS];
        uint64_t at_ns;
        unsigned quiet; /* samples in sequence in which the strangers wanted next to nothing */
    } last;
} inv_strangers;

/* The calling thread is a stranger: called at its start, and at its end.  Lock-free. */
void inv_stranger_begins(void);
void inv_stranger_ends(void);
/* own true: threads that the calling thread creates are the runtime's, until it calls this with
 * false. */
void inv_creates_own_threads(bool own);
/* Are threads that the calling thread creates strangers?  False where the process was not launched
 * to be managed. */
bool inv_creates_strangers(void);

/* Measures how much the strangers compute or wait for a processor, and decides whether the kernel
 * places threads (inv_place_by_kernel).  Returns at once if the last sample was not long enough
 * ago, or another thread takes one.  For any thread of a managed process that pins its threads to
 * cores. */
void inv_strangers_sample(void);
/* For the child of a fork, which has no strangers. */
void inv_strangers_forget(void);

#endif
