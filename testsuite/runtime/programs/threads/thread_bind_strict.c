/* SPDX-License-Identifier: GPL-3.0-or-later */
/* INVASIVE_BIND=strict: each thread number is one kernel thread from region to region, although the
 * program has no thread-local data from which that would follow.
 * @env INVASIVE_BIND=strict
 * @env OMP_NUM_THREADS=12
 */
#include "../check.h"
#include <omp.h>
#include <time.h>

enum { N = 12 };

static int kernel[N];

int main(void)
{
#pragma omp parallel
    kernel[omp_get_thread_num()] = kernel_thread();
    for (int round = 0; round < 50; round++) {
        if (round % 10 == 5) /* cores may go elsewhere */
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        int members = 0;
#pragma omp parallel reduction(+ : members)
        {
            int me = omp_get_thread_num();
            CHECK(kernel[me] == kernel_thread(), "round %d: thread %d is %d, not %d", round, me,
                  kernel_thread(), kernel[me]);
            if (round % 2) {
#pragma omp barrier
            }
            members++;
        }
        CHECK(members == N, "%d members", members);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            CHECK(kernel[i] != kernel[k], "threads %d and %d are the same", i, k);
    return check_ok();
}
