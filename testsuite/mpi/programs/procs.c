/* SPDX-License-Identifier: GPL-3.0-or-later */
/* procs.c - prints omp_get_num_procs before a region, and in it, and how many CPUs the C library shows then and at the
 * end. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>

static int shown(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

int main(void)
{
    int before = omp_get_num_procs(), inside = 0, cpus = 0;
#pragma omp parallel
#pragma omp single
    {
        inside = omp_get_num_procs();
        cpus = shown();
    }
    printf("%d %d %d %d\n", before, inside, cpus, shown());
    return 0;
}
