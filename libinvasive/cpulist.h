/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* cpulist.h - CPU lists as people write them, "0-3,8".  For rmd and invade. */
#ifndef INV_CPULIST_H
#define INV_CPULIST_H

#include <sched.h>

/* Returns 0; or -1 when the list is malformed or names a CPU beyond CPU_SETSIZE. */
int inv_cpulist_parse(const char *list, cpu_set_t *set);

#endif
