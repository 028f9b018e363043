/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short regions with a barrier, and serial parts between them.  Prints the microseconds of a round.
 * @helper of test_pace.py
 */
#include "../check.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 1500 };

static void compute(double us)
{
    double end = omp_get_wtime() + us * 1e-6;
    while (omp_get_wtime() < end)
        ;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3, "usage: %s REGION-US SERIAL-US", argv[0]);
    double region = atof(argv[1]), serial = atof(argv[2]), began = omp_get_wtime();
    for (int i = 0; i < ROUNDS; i++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp for schedule(static)
            for (int k = 0; k < 2; k++)
                compute(region * (1 + (k ^ i) % 2));
#pragma omp barrier
            compute(1);
        }
        compute(serial);
    }
    printf("%.1f\n", (omp_get_wtime() - began) / ROUNDS * 1e6);
    return 0;
}
