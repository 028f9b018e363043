/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A team has exactly the size that omp_get_max_threads(), omp_set_num_threads() or the num_threads
 * clause told the program; each thread number runs once; number 0 is the thread that met the
 * region; if(0) and one thread give an inactive region.
 */
#include "../check.h"
#include <omp.h>
#include <string.h>

enum { MAX = 1024 };

static int ran[MAX];

static void check_team(int wanted, int size, const char *how)
{
    CHECK(size == wanted, "%s: team of %d, not %d", how, size, wanted);
    for (int i = 0; i < MAX; i++)
        CHECK(ran[i] == (i < wanted), "%s: thread %d of %d ran %d times", how, i, wanted, ran[i]);
    memset(ran, 0, sizeof ran);
}

static void member(int *size, int encountering)
{
    int me = omp_get_thread_num();
    CHECK(me >= 0 && me < MAX, "thread number %d", me);
    if (me == 0) {
        *size = omp_get_num_threads();
        CHECK(kernel_thread() == encountering, "thread number 0 is not the encountering thread");
    }
#pragma omp atomic
    ran[me]++;
}

int main(void)
{
    int self = kernel_thread(), size = 0, start = omp_get_max_threads();
    CHECK(self == getpid(), "main is not the main thread");
    CHECK(start >= 1 && start <= MAX, "omp_get_max_threads() is %d", start);
    CHECK(!omp_in_parallel() && omp_get_num_threads() == 1 && omp_get_thread_num() == 0, "serial");
    for (int round = 0; round < 30; round++) {
        int n = 1 + round * 7 % 23;
        CHECK(omp_get_max_threads() == start, "omp_get_max_threads() changed");
#pragma omp parallel
        member(&size, self);
        check_team(start, size, "default");
#pragma omp parallel num_threads(n)
        member(&size, self);
        check_team(n, size, "num_threads");
        omp_set_num_threads(n);
        CHECK(omp_get_max_threads() == n, "omp_set_num_threads had no effect");
#pragma omp parallel
        {
            member(&size, self);
            if (round % 2) {
#pragma omp barrier
            }
        }
        check_team(n, size, "omp_set_num_threads");
#pragma omp parallel if (n > 1000)
        {
            CHECK(!omp_in_parallel() && omp_get_level() == 1, "if(0): active region");
            member(&size, self);
        }
        check_team(1, size, "if(0)");
        omp_set_num_threads(start);
        CHECK(omp_get_level() == 0 && omp_get_num_threads() == 1, "after a region");
    }
    return check_ok();
}
