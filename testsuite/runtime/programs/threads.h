/* SPDX-License-Identifier: GPL-3.0-or-later */
/* threads.h - waiting until threads of this process have ended. */
#ifndef THREADS_H
#define THREADS_H

#include "check.h"
#include <time.h>

/* Threads may end soon instead of at once. */
static inline int threads_after_a_while(int wanted)
{
    int count = kernel_threads();
    for (int tries = 0; tries < 2000 && count > wanted; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        count = kernel_threads();
    }
    return count;
}

#endif
