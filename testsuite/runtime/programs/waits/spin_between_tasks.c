/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implicit tasks that wait for each other by spinning on flags of the program's own make progress,
 * however few cores there are: forwards, backwards, and all with all.
 * @env OMP_NUM_THREADS=16
 */
#include "../check.h"
#include <omp.h>
#include <stdatomic.h>

enum { MAX = 1024, ROUNDS = 3 };

static atomic_int flag[MAX], arrived;

/* Thread t waits for thread t + step; the last one in that order does not wait. */
static void chain(int step)
{
    for (int i = 0; i < MAX; i++)
        atomic_store(&flag[i], 0);
#pragma omp parallel
    {
        int me = omp_get_thread_num(), other = me + step;
        if (other >= 0 && other < omp_get_num_threads())
            while (!atomic_load(&flag[other]))
                ;
        atomic_store(&flag[me], 1);
    }
    for (int i = 0; i < omp_get_max_threads(); i++)
        CHECK(atomic_load(&flag[i]), "implicit task %d did not run", i);
}

static void all_with_all(void)
{
    atomic_store(&arrived, 0);
#pragma omp parallel
    {
        int n = omp_get_num_threads();
        for (int round = 1; round <= ROUNDS; round++) {
            atomic_fetch_add(&arrived, 1);
            while (atomic_load(&arrived) < round * n)
                ;
        }
    }
    CHECK(atomic_load(&arrived) == ROUNDS * omp_get_max_threads(), "lost arrivals");
}

int main(void)
{
    CHECK(omp_get_max_threads() <= MAX, "too many threads");
    for (int turn = 0; turn < 2; turn++) {
        chain(+1);
        chain(-1);
        all_with_all();
    }
    return check_ok();
}
