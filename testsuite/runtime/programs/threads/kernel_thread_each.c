/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regions of 16 threads with barriers and a reduction.  Prints on how many kernel threads they have waited.
 * @helper of test_shadow_stacks.py
 */
#include "../check.h"
#include <omp.h>

enum { THREADS = 16, ROUNDS = 50 };

static int distinct(const int *ids)
{
    int count = 0;
    for (int i = 0; i < THREADS; i++) {
        int before = 0;
        while (before < i && ids[before] != ids[i])
            before++;
        count += before == i;
    }
    return count;
}

int main(void)
{
    int ids[THREADS], parts[THREADS], most = 0;
    for (int round = 0; round < ROUNDS; round++) {
        long sum = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : sum)
        {
            int me = omp_get_thread_num();
            ids[me] = kernel_thread();
            for (int step = 0; step < 3; step++) {
                parts[me] = me + step + round;
#pragma omp barrier
                sum += parts[(me + 1) % THREADS];
#pragma omp barrier
            }
        }
        long wanted = 3 * (THREADS * (THREADS - 1) / 2 + THREADS * (1 + round));
        CHECK(sum == wanted, "sum %ld, not %ld", sum, wanted);
        int used = distinct(ids);
        most = used > most ? used : most;
    }
    printf("%d\n", most);
    return 0;
}
