/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_bounds.h - numbers and names that any process may have written: numbers are limited to
 * possible values, and names made printable.
 */
#ifndef INVADE_BOUNDS_H
#define INVADE_BOUNDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static inline double ns_to_seconds(uint64_t ns) { return (double)ns * 1e-9; }
static inline double smaller_of(double a, double b) { return a < b ? a : b; }
static inline double larger_of(double a, double b) { return a > b ? a : b; }
/* part / whole, limited to 0..1; 1 if whole is not positive. */
static inline double share_of(double part, double whole)
{
    return whole > 0 ? larger_of(0, smaller_of(1, part / whole)) : 1;
}

/* A number of our copy of a record.  Only this thread accesses the copy. */
static inline uint64_t load_number(const _Atomic uint64_t *number)
{
    return atomic_load_explicit((_Atomic uint64_t *)number, memory_order_relaxed);
}
static inline uint32_t load_number32(const _Atomic uint32_t *number)
{
    return atomic_load_explicit((_Atomic uint32_t *)number, memory_order_relaxed);
}

static inline uint64_t limit_number(uint64_t n, uint64_t low, uint64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* Copies at most `length` bytes of `from` to `to`, which has `room` bytes; terminates the copy, and
 * replaces bytes that are not printable ASCII. */
static inline void copy_printable(char *to, size_t room, const char *from, size_t length)
{
    size_t i = 0;
    for (; i + 1 < room && i < length && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

#endif
