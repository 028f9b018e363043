/* SPDX-License-Identifier: GPL-3.0-or-later */
/* smt.c - see smt.h. */
#include "rmd/placement/smt.h"

#include <string.h>

int rmd_smt_named(const char *name)
{
    static const char *const names[] = {
        [RMD_SMT_EACH] = "each", [RMD_SMT_CORE] = "core", [RMD_SMT_FIRST] = "first"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}
