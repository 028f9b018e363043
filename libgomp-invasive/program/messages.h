/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * messages.h - what upstream's files print while the library is loaded is held back until the
 * process uses OpenMP (use.h).
 */
#ifndef GOMP_MESSAGES_H
#define GOMP_MESSAGES_H 1

#include <stdbool.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)
/* Where to print: stderr, or a buffer while the library is loaded.  The first use writes the buffer
 * out, or the second function, before an exit. */
extern FILE *gomp_messages (void);
extern void gomp_messages_release (void);
/* Ends the buffer: writes it out if `show`, else drops it. */
extern void gomp_messages_end (bool show);
/* The calling thread has loaded the library.  Notes the default team size that the buffer may
 * show. */
extern void gomp_messages_loaded (void);
#pragma GCC visibility pop
#endif
