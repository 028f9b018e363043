/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the size of a default team, in a program whose threads wait for each other in a loop of their own.
 * @helper
 */
#include <omp.h>
#include <stdio.h>

static int turn;

static void wait_for(int n)
{
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != n)
        ;
}

int main(void)
{
    int threads = omp_get_max_threads();
#ifdef SECTIONS
#pragma omp parallel sections
    {
#pragma omp section
        turn++;
    }
    turn = 0;
#endif
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        wait_for(me);
        __atomic_store_n(&turn, me + 1, __ATOMIC_RELEASE);
    }
    printf("%d\n", threads);
    return turn != threads;
}
