/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * blas.h - OpenBLAS on POSIX threads computes with one thread inside of parallel regions.
 *
 * Such an OpenBLAS has a thread for each CPU, knows nothing of OpenMP, and serves one call at a
 * time.  Implicit tasks that call it wait for each other, and for its threads, to which they leave
 * no core.  OpenBLAS on OpenMP, and other BLAS libraries that know OpenMP, compute with one thread
 * there by themselves.
 */
#ifndef GOMP_BLAS_H
#define GOMP_BLAS_H 1

#include <stdatomic.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* The copies that are loaded: a program may have one, and each Python package another. */
enum { GOMP_BLAS_COPIES = 4 };

struct gomp_blas {
    /* `set`, `get`: written by gomp_blas_search before `copies` (release), which is read before them (acquire). */
    struct {
        void (*set) (int);
        int (*get) (void);
        /* How many threads the copy used when a region began.  Written by masters; relaxed: if two
         * masters have regions at a time, both find the same. */
        _Atomic int threads;
    } copy[GOMP_BLAS_COPIES];
    /* Number of usable entries of `copy`; they only become more.  Writer: the thread that searches
     * (release).  Reader: masters (gomp_blas_restrict, acquire). */
    _Atomic unsigned copies;
    /* Is a search at work?  Set and cleared by the thread that searches, a master: a lock that is
     * only tried (acquire; partner: the release of the search before). */
    _Atomic bool searching;
    /* How many objects had been loaded when the last search began.  Written under `searching`, and
     * read by masters before it, relaxed: an older value only makes a search look at objects
     * again. */
    _Atomic unsigned long long loaded;
};
extern struct gomp_blas gomp_blas;

/* Look for copies in objects that have been loaded since the last call.  Called by a master before a region of a
 * function that is new: some 0.1 us where no object is.  Copies that it finds are never unloaded. */
extern void gomp_blas_search (void);
/* Copies that compute with several threads use one from now on.  Returns which, one bit each, for
 * gomp_blas_release.  Called by the master of a region that is not nested. */
extern unsigned gomp_blas_restrict (void);
/* These copies use as many threads as before, except where the program has asked for more than one meanwhile. */
extern void gomp_blas_release (unsigned restricted);

static inline bool gomp_blas_is_loaded (void)
{
    return atomic_load_explicit(&gomp_blas.copies, memory_order_relaxed) > 0; /* acquire: gomp_blas_restrict */
}
#pragma GCC visibility pop
#endif
