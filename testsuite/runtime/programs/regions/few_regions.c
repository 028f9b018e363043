/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A little of everything, for tools that make a program slow: loops, barriers, tasks, a nested
 * region, and a function for a debugger to stop in.
 */
#include "../check.h"
#include <omp.h>

void stop_here(int *calls);
__attribute__((noinline)) void stop_here(int *calls)
{
#pragma omp atomic
    ++*calls;
}

int main(void)
{
    int calls = 0, sum = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(3) reduction(+ : sum)
        {
            stop_here(&calls);
#pragma omp barrier
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 10; i++)
                sum += i;
#pragma omp single
            for (int i = 0; i < 5; i++) {
#pragma omp task
                stop_here(&calls);
            }
#pragma omp parallel num_threads(2)
            stop_here(&calls);
        }
    }
    CHECK(sum == 135, "sum %d", sum);
    CHECK(calls == 3 * (3 + 5 + 6), "%d calls", calls);
    return check_ok();
}
