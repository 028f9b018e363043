/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Barriers inside of regions hold every thread back until the last one has come, however many
 * threads share a core; nothing written before a barrier is missed after it.
 * @env OMP_NUM_THREADS=16
 */
#include "../check.h"
#include <omp.h>

enum { ROUNDS = 60, MAX = 1024 };

static int written[MAX];

static void neighbours(void)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num(), n = omp_get_num_threads();
        for (int round = 1; round <= ROUNDS; round++) {
            if ((me + round) % 5 == 0)
                for (volatile int i = 0; i < 3000; i++)
                    ;
            written[me] = round;
#pragma omp barrier
            int left = written[(me + n - 1) % n], right = written[(me + 1) % n];
            CHECK(left == round && right == round, "round %d: thread %d reads %d and %d", round, me,
                  left, right);
#pragma omp barrier
        }
    }
}

/* The implied barriers of single, for and sections, and locks held across none of them. */
static void mixed(void)
{
    int shared = 0, total = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    {
        for (int round = 0; round < ROUNDS; round++) {
#pragma omp single
            shared = round;
            CHECK(shared == round, "single: %d in round %d", shared, round);
#pragma omp for
            for (int i = 0; i < 32; i++) {
                omp_set_lock(&lock);
                total++;
                omp_unset_lock(&lock);
            }
#pragma omp critical
            total++;
#pragma omp barrier
            CHECK(total == (round + 1) * (32 + omp_get_num_threads()), "total %d", total);
#pragma omp barrier
        }
    }
    omp_destroy_lock(&lock);
}

int main(void)
{
    CHECK(omp_get_max_threads() <= MAX, "too many threads");
    for (int round = 0; round < 3; round++) {
        neighbours();
        mixed();
    }
    return check_ok();
}
