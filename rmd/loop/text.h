/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text.h - words and numbers as the programs read and print them (rmd, rmctl, invade). */
#ifndef RMD_TEXT_H
#define RMD_TEXT_H

#include "libinvasive/table/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number within these bounds, and nothing else. */
static inline bool rmd_number(const char *text, unsigned least, unsigned most, unsigned *value)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
        return false;
    *value = (unsigned)n;
    return true;
}

/* Copies an untrusted name, and makes it printable and terminated, since it goes to terminals.
 * Both have INV_NAME_BYTES, and may be the same. */
static inline void rmd_copy_name(char *to, const volatile char *from)
{
    size_t i = 0;
    /* Each character is read once: processes may write to it meanwhile. */
    for (char c; i < INV_NAME_BYTES - 1 && (c = from[i]); i++)
        to[i] = c > ' ' && c <= '~' ? c : '?';
    memset(to + i, 0, INV_NAME_BYTES - i);
}

/* The end of a word for `n` things: `many`, such as "s" of "core%s", or "" for one thing. */
static inline const char *rmd_plural(unsigned n, const char *many)
{
    return n == 1 ? "" : many;
}

#endif
