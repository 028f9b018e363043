/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * overflow.h - a message when an implicit task needs more stack than its context has.
 *
 * The program dies of SIGSEGV as it would without the message, at the same instruction.  A program
 * that has a handler for that signal, or ignores it, gets no message.
 */
#ifndef GOMP_OVERFLOW_H
#define GOMP_OVERFLOW_H 1

#include <stddef.h>

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* Memory below a stack that cannot be accessed, so that an overflow is a fault. */
struct gomp_guard {
    const char *first;
    size_t bytes;
    const unsigned *number;   /* thread number of the implicit task on the stack */
    struct gomp_guard *older; /* in the list of all */
};
/* From now on a fault in the guard is an overflow.  The guard is never taken back. */
extern void gomp_overflow_guard (struct gomp_guard *);

/* Contexts are to run on the calling kernel thread.  It gets a stack for signal handlers, unless it has
 * one: there is no room for a handler on the stack that has overflowed.  errno stays as it is. */
extern void gomp_overflow_watch (void);
/* The calling kernel thread runs contexts no more. */
extern void gomp_overflow_leave (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
