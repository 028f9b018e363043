/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Four threads of a region arrive at a barrier.  The last one begins a nested region before, and calls
 * last_arrives in it.  A function and its lines are named for a debugger to show.
 * @helper of test_debugger.py
 */
#include "../check.h"
#include <omp.h>

enum { THREADS = 4 };

static int arrived, answer;

static void __attribute__((noinline)) last_arrives(int me)
{
    __atomic_store_n(&answer, me, __ATOMIC_RELAXED);
}

static void __attribute__((noinline)) wait_for_others(int me)
{
    int squared = me * me;
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED) == THREADS) {
#pragma omp parallel num_threads(2)
        if (omp_get_thread_num() == 0)
            last_arrives(me);
    }
#pragma omp barrier /* they wait here */
    CHECK(squared == me * me, "%d", squared);
}

int main(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(THREADS)
    wait_for_others(omp_get_thread_num());
    puts("OK");
    return 0;
}
