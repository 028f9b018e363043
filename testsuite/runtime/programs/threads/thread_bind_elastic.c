/* SPDX-License-Identifier: GPL-3.0-or-later */
/* INVASIVE_BIND=elastic: a managed program with thread-local data has not a kernel thread for each
 * thread number all the same; within a region each number keeps its own, with its data.
 * @managed needs it, where there is a manager
 * @env INVASIVE_BIND=elastic
 * @env OMP_NUM_THREADS=64
 */
#include "../check.h"
#include <omp.h>

enum { N = 64 };

static _Thread_local int mine;

int main(void)
{
    for (int round = 0; round < 50; round++) {
        int members = 0;
#pragma omp parallel reduction(+ : members)
        {
            mine = omp_get_thread_num();
            members++;
            CHECK(mine == omp_get_thread_num(), "thread %d sees the data of %d",
                  omp_get_thread_num(), mine);
        }
        CHECK(members == N, "%d members", members);
    }
    int alive = kernel_threads();
    CHECK(!getenv("INVASIVE_SOCKET") || omp_get_num_procs() >= N || alive < N,
          "%d kernel threads for %d thread numbers", alive, N);
    for (int round = 0; round < 10; round++) {
#pragma omp parallel
        {
            int me = omp_get_thread_num(), thread = kernel_thread();
            mine = me;
            for (int i = 0; i < 3; i++) {
#pragma omp barrier
                CHECK(mine == me && kernel_thread() == thread, "thread %d has moved", me);
            }
        }
    }
    return check_ok();
}
