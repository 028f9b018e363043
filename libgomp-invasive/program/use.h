/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * use.h - has this process begun to use OpenMP?
 *
 * `invade` preloads the library into every process of its command: shells, mpiexec, compilers.
 * Stock libgomp prints what OMP_DISPLAY_ENV asks for, warns of values that it does not understand,
 * and binds the initial thread to the first place, all when it is loaded.  In a process that is
 * linked with libgomp the fork does so too.  In any other process it reads the environment when it
 * is loaded, says nothing, binds nothing, and asks no resource manager; all this waits until a
 * thread needs a default team size or another internal control variable, as each parallel region
 * does.
 *
 * Comes to libgomp.h through bar.h, where all symbols are hidden, so it includes no header of the C
 * library and knows no other type of libgomp's.
 */
#ifndef GOMP_USE_H
#define GOMP_USE_H 1

#include <stdbool.h>

struct gomp_task_icv;

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility push(hidden)
#endif

/* The internal control variables that the calling thread begins with; NULL: it has not used OpenMP
 * yet.  The function finds them, at the thread's first use. */
extern __thread struct gomp_task_icv *gomp_thread_icv __attribute__((tls_model("initial-exec")));
extern struct gomp_task_icv *gomp_find_thread_icv (void) __attribute__((cold));

/* In place of the address of gomp_global_icv (gomp_icv, see upstream.sh). */
static inline struct gomp_task_icv *gomp_default_icv (void)
{
    struct gomp_task_icv *icv = gomp_thread_icv;
    return __builtin_expect(icv != NULL, 1) ? icv : gomp_find_thread_icv();
}

/* Has a thread that the program has created begun to use OpenMP?  The second function notes
 * that. */
extern bool gomp_use_has_further_threads (void);
extern void gomp_use_add_further_threads (void);
/* All constructors that read the environment have run. */
extern void gomp_use_loaded (void);
/* Is the first use when the library is loaded?  If an object of the process is linked with
 * libgomp. */
extern bool gomp_use_at_once (void);
/* Is the library still being loaded?  Not any more once the second function has been called. */
extern bool gomp_use_loading (void);
extern void gomp_use_is_loaded (void);
/* The calling thread is in the first place.  It is bound there, unless it holds a core, or will
 * hold one when the process joins the resource manager. */
extern void gomp_take_first_place (void);
extern void gomp_use_forget (void);

#ifdef HAVE_ATTRIBUTE_VISIBILITY
#pragma GCC visibility pop
#endif
#endif
