/* SPDX-License-Identifier: GPL-3.0-or-later */
/* core_list.c - see core_list.h. */
#include "rmd/config/core_list.h"
#include "rmd/config/control_protocol.h"
#include "libinvasive/base/assertion.h"

#include <stdio.h>
#include <string.h>

void rmd_list_cores(const uint64_t *set, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        if (!inv_set_has(set, c))
            continue;
        unsigned last = c;
        while (last + 1 < INV_MAX_CORES && inv_set_has(set, last + 1))
            last++;
        char part[32];
        int n = last > c ? snprintf(part, sizeof part, "%s%u-%u", length ? "," : "", c, last)
                         : snprintf(part, sizeof part, "%s%u", length ? "," : "", c);
        if (length + (size_t)n + sizeof "..." > bytes) {
            snprintf(text + length, bytes - length, "...");
            return;
        }
        inv_assert(n > 0 && (size_t)n < sizeof part && length + (size_t)n < bytes);
        memcpy(text + length, part, (size_t)n + 1);
        length += (size_t)n;
        c = last;
    }
}
