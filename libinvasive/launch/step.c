/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* step.c - the cores of a Slurm job step on this node: see step.h. */
#define _GNU_SOURCE
#include "libinvasive/launch/step.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAEMON "slurmstepd"

enum {
    GENERATIONS = 64, /* between a process and its step's daemon, at most */
    NAME_BYTES = 32,
    LOOKS_NS = 250000000, /* from the first look to the begin of the last one */
    PAUSE_NS = 5000000,   /* between two looks, of which each reads all of /proc */
};

struct process {
    pid_t parent;
    char name[NAME_BYTES]; /* as the kernel has it, 15 letters at most */
};

/* False: it has ended, or /proc hides it since it is another user's. */
static bool read_process(pid_t pid, struct process *p)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    int parent;
    if (!name || !end || end < name || sscanf(end + 1, " %*c %d", &parent) != 1)
        return false;
    p->parent = parent;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(end - name - 1), name + 1);
    return true;
}

bool inv_step_is_ours(void)
{
    const char *step = inv_getenv("SLURM_STEP_ID");
    return step && *step;
}

/* The daemon of the step, from which this process descends.  An ancestor that /proc hides is no task,
 * for tasks are of this user.  0: none is to be seen, as in a container. */
static pid_t find_daemon(void)
{
    struct process p;
    pid_t pid = getppid();
    for (int i = 0; i < GENERATIONS && pid > 1; i++, pid = p.parent)
        if (!read_process(pid, &p) || !strcmp(p.name, DAEMON))
            return pid;
    return 0;
}

/* Adds the CPUs of the daemon's tasks.  False: a child of it is not a program yet, and may be a task
 * that has not been bound. */
static bool add_tasks(pid_t daemon, struct inv_cpus *cpus)
{
    DIR *all = opendir("/proc");
    bool complete = true;
    struct dirent *entry;
    while (all && (entry = readdir(all)) != NULL) {
        struct process p;
        struct inv_cpus own;
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid <= 0 || !read_process(pid, &p) || p.parent != daemon)
            continue;
        if (!strcmp(p.name, DAEMON))
            complete = false;
        else if (!inv_cpus_get(pid, &own))
            inv_cpus_or(cpus, cpus, &own);
    }
    if (all)
        closedir(all);
    return complete;
}

bool inv_step_cpus(struct inv_cpus *cpus)
{
    INV_UNCANCELLED;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (!inv_step_is_ours() || inv_cpus_get(0, cpus))
        return false;
    pid_t daemon = find_daemon();
    uint64_t until_ns = inv_now_ns() + LOOKS_NS;
    while (daemon && !add_tasks(daemon, cpus) && inv_now_ns() + PAUSE_NS < until_ns)
        nanosleep(&pause, NULL);
    return true;
}
