/* SPDX-License-Identifier: GPL-3.0-or-later */
/* threads.h - counting the threads of this process. */
#ifndef THREADS_H
#define THREADS_H

#include "check.h"
#include <dirent.h>
#include <time.h>

static inline int threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks, "cannot read /proc/self/task");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Threads may end soon instead of at once. */
static inline int threads_after_a_while(int wanted)
{
    int count = threads_now();
    for (int tries = 0; tries < 2000 && count > wanted; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        count = threads_now();
    }
    return count;
}

#endif
