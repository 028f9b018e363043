/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What OMP_PROC_BIND and its like do to a process: prints the CPUs of the initial thread before it
 * uses OpenMP, the place that it is told, and the number of places; then runs a region.
 * @helper
 */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>

static int cpus(void)
{
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : -1;
}

int main(void)
{
    int sum = 0;
    int before = cpus();
    printf("cpus %d, place %d of %d\n", before, omp_get_place_num(), omp_get_num_places());
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum += omp_get_thread_num();
    printf("sum %d, place %d\n", sum, omp_get_place_num());
    return 0;
}
