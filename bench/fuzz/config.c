/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config.c - the parser of rmd.conf: every error says where it is, and what is taken for good can
 * be taken again from the texts that it keeps.  (testsuite/rmd/programs/rmd_config_fuzz.c looks at the values.)
 *
 * There is one user, root, and one group of that name: to ask the system, which opens libraries and
 * files for each name, takes longer than all the rest.  So do hwloc's plugins, which are loaded for
 * the first topology and unloaded with the last, and the machines that hwloc makes up: of these one
 * in sixteen is made, the others are refused.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "libinvasive/table/topology.h"

#include <grp.h>
#include <hwloc.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct group *fuzz_group(const char *name)
{
    static struct group root;
    return strcmp(name, "root") ? NULL : &root;
}

static struct passwd *fuzz_user(const char *name)
{
    static struct passwd root;
    return strcmp(name, "root") ? NULL : &root;
}

static int fuzz_emulate(struct inv_topology *t, const char *description, bool smt)
{
    unsigned hash = 0;
    for (const char *c = description; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return hash % 16 && description[strspn(description, "0123456789")]
               ? -1
               : inv_topology_emulate(t, description, smt);
}

#define inv_topology_emulate fuzz_emulate
#define getgrnam fuzz_group
#define getpwnam fuzz_user
#include "../../rmd/config/settings.c"
#undef inv_topology_emulate
#undef getgrnam
#undef getpwnam

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
    static hwloc_topology_t kept;
    if (!kept && hwloc_topology_init(&kept))
        abort();
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
