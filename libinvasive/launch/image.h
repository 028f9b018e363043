/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * image.h - what the dynamic linker would make of a program and of our preloaded libraries.
 *
 * The dynamic linker checks the versions that the objects of a process need before any constructor
 * runs.  A program that needs a newer libgomp.so.1 than the preloaded one therefore ends before code
 * of ours could help it; and another dynamic linker (musl's, one for 32 bits) cannot load our
 * libraries at all.  So the files are read before exec: the program, the interpreter of a script,
 * and the objects that they need, where the dynamic linker would find them.
 *
 * Linked into libinvasive-process.so and into invade.
 */
#ifndef INV_IMAGE_H
#define INV_IMAGE_H

#include <limits.h>
#include <stdbool.h>

enum inv_image_fit {
    INV_IMAGE_FITS,    /* or nothing is known against it */
    INV_IMAGE_STATIC,  /* no dynamic linker: nothing is preloaded */
    INV_IMAGE_FOREIGN, /* its dynamic linker cannot load our libraries */
    INV_IMAGE_OPENMP,  /* needs something of libgomp.so.1 that ours has not */
};

enum {
    INV_IMAGE_PATH_BYTES = PATH_MAX,
    INV_IMAGE_NEED_BYTES = INV_IMAGE_PATH_BYTES + 64, /* a path and some words */
};

struct inv_image {
    enum inv_image_fit fit;
    char file[INV_IMAGE_PATH_BYTES];   /* the program; of a script its interpreter */
    char object[INV_IMAGE_PATH_BYTES]; /* INV_IMAGE_OPENMP: the program or the library that needs it */
    char need[INV_IMAGE_NEED_BYTES];   /* FOREIGN: the reason; OPENMP: the version, or SYMBOL@VERSION */
};

/*
 * inv_image_inspect - fill *image for the program `file`, a path.
 *   preload       the value of LD_PRELOAD, which names our libraries (preload.h)
 *   library_path  that of LD_LIBRARY_PATH; may be NULL
 * A file that cannot be read, or is no program, fits.  Async-signal-safe: may be called in the
 * child of a fork or vfork.  Leaves no memory mapped and no file open; errno is kept.
 */
void inv_image_inspect(struct inv_image *image, const char *file, const char *preload,
                       const char *library_path);

/* Do two paths name one file, which is there, or are they the same?  Async-signal-safe. */
bool inv_same_file(const char *a, const char *b);

#endif
