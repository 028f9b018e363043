/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * environment.h - how our libraries read the environment of the program that they are loaded into.
 *
 * A program that has more rights than its user (set-uid, set-gid, file capabilities) gets its
 * environment from a user that it must not trust, and variables of ours name programs to run, files
 * and sockets.  Such a process reads none of these variables and runs unmanaged.  All code that is
 * loaded into programs reads the environment by inv_getenv only
 * (testsuite/runtime/test_privileged.py).
 */
#ifndef INV_ENVIRONMENT_H
#define INV_ENVIRONMENT_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Does the process have other rights than its user?  AT_SECURE tells what held at exec; the ids,
 * which a process may change, are read at each call. */
static inline bool inv_privileged(void)
{
    return getauxval(AT_SECURE) || getuid() != geteuid() || getgid() != getegid();
}

/* As getenv; NULL in a privileged process.  Reads the ids, by four system calls, only if the
 * variable is set: most are not. */
static inline const char *inv_getenv(const char *name)
{
    const char *value = getenv(name);
    return value && !inv_privileged() ? value : NULL;
}

/* The variable's value, 0..INT_MAX; -1: it is not set, or is no such number. */
static inline int inv_getenv_count(const char *name)
{
    const char *text = inv_getenv(name);
    if (!text || !*text)
        return -1;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value < 0 || value > INT_MAX ? -1 : (int)value;
}

/* Was the process launched to be managed (also if it cannot be, or is switched off)?  Ranks of one
 * job then have to agree whether they are. */
static inline bool inv_asked(void)
{
    const char *where = inv_getenv("INVASIVE_SOCKET");
    return where && *where;
}

/* Is management switched off for this process (INVASIVE=off)? */
static inline bool inv_switched_off(void)
{
    const char *mode = inv_getenv("INVASIVE");
    return mode && strcmp(mode, "off") == 0;
}

/* Are OpenMP tasks to run while ranks wait in MPI (invade --mpi-tasks)? */
static inline bool inv_mpi_tasks_asked(void)
{
    const char *setting = inv_getenv("INVASIVE_MPI_TASKS");
    return setting && *setting && *setting != '0';
}

#endif
