/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * preload.h - our libraries in LD_PRELOAD, and which of them a program gets.
 *
 * invade puts libinvasive-process.so, libgomp.so.1 and libinvasive-mpi.so there, in this order
 * (preload_list.h).  A program that cannot have them (image.h) gets:
 *
 *   LD_PRELOAD without libgomp.so.1, and INVASIVE_STOCK, the path of that libgomp.so.1, if the
 * program
 *     needs a newer one.  libinvasive-process.so stays: programs that this one starts get all of
 * ours
 *   LD_PRELOAD without any of ours, if the program's dynamic linker cannot load them
 *   the same LD_PRELOAD, if it is linked statically and ignores it: programs that it starts may not
 *
 * Linked into libinvasive-process.so and into invade.
 */
#ifndef INV_PRELOAD_H
#define INV_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define INV_STOCK_VARIABLE "INVASIVE_STOCK"

/* The file that execvp would start for a name without a slash, in path; NULL: there is none.  Async-signal-safe. */
const char *inv_search_path(const char *file, char path[PATH_MAX]);

/*
 * How many bytes inv_preload_environment needs for this environment; 0: none, since it names none of
 * our libraries.  envp may be NULL.
 */
size_t inv_preload_room(char *const envp[]);

/*
 * inv_preload_environment - the environment in which the program `file` is to be started: `envp`, or
 * a copy in `room` (NULL: always envp) in which LD_PRELOAD and INVASIVE_STOCK differ.
 *   search  find `file` on $PATH of this process if it has no slash in it, as execvp does
 *   who     the prefix of the message: "invade" or "invasive"
 * Where the program is not to be managed, one line on stderr says so, once for each launch and node.
 * Async-signal-safe.  errno is kept.
 */
char *const *inv_preload_environment(const char *file, bool search, char *const envp[], void *room,
                                     const char *who);

#endif
