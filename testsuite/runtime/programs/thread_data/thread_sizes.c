/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regions of 5, 5 and 7 threads, for OMP_DISPLAY_AFFINITY (test_thread_identity.py).
 * @helper
 */
#include "../check.h"

static void region(int threads)
{
    int members = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members)
    {
#pragma omp barrier
        members++;
    }
    CHECK(members == threads, "%d members", members);
}

int main(void)
{
    region(5);
    region(5);
    region(7);
    return check_ok();
}
