/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regions in which two threads wait for each other in loops of their own, and which take next to no time, so
 * many that the runtime tries all its ways for short regions.  Prints the microseconds of a region.
 * @helper of test_pace.py
 */
#include "../check.h"
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

enum { REGIONS = 20000, MEETINGS = 3 };

int main(void)
{
    double began = omp_get_wtime();
    for (int i = 0; i < REGIONS; i++) {
        _Atomic int arrived = 0;
#pragma omp parallel num_threads(2)
        for (int m = 1; m <= MEETINGS; m++) {
            atomic_fetch_add(&arrived, 1);
            while (atomic_load(&arrived) < m * omp_get_num_threads())
                ;
        }
    }
    printf("%.1f\n", (omp_get_wtime() - began) / REGIONS * 1e6);
    return 0;
}
