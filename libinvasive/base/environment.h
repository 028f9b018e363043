/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * environment.h - what the environment says to a process that we are in.
 *
 * A program that has more rights than its user (set-uid, set-gid, file capabilities) has its
 * environment from a user that it does not trust, and variables of ours name programs to run, files
 * and sockets.  To such a process the environment says nothing: it runs unmanaged.  Everything here
 * that is loaded into programs reads the environment by inv_getenv and in no other way
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

/* Does the process have other rights than its user?  Asked anew each time: a process may change its
 * ids.  The kernel says so at exec (AT_SECURE), the ids say so now. */
static inline bool inv_privileged(void)
{
    return getauxval(AT_SECURE) || getuid() != geteuid() || getgid() != getegid();
}

/* As getenv; NULL in a privileged process.  Asks for the ids only where there is something to
 * withhold: most variables are not set, and asking takes four system calls. */
static inline const char *inv_getenv(const char *name)
{
    const char *value = getenv(name);
    return value && !inv_privileged() ? value : NULL;
}

/* A number of 0 and more, or -1: the variable is not set, or is none. */
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

/* Was the process launched to be managed, whether or not it can be or wants to be?  Ranks of one job
 * then have to agree. */
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
