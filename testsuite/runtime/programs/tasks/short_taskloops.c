/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In a short region with a taskloop no thread waits for the watchdog, which looks every 5 ms: not where the region
 * is left to its master's core either, as it is now and then after 2,048 regions.
 * @mends with stock libgomp more threads than cores spin for cores that others have
 */
#include "../check.h"
#include <omp.h>
#include <stdio.h>

enum { REGIONS = 6000, THREADS = 6, SLOW_MOST = REGIONS / 100 }; /* other programs may have the cores */
static const double SLOW_S = 0.004;

static int last_of_taskloop(void)
{
    int last = -1;
#pragma omp parallel num_threads(THREADS)
#pragma omp single
#pragma omp taskloop grainsize(1) lastprivate(last)
    for (int i = 0; i < THREADS; i++)
        last = i;
    return last;
}

int main(void)
{
    int slow = 0;
    for (int region = 0; region < REGIONS; region++) {
        double began = omp_get_wtime();
        int last = last_of_taskloop();
        CHECK(last == THREADS - 1, "region %d: the last iteration was %d", region, last);
        slow += omp_get_wtime() - began > SLOW_S;
    }
    CHECK(slow <= SLOW_MOST, "%d of %d regions took more than 4 ms", slow, REGIONS);
    puts("OK");
    return 0;
}
