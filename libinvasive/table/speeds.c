/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* speeds.c - see speeds.h. */
#include "libinvasive/table/speeds.h"
#include "libinvasive/table/table.h"

#include <stdlib.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "COUNT" or "COUNTxSPEED"; *text is moved behind it. */
static bool parse_item(const char **text, unsigned long *count, double *speed)
{
    char *end;
    if (!is_digit(**text))
        return false;
    *count = strtoul(*text, &end, 10);
    *speed = 1;
    if (*end == 'x' && is_digit(end[1]))
        *speed = strtod(end + 1, &end);
    *text = end;
    return *count > 0 && *speed >= 0.01 && *speed <= 1;
}

unsigned inv_speeds_parse(const char *text, unsigned most, unsigned short *speed)
{
    unsigned n = 0;
    for (;; text++) {
        unsigned long count;
        double part;
        if (!parse_item(&text, &count, &part) || count > most - n)
            return 0;
        for (; count; count--, n++)
            if (speed)
                speed[n] = (unsigned short)(part * INV_WHOLE_SPEED + 0.5);
        if (*text != ',')
            return *text ? 0 : n;
    }
}
