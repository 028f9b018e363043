/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locks, nestable locks, critical sections and atomics exclude each other in teams larger than the
 * machine; a lock may be held while its holder sleeps, works, or waits for a task.
 * @env OMP_NUM_THREADS=16
 */
#include "../check.h"
#include <omp.h>
#include <time.h>

enum { ROUNDS = 50 };

int main(void)
{
    omp_lock_t lock;
    omp_nest_lock_t nest;
    int n = omp_get_max_threads(), a = 0, b = 0, c = 0, d = 0, tried = 0;
    double sum = 0;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel
    {
        for (int round = 0; round < ROUNDS; round++) {
            omp_set_lock(&lock);
            int before = a;
            if (round == 7)
                nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
            a = before + 1;
            omp_unset_lock(&lock);

            omp_set_nest_lock(&nest);
            omp_set_nest_lock(&nest);
            b++;
            omp_unset_nest_lock(&nest);
            b++;
            omp_unset_nest_lock(&nest);

#pragma omp critical(one)
            {
                c++;
                if (round % 10 == 0) {
#pragma omp task shared(d)
#pragma omp atomic
                    d++;
#pragma omp taskwait
                }
            }
            if (omp_test_lock(&lock)) {
                tried++;
                omp_unset_lock(&lock);
            }
#pragma omp atomic
            sum += 0.5;
        }
    }
    CHECK(a == n * ROUNDS, "lock: %d", a);
    CHECK(b == 2 * n * ROUNDS, "nestable lock: %d", b);
    CHECK(c == n * ROUNDS, "critical: %d", c);
    CHECK(d == n * ROUNDS / 10, "tasks: %d", d);
    CHECK(sum == 0.5 * n * ROUNDS, "atomic: %g", sum);
    CHECK(tried <= n * ROUNDS, "test_lock: %d", tried);
    CHECK(omp_test_lock(&lock), "the lock is still held");
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    return check_ok();
}
