/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* cpulist.c - parses lists of CPUs such as 0-3,8.  Users write them, so each character is checked. */
#define _GNU_SOURCE
#include "libinvasive/base/cpulist.h"

#include <errno.h>
#include <stdio.h>
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
    return errno || cpu >= INV_MAX_CPUS ? -1 : (long)cpu;
}

int inv_cpulist_parse(const char *list, struct inv_cpus *set)
{
    inv_cpus_clear(set);
    for (;;) {
        long first = cpu_number(&list), last = first;
        if (*list == '-') {
            list++;
            last = cpu_number(&list);
        }
        if (first < 0 || last < first)
            return -1;
        for (long cpu = first; cpu <= last; cpu++)
            inv_cpus_add(set, (size_t)cpu);
        if (*list == '\0')
            return 0;
        if (*list++ != ',')
            return -1;
    }
}

bool inv_cpulist_print(const struct inv_cpus *set, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t first = 0, last; first < INV_MAX_CPUS; first = last + 1) {
        char part[32];
        last = first;
        if (!inv_cpus_has(set, first))
            continue;
        while (inv_cpus_has(set, last + 1))
            last++;
        const char *comma = length ? "," : "";
        int n = last > first ? snprintf(part, sizeof part, "%s%zu-%zu", comma, first, last)
                             : snprintf(part, sizeof part, "%s%zu", comma, first);
        if (length + (size_t)n + sizeof "..." > bytes) {
            snprintf(text + length, bytes - length, "...");
            return false;
        }
        memcpy(text + length, part, (size_t)n + 1);
        length += (size_t)n;
    }
    return true;
}
