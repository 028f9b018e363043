/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cancellation of regions, loops, sections and task groups ends them early, frees every thread
 * from the barriers in them, and leaves nothing behind that disturbs later regions.
 * @env OMP_CANCELLATION=true
 */
#include "../check.h"
#include <omp.h>

static void region(int n)
{
    int after = 0, reached = 0;
#pragma omp parallel num_threads(n)
    {
#pragma omp atomic
        reached++;
        if (omp_get_thread_num() == n - 1) {
#pragma omp cancel parallel
        }
        for (;;) {
#pragma omp cancellation point parallel
#pragma omp barrier
        }
#pragma omp atomic
        after++;
    }
    CHECK(after == 0, "%d threads passed a cancelled endless loop", after);
    CHECK(reached == n, "%d of %d implicit tasks started", reached, n);
}

static void loop(int n)
{
    int ran = 0, after = 0;
#pragma omp parallel num_threads(n)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 1000000; i++) {
            int before;
#pragma omp atomic capture
            before = ran++;
            if (before == 10) {
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
#pragma omp barrier
#pragma omp atomic
        after++;
    }
    CHECK(after == n, "%d of %d threads after the loop", after, n);
    CHECK(ran >= 11 && ran < 1000000, "%d iterations", ran);
}

static void sections(int n)
{
    int after = 0;
#pragma omp parallel num_threads(n) reduction(+ : after)
    {
#pragma omp sections
        {
#pragma omp section
            {
#pragma omp cancel sections
                CHECK(0, "went on after cancel");
            }
#pragma omp section
            {
#pragma omp cancellation point sections
            }
        }
        after++;
    }
    CHECK(after == n, "%d of %d threads after the sections", after, n);
}

static void tasks(int n)
{
    int ran = 0, after = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp taskgroup
        {
            for (int i = 0; i < 2000; i++) {
#pragma omp task
                {
#pragma omp atomic
                    ran++;
                    if (i == 5) {
#pragma omp cancel taskgroup
                    }
#pragma omp cancellation point taskgroup
                }
            }
        }
        after = ran;
    }
    CHECK(after == ran, "%d tasks ran after the end of their group", ran - after);
}

/* Some threads are in a barrier already, executing tasks there, when another one cancels. */
static void barrier_with_tasks(int n)
{
    int after = 0;
#pragma omp parallel num_threads(n)
    {
        int me = omp_get_thread_num();
        if (me % 3 == 1) {
            for (int i = 0; i < 3; i++) {
#pragma omp task
                for (volatile int k = 0; k < 20000; k++)
                    ;
            }
        }
        if (me == n - 1) {
            for (volatile int k = 0; k < 60000; k++)
                ;
#pragma omp cancel parallel
        }
#pragma omp barrier
#pragma omp atomic
        after++;
    }
    CHECK(after == 0, "%d threads passed the barrier of a cancelled region", after);
}

static void plain(int n)
{
    int sum = 0;
#pragma omp parallel num_threads(n) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_thread_num();
#pragma omp barrier
    }
    CHECK(sum == n * (n - 1) / 2, "sum %d", sum);
}

int main(void)
{
    static const int sizes[] = {1, 2, 5, 16};
    CHECK(omp_get_cancellation(), "OMP_CANCELLATION is not set");
    for (int round = 0; round < 5; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            region(sizes[i]);
            plain(sizes[i]);
            loop(sizes[i]);
            sections(sizes[i]);
            tasks(sizes[i]);
            for (int k = 0; k < 10; k++)
                barrier_with_tasks(sizes[i]);
            plain(sizes[i]);
        }
    return check_ok();
}
