/* SPDX-License-Identifier: GPL-3.0-or-later */
/* omp_pause_resource_all() gives the runtime's resources back, hard or soft, and the next region
 * works as ever; inside of a region it is refused.
 */
#include "check.h"
#include <omp.h>

static void region(int n)
{
    int sum = 0;
#pragma omp parallel num_threads(n) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_thread_num();
    }
    CHECK(sum == n * (n - 1) / 2, "sum %d", sum);
}

int main(void)
{
    for (int round = 0; round < 5; round++) {
        region(2 + round);
        CHECK(omp_pause_resource_all(omp_pause_soft) == 0, "soft pause refused");
        region(8);
        CHECK(omp_pause_resource_all(omp_pause_hard) == 0, "hard pause refused");
        CHECK(omp_pause_resource(omp_pause_hard, omp_get_initial_device()) == 0, "second pause");
        region(5);
#pragma omp parallel num_threads(3)
        CHECK(omp_pause_resource_all(omp_pause_soft) != 0, "pause in a region accepted");
    }
    return check_ok();
}
