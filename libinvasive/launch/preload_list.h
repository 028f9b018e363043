/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * preload_list.h - the entries of LD_PRELOAD's value, and which of them are our libraries: those whose
 * file name begins with "libinvasive", and a libgomp.so.1 directly behind one of them.
 */
#ifndef INV_PRELOAD_LIST_H
#define INV_PRELOAD_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct inv_preload_entry {
    const char *text; /* not NUL-terminated */
    size_t length;
    bool ours, openmp; /* openmp: our libgomp.so.1 */
};

/* The next entry of LD_PRELOAD's value from *rest on, which moves behind it; *entry is the one
 * before, {0} at first.  False: there are no more. */
bool inv_preload_next(const char **rest, struct inv_preload_entry *entry);

#endif
