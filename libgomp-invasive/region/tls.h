/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tls.h - must implicit task i always run on the same kernel thread?
 */
#ifndef GOMP_TLS_H
#define GOMP_TLS_H 1

#include <stdbool.h>
#include <stddef.h>

/* True when the program or a library that is linked with libgomp has thread-local variables (and so
 * may have threadprivate ones, whose values persist from region to region), or when
 * INVASIVE_BIND=strict; false with INVASIVE_BIND=elastic.  An object that is loaded later is seen
 * when the next region begins. */
#pragma GCC visibility push(hidden)
extern bool gomp_strict_threads (void);
/* When the library is loaded. */
extern void gomp_tls_loaded (void);
/* May an implicit task that waits continue on another kernel thread?  As of the last call of
 * gomp_strict_threads: false where there is thread-local data, of any object but a few known ones, or
 * an executable stack, whatever INVASIVE_BIND says. */
extern bool gomp_movable_threads (void);
/* As of that call: it may not, because of objects that are loaded, but it may begin on any kernel
 * thread. */
extern bool gomp_threads_stay (void);
/* May it, with the objects that are loaded now, and may implicit tasks be contexts?  For the
 * default team. */
extern bool gomp_may_move_threads (void);
/* Has what the functions above say changed since the last call by any thread?  Then gomp_what_ties_threads may
 * say something else. */
extern bool gomp_ties_are_new (void);
/* Does something keep implicit tasks that wait on their kernel threads, as of the last call of
 * gomp_strict_threads?  Then its name: a file's, "" the program, a variable, or "shadow stacks" and the like; at most
 * `bytes` with the final 0.  Takes microseconds. */
extern bool gomp_what_ties_threads (char *name, size_t bytes);
/* Does an object that is linked with libgomp bind threads to processors itself?  Of those loaded now. */
extern bool gomp_program_binds_threads (void);
#pragma GCC visibility pop
#endif
