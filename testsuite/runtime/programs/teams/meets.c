/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the size of a default team, in a program whose threads meet in barriers.
 * @helper
 */
#include <omp.h>
#include <stdio.h>

int main(void)
{
    int threads = omp_get_max_threads();
#pragma omp parallel
    {
#pragma omp barrier
    }
    printf("%d\n", threads);
    return 0;
}
