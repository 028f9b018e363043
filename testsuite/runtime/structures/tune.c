/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tune.c - tune LOW HIGH OWN: prints the value to use, reads the nanoseconds of the iteration, and so on to
 * the end of its input.  A line is "VALUE SETTLED SEARCHES".
 */
#include "libinvasive/base/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct inv_tune tune;
    uint64_t ns;
    if (argc != 4)
        return 64;
    inv_tune_begin(&tune, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
    do {
        printf("%d %d %u\n", inv_tune_value(&tune), tune.settled, tune.searches);
        fflush(stdout);
        if (scanf("%" SCNu64, &ns) != 1)
            return 0;
        inv_tune_add(&tune, ns);
    } while (1);
}
