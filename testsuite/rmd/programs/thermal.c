/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thermal.c - thermal THRESHOLD: reads the temperature of each look, and prints the part of the highest
 * speed until the next one.
 */
#include "rmd/power/thermal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    double part = 1, now, last = 0;
    if (argc != 2)
        return 64;
    for (bool first = true; scanf("%lf", &now) == 1; first = false) {
        part = rmd_thermal_next(part, now, first ? now : last, atof(argv[1]));
        last = now;
        printf("%.6f\n", part);
        fflush(stdout);
    }
    return 0;
}
