/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * command.c - what bench/run malleable-command shrinks and expands: parallel regions for as long as
 * it lives, of implicit tasks of 100 us, or on emulated cores (argument 1) of 1 ms that sleep.
 * A plain OpenMP program.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
    int emulated = argc > 1 && atoi(argv[1]);
    alarm(120); /* ends even if its starter cannot end it */
    for (;;) {
#pragma omp parallel
        {
            long end = now_us() + 100;
            if (emulated)
                usleep(1000);
            else
                while (now_us() < end)
                    ;
        }
    }
}
