/* SPDX-License-Identifier: GPL-3.0-or-later */
/* meet.h - a barrier in a program that does not call GOMP_barrier by name, and so has the default team of
 * programs without barriers inside regions.
 */
#ifndef MEET_H
#define MEET_H 1

#include <dlfcn.h>
#include <string.h>

static inline void meet(void)
{
    void *found = dlsym(NULL, "GOMP_barrier"); /* in all objects */
    void (*barrier)(void);
    memcpy(&barrier, &found, sizeof barrier);
    barrier();
}

#endif
