/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* cpulist.h - CPU lists as people write them, "0-3,8".  For rmd and invade. */
#ifndef INV_CPULIST_H
#define INV_CPULIST_H

#include "libinvasive/base/cpus.h"

/* Returns 0; or -1 when the list is malformed or names a CPU of INV_MAX_CPUS or more. */
int inv_cpulist_parse(const char *list, struct inv_cpus *set);

/* Writes the set as such a list into `text`, a buffer of `bytes` bytes.  False: the list is cut
 * off, with "..." at the end if there is room for that. */
bool inv_cpulist_print(const struct inv_cpus *set, char *text, size_t bytes);

#endif
