/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * pull.h - cores that another program uses as well: a program whose CPUs are set to that one, and
 * that no resource manager knows of.
 *
 * A thread that holds such a core waits for a processor again and again, while other threads of its
 * team have done their part and sleep.  The kernel would pull it to an idle processor, in its load
 * balancing, if it were not pinned.  A thread that is about to sleep therefore pulls it: the pulled
 * thread runs on the sleeper's core, and goes back to its own when the sleeper wakes up.  Each
 * keeps its hold.
 */
#ifndef INV_PULL_H
#define INV_PULL_H

#include <stdbool.h>
#include <stdint.h>

struct inv_pulled {
    int32_t tid; /* thread id, 0: none */
    int core;    /* that it holds */
    int cpu;     /* where it has been moved */
};
#define INV_NONE_PULLED ((struct inv_pulled){0, -1, -1})

/* The caller is about to sleep.  If threads of the process often wait for a processor, and no other
 * process of the domain uses cores, the caller pulls one of them to its core.
 * For each sleep; looks at the threads 10 ms apart at least.  Any thread of a managed process; also
 * where threads are not pinned, and does nothing then.
 *   among_own  threads of the process compute without a hold, beside those that hold the cores:
 *              these wait for each other's time slices, and no thread is pulled */
struct inv_pulled inv_pull_waiting(bool among_own);
/* The caller has slept: the pulled thread goes back to the core that it holds, if it still holds
 * that core and its CPUs are as they were set. */
void inv_pull_end(const struct inv_pulled *pulled);
/* For the child of a fork. */
void inv_pull_forget(void);

#endif
