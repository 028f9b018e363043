/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* cpulist.c - the list is the user's, so every character is looked at. */
#define _GNU_SOURCE
#include "cpulist.h"

#include <errno.h>
#include <stdlib.h>

/* A CPU number at *list, which moves on behind it; -1 none. */
static long cpu_number(const char **list)
{
    char *end;
    if (**list < '0' || **list > '9')
        return -1;
    errno = 0;
    unsigned long cpu = strtoul(*list, &end, 10);
    *list = end;
    return errno || cpu >= CPU_SETSIZE ? -1 : (long)cpu;
}

int inv_cpulist_parse(const char *list, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (;;) {
        long first = cpu_number(&list), last = first;
        if (*list == '-') {
            list++;
            last = cpu_number(&list);
        }
        if (first < 0 || last < first)
            return -1;
        for (long cpu = first; cpu <= last; cpu++)
            CPU_SET((size_t)cpu, set);
        if (*list == '\0')
            return 0;
        if (*list++ != ',')
            return -1;
    }
}
