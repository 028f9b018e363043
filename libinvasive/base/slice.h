/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * slice.h - the length of a thread's time slices.  Since Linux 6.12 a thread whose slices are short runs
 * as soon as it wakes, also where another thread computes on its core.  A thread with usual slices
 * waits until the other thread's slice is over, 3 ms and more.
 */
#ifndef INV_SLICE_H
#define INV_SLICE_H

#include <stdint.h>

enum { INV_SHORT_SLICE_NS = 100000 /* the least that there is */ };

/*
 * Sets the length of the time slices of thread `tid` (0: the caller), if the thread is under the
 * default policy or SCHED_IDLE: with a real-time policy the latency is low already.
 * Returns the former length in ns; 0 when nothing has changed: the kernel knows no slices, or
 * refuses.  Changes errno.
 */
uint64_t inv_slice_set(int tid, uint64_t slice_ns);

#endif
