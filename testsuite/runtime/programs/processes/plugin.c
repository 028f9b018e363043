/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plugin that uses OpenMP, for plugin_host.
 * @helper
 */
#include <omp.h>

int plugin_sum(int threads);
int plugin_sum(int threads)
{
    int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_num_threads() * (omp_get_thread_num() + 1);
    }
    return sum;
}
