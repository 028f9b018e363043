/* SPDX-License-Identifier: GPL-3.0-or-later */
/* job.c - the kernel's copy of the environment, and the session. */
#define _GNU_SOURCE
#include "job.h"
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 1 << 20 };

/* The value of INVASIVE_LAUNCH up to its first slash, in `environment`; 0 none. */
static uint64_t launch_in(const char *environment, size_t bytes)
{
    static const char name[] = "INVASIVE_LAUNCH=";
    for (const char *p = environment, *end = environment + bytes; p < end;) {
        size_t length = strnlen(p, (size_t)(end - p));
        if (length > sizeof name && !memcmp(p, name, sizeof name - 1)) {
            const char *value = p + sizeof name - 1;
            size_t rest = length - (sizeof name - 1);
            const char *slash = memchr(value, '/', rest);
            return inv_hash(INV_HASH_BASIS, value, slash ? (size_t)(slash - value) : rest) | 1;
        }
        p += length + 1;
    }
    return 0;
}

uint64_t rmd_job_of(pid_t pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    char *environment = f ? malloc(ENVIRONMENT_MAX) : NULL;
    uint64_t job = 0;
    if (environment)
        job = launch_in(environment, fread(environment, 1, ENVIRONMENT_MAX, f));
    free(environment);
    if (f)
        fclose(f);
    pid_t session = job ? 0 : getsid(pid);
    return job ? job : session > 0 ? (uint64_t)session << 1 : 0;
}
