/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * messages.h - what the library prints while it is loaded waits for the first use (use.h).  For
 * upstream's files that print.
 */
#ifndef GOMP_MESSAGES_H
#define GOMP_MESSAGES_H 1

#include <stdbool.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)
/* stderr; while the library is loaded a buffer, which the first use writes out, or
 * gomp_messages_release. */
extern FILE *gomp_messages (void);
extern void gomp_messages_release (void);
/* The same; show: else what has been said is forgotten. */
extern void gomp_messages_end (bool show);
/* The library has been loaded, by the calling thread: the default team size is known. */
extern void gomp_messages_loaded (void);
#pragma GCC visibility pop
#endif
