/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * guest.h - cores that another program uses as well: a program that is bound there, and that no
 * resource manager knows of.
 *
 * A thread that holds such a core waits for a processor again and again, while other threads of its
 * team have done their part and sleep.  The kernel would move it to an idle processor if it were not
 * bound.  A thread that is about to sleep therefore takes it in as a guest: the guest runs on the
 * sleeper's core, and goes back to its own when the sleeper wakes up.  Each keeps its hold.
 */
#ifndef INV_GUEST_H
#define INV_GUEST_H

#include <stdbool.h>
#include <stdint.h>

struct inv_guest {
    int32_t tid; /* thread id, 0: none */
    int core;    /* that it holds */
    int cpu;     /* where it has been moved */
};
#define INV_NO_GUEST ((struct inv_guest){0, -1, -1})

/* The calling thread, which is about to sleep, takes in a thread of the process that waits for a
 * processor on its core, if threads do so often and no other process of the domain uses cores.
 * For each sleep; looks at the threads 10 ms apart at least.  Any thread of a managed process; also
 * where threads are not bound, and does nothing then.
 *   among_own  threads of the process compute without a hold, beside those that hold the cores: these
 *              wait for each other's time slices, and no thread is taken in */
struct inv_guest inv_guest_take_in(bool among_own);
/* The caller has slept: the guest goes back to the core that it holds, if it still holds it and its
 * CPUs are as they were set. */
void inv_guest_leaves(const struct inv_guest *guest);
/* For the child of a fork. */
void inv_guests_forget(void);

#endif
