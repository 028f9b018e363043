/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c - the parser of rmd.conf: every error says where it is, and what is taken for good can
 * be taken again from the texts that it keeps.  (testsuite/rmd_config_fuzz.c looks at the values.)
 */
#include "fuzz.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void complaint(void *context, const char *line)
{
    unsigned *told = context, where;
    ++*told;
    if (strlen(line) >= RMD_CONFIG_MESSAGE || sscanf(line, "f:%u:", &where) != 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct rmd_settings s, again;
    char why[RMD_CONFIG_MESSAGE];
    unsigned told = 0;
    rmd_config_defaults(&s);
    unsigned errors = rmd_config_parse(&s, "f", (const char *)data, bytes, complaint, &told);
    if (told != (errors < RMD_CONFIG_ERRORS ? errors : RMD_CONFIG_ERRORS))
        abort();
    if (errors)
        return 0;
    rmd_config_defaults(&again);
    for (int k = 0; k < RMD_KEYS; k++)
        if (*s.text[k] && !rmd_config_set(&again, (enum rmd_key)k, s.text[k], why))
            abort();
    return 0;
}
