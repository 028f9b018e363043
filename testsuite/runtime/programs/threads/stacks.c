/* SPDX-License-Identifier: GPL-3.0-or-later */
/* OMP_STACKSIZE holds for every implicit task but the first, whichever kernel thread runs it, and
 * explicit tasks and nested regions may use as much.
 * @env OMP_STACKSIZE=16M
 * @env OMP_NUM_THREADS=16
 */
#include "../check.h"
#include <omp.h>

/* Touches every page of a large array on the stack. */
__attribute__((noinline)) static int use_stack(int depth)
{
    volatile char array[1 << 20];
    for (unsigned i = 0; i < sizeof array; i += 4096)
        array[i] = (char)depth;
    return (depth > 1 ? use_stack(depth - 1) : 0) + array[8192];
}

int main(void)
{
    enum { DEPTH = 12 };
    int wanted = DEPTH * (DEPTH + 1) / 2, bad = 0;
#pragma omp parallel reduction(+ : bad)
    {
        if (omp_get_thread_num())
            bad += use_stack(DEPTH) != wanted;
    }
#pragma omp parallel reduction(+ : bad)
    {
#pragma omp barrier
        if (omp_get_thread_num())
            bad += use_stack(DEPTH) != wanted;
    }
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : bad)
#pragma omp parallel num_threads(2) reduction(+ : bad)
    if (omp_get_thread_num())
        bad += use_stack(DEPTH) != wanted;
    CHECK(!bad, "%d wrong sums", bad);
    return check_ok();
}
