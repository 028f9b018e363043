/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * assertion.h - what must hold at a transition, said where it happens.  `configure --enable-assertions`
 * checks it; otherwise an assertion is compiled, for its types, and generates no code.
 *
 * A condition has no side effect, and no other thread can make it false while it is evaluated.  It
 * reads what this process alone writes, or a value that has been loaded and validated: a member may
 * write anything into the core table at any time, and neither rmd nor its peers may end for that.
 * Async-signal-safe.
 */
#ifndef INV_ASSERTION_H
#define INV_ASSERTION_H

#ifdef INV_ASSERTIONS
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One write, so that lines of several processes do not mix.  No buffer, no lock: the assertion may be
 * in a signal handler, or in a thread that holds libc's locks. */
static __attribute__((noreturn, cold, noinline, unused)) void inv_assertion_failed(const char *line)
{
    /* Where stderr is closed the core dump has the line. */
    (void)!write(STDERR_FILENO, line, strlen(line));
    abort();
}

#define INV_ASSERTION_TEXT(number) #number
#define INV_ASSERTION_LINE(number) INV_ASSERTION_TEXT(number)
#define inv_assert(condition)                                                                      \
    (__builtin_expect(!(condition), 0)                                                             \
         ? inv_assertion_failed("invasive: assertion failed: " __FILE__                            \
                                ":" INV_ASSERTION_LINE(__LINE__) ": " #condition "\n")             \
         : (void)0)
#else
#define inv_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

#endif
