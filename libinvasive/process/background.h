/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * background.h - background threads: they compute, hold no core, and are the program's own.
 */
#ifndef INV_BACKGROUND_H
#define INV_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

/* What one waiting thread knows of them in one wait.  It measures at some of its sleeps. */
struct inv_background {
    unsigned sleeps;    /* of the caller, in this wait */
    uint64_t since_ns;  /* time of the second sleep */
    uint64_t now_ns, cpu_ns, held_ns; /* at the last measurement; 0 before the first */
    int64_t asleep;     /* how often other threads had gone to sleep then */
    uint64_t ran_ns;    /* time of the last measurement at which others had computed */
    int found;          /* how many computed, at the last measurement */
    uint64_t period_ns; /* the least time until the next one */
};
enum { INV_BACKGROUND_UNKNOWN = -1 };
/* A wait begins. */
void inv_background_begin(struct inv_background *b);
/* Call before each sleep.  Returns how many background threads compute; INV_BACKGROUND_UNKNOWN: the
 * wait is too short to tell.  keeps: one of the process's holds is kept for them. */
int inv_background_count(struct inv_background *b, bool keeps);

#endif
