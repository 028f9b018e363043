/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * one_cpu.c - where does the kernel run a rank without OpenMP?  Each prints the numbers of its CPUs as the
 * kernel has them: our sched_getaffinity shows the program's.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (syscall(SYS_sched_getaffinity, 0, sizeof set, &set) < 0)
        return 1;
    printf("cpus");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            printf(" %d", cpu);
    printf("\n");
    MPI_Finalize();
    return 0;
}
