/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A region whose threads each use a megabyte of stack and meet at a barrier, so that each needs a
 * kernel thread.  Prints the team's size; it is the one that the program has been told.
 * limited [THREADS: in a num_threads clause]
 * @helper
 */
#include "../check.h"
#include "../meet.h"
#include <omp.h>
#include <string.h>

int main(int argc, char **argv)
{
    int told = omp_get_max_threads(), asked = argc > 1 ? atoi(argv[1]) : told;
    for (int round = 0; round < 3; round++) {
        int size = 0;
        long sum = 0;
#pragma omp parallel num_threads(asked) reduction(+ : sum)
        {
            char big[1 << 20];
            memset(big, 1, sizeof big);
            sum += big[omp_get_thread_num()];
            meet();
#pragma omp single nowait
            size = omp_get_num_threads();
        }
        CHECK(size == asked && sum == size, "%d threads, sum %ld, not %d", size, sum, asked);
    }
    printf("%d\n", asked);
    return 0;
}
