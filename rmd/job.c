/* SPDX-License-Identifier: GPL-3.0-or-later */
/* job.c - the kernel's copy of the environment, and the session. */
#define _GNU_SOURCE
#include "job.h"
#include "hash.h"
#include "procstat.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 1 << 20 };

struct environment {
    char *text; /* NAME=VALUE, each with a NUL */
    size_t bytes;
};

/* To be freed; empty where the process has gone, or may not be looked into. */
static struct environment environment_of(pid_t pid)
{
    struct environment e = {0};
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && (e.text = malloc(ENVIRONMENT_MAX)))
        e.bytes = fread(e.text, 1, ENVIRONMENT_MAX, f);
    if (f)
        fclose(f);
    return e;
}

/* The value of a variable that is not empty, which need not end with a NUL; NULL: none. */
static const char *value_of(const struct environment *e, const char *name, size_t *length)
{
    size_t prefix = strlen(name);
    const char *end = e->text ? e->text + e->bytes : NULL;
    for (const char *p = e->text; p < end; p += *length + 1) {
        *length = strnlen(p, (size_t)(end - p));
        if (*length > prefix + 1 && !memcmp(p, name, prefix) && p[prefix] == '=') {
            *length -= prefix + 1;
            return p + prefix + 1;
        }
    }
    return NULL;
}

/* The name of the launch in INVASIVE_LAUNCH, up to the first slash; 0 none. */
static uint64_t launch_in(const struct environment *e)
{
    size_t length;
    const char *value = value_of(e, "INVASIVE_LAUNCH", &length);
    const char *slash = value ? memchr(value, '/', length) : NULL;
    if (!value)
        return 0;
    return inv_hash(INV_HASH_BASIS, value, slash ? (size_t)(slash - value) : length) | 1;
}

uint64_t rmd_job_of(pid_t pid)
{
    struct environment e = environment_of(pid);
    uint64_t job = launch_in(&e);
    free(e.text);
    pid_t session = job ? 0 : getsid(pid);
    return job ? job : session > 0 ? (uint64_t)session << 1 : 0;
}

/* MPICH's proxy on this node, which leaves no name: a rank, or what it is wrapped in, begins a
 * session of its own there. */
static uint64_t with_proxy_of(pid_t pid, uint64_t hash)
{
    struct rmd_procstat leader = {0}, proxy = {0};
    pid_t session = getsid(pid);
    if (session > 0 && rmd_procstat(session, &leader))
        rmd_procstat(leader.parent, &proxy);
    hash = inv_hash(hash, &leader.parent, sizeof leader.parent);
    return inv_hash(hash, &proxy.start_ticks, sizeof proxy.start_ticks);
}

uint64_t rmd_mpiexec_of(pid_t pid)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR", "SLURM_JOB_ID",
                                        "SLURM_STEP_ID", "PMI_PORT"};
    struct environment e = environment_of(pid);
    uint64_t hash = INV_HASH_BASIS;
    bool known = false;
    size_t length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = value_of(&e, names[i], &length);
        if (value)
            hash = inv_hash(inv_hash(hash, &i, sizeof i), value, length);
        known |= value != NULL;
    }
    if (value_of(&e, "PMI_FD", &length)) {
        hash = with_proxy_of(pid, hash);
        known = true;
    }
    hash = known ? hash | 1 : launch_in(&e);
    free(e.text);
    return hash;
}
