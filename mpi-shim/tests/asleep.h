/* SPDX-License-Identifier: GPL-3.0-or-later */
/* asleep.h - what a rank does that others wait for, until they have slept. */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A sleep of the other one of at least so many milliseconds.  Not by the clock alone, since it may
 * come late to its wait on a busy machine. */
static inline void until_asleep_ms(int pid, int ms)
{
    enum { LOOK_MS = 5, PATIENCE_MS = 20000 };
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (int asleep = 0, looked = 0; asleep <= ms && looked < PATIENCE_MS; looked += LOOK_MS) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        text[n] = '\0';
        if (f)
            fclose(f);
        const char *name = strrchr(text, ')');
        asleep += name && name[2] == 'S' ? LOOK_MS : 0;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
}

#endif
