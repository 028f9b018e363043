/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * busy_wait.h - does machine code have loops in which a thread waits until another one writes to memory?
 *
 * Programs whose threads wait for each other in loops of their own (a wavefront that is pipelined by flags)
 * need all their threads on cores.  Where there are more threads than cores each such wait lasts until the
 * kernel takes the core from the thread that waits, some milliseconds later.
 */
#ifndef GOMP_BUSY_WAIT_H
#define GOMP_BUSY_WAIT_H 1

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)
/* Does the machine code, of the kind of processor that this process runs on, have a loop that
 *   - is no longer than BUSY_WAIT_BYTES,
 *   - consists of loads, arithmetic, comparisons, jumps, fences and pauses only,
 *   - has at most BUSY_WAIT_CONDITIONS conditional jumps,
 *   - carries nothing from one turn to the next, neither in a register nor on the stack,
 *   - and goes on, or ends, by conditions on what it has loaded from elsewhere than the stack only?
 * Such a loop does the same in each turn, until another thread changes that memory.  Loops that end
 * after a number of turns, or that call a function, are not found.  The first instruction need not
 * be at the beginning of `code`.  On x86-64 some 0.4 ns for each byte.  Any thread. */
enum { BUSY_WAIT_BYTES = 64, BUSY_WAIT_CONDITIONS = 2 };
extern bool gomp_code_busy_waits (const unsigned char *code, size_t bytes);
#pragma GCC visibility pop
#endif
