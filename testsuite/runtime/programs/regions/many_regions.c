/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thousands of short regions, of changing sizes, with and without barriers and with serial gaps in
 * between, lose no implicit task.  many_regions [REGIONS]
 */
#include "../check.h"
#include <time.h>

int main(int argc, char **argv)
{
    int regions = argc > 1 ? atoi(argv[1]) : 3000;
    long ran = 0, expected = 0;
    for (int i = 0; i < regions; i++) {
        int n = i % 50 == 0 ? 16 : 2 + (i / 100) % 3;
#pragma omp parallel num_threads(n)
        {
#pragma omp atomic
            ran++;
            if (i % 7 == 0) {
#pragma omp barrier
            }
        }
        expected += n;
        CHECK(ran == expected, "region %d of %d threads: %ld instead of %ld", i, n, ran, expected);
        if (i % 500 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return check_ok();
}
