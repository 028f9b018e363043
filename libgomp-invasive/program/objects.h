/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * objects.h - which of the loaded ELF objects are linked with libgomp?
 */
#ifndef GOMP_OBJECTS_H
#define GOMP_OBJECTS_H 1

#include <link.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)
/* The object's file name without directories; "" for the program. */
extern const char *gomp_object_name (const struct dl_phdr_info *);
/* Does that name begin with one of these?  beginnings: up to NULL. */
extern bool gomp_object_begins_with (const struct dl_phdr_info *, const char *const *beginnings);
/* The object's segment of this type that is not empty, or NULL. */
extern const ElfW(Phdr) *gomp_object_segment (const struct dl_phdr_info *, ElfW(Word) type);
/* Does the object use one of these functions of other objects?  names: up to NULL. */
extern bool gomp_object_uses (const struct dl_phdr_info *, const char *const *names);
/* Does the object define this function, for other objects to use? */
extern bool gomp_object_defines (const struct dl_phdr_info *, const char *name);
/* Does the object need a library whose name begins so? */
extern bool gomp_object_needs (const struct dl_phdr_info *, const char *beginning);
/* Is a loaded object linked with libgomp.so.1, so that the process has a libgomp also without this
 * one? */
extern bool gomp_program_needs_libgomp (void);
/* Has a package brought a libgomp of its own, under a longer name ("libgomp-a34b3233.so.1.0.0")?
 * The initialisation of such a copy has run then, although its functions are never called. */
extern bool gomp_other_copy_loaded (void);
/* Do implicit tasks of the program, or of a library that is loaded, wait for each other in loops of their own?
 * True with OpenBLAS and BLIS, known by their names, and with an object in whose code such a loop is found
 * (busy_wait.h); only objects that are linked with libgomp count.  The first 8 MiB of their code are searched, for
 * up to 4 ms. */
extern bool gomp_program_busy_waits (void);
/* Do implicit tasks of this outlined function wait for each other in such a loop?  They may if the function is in an
 * object of such a name, or if such a loop is in the 16 KiB of code before or behind its address.  There the compiler
 * is likely to have put what it outlined and inlined.  GOMP_YIELDING_LOOPS: it is in an object of such a name that
 * calls sched_yield meanwhile.  Some 50 us.  The function's object must stay loaded meanwhile, as for a thread that
 * is about to call the function. */
enum gomp_loops { GOMP_NOT_SEARCHED, GOMP_NO_LOOPS, GOMP_LOOPS, GOMP_YIELDING_LOOPS };
extern enum gomp_loops gomp_loops_near (void (*fn) (void *));
#pragma GCC visibility pop
#endif
