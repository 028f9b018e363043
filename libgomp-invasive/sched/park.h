/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * park.h - a kernel thread goes to sleep until a word changes, and leaves its core to others.
 */
#ifndef GOMP_PARK_H
#define GOMP_PARK_H 1

#pragma GCC visibility push(hidden)
/* Sleep while *addr == val, until unparked (sleepers.h).  May return early; callers re-check. */
extern void gomp_park_thread (int *addr, int val);
#pragma GCC visibility pop
#endif
