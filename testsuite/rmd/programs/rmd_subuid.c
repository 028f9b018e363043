/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_subuid.c - rmd_subuid FILE PASSWD UID... - whose each user ID is by this file of subordinate
 * IDs, and first how many lines of the file are none.
 */
#include "rmd/host/subuid.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 20 };

int main(int argc, char **argv)
{
    FILE *f = argc > 2 ? fopen(argv[1], "re") : NULL;
    char *text = malloc(BYTES);
    unsigned wrong;
    if (!f || !text)
        return 1;
    size_t bytes = fread(text, 1, BYTES, f);
    fclose(f);
    text = realloc(text, bytes ? bytes : 1); /* what is read beyond it is seen */
    struct rmd_subuids *all = rmd_subuids_parse(text, bytes, &wrong);
    free(text);
    if (!all)
        return 1;
    printf("%u\n", wrong);
    for (int i = 3; i < argc; i++)
        printf("%u\n", (unsigned)rmd_subuids_owner(all, argv[2],
                                                   (uid_t)strtoul(argv[i], NULL, 10)));
    rmd_subuids_free(all);
    return 0;
}
