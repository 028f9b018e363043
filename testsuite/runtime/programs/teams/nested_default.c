/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program that enables nested regions, before it asks for the size of teams, gets as many threads as
 * without us at each level, and a few more kernel threads for each core, not a team of them for each
 * thread of a team.  The argument says how.
 * @each levels nested
 */
#include "../threads.h"
#include <omp.h>
#include <string.h>

static int most;

static void inner(void)
{
    int size = 0, told = omp_get_max_threads();
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp single
        size = omp_get_num_threads();
#pragma omp critical
        {
            int now = kernel_threads();
            most = now > most ? now : most;
        }
    }
    CHECK(size == told, "team of %d, not %d", size, told);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: nested_default levels|nested");
    if (strcmp(argv[1], "levels") == 0)
        omp_set_max_active_levels(2);
    else
        omp_set_nested(1);
    int told = omp_get_max_threads(), procs = omp_get_num_procs();
    CHECK(told == procs, "told %d, not %d", told, procs);
    for (int i = 0; i < 10; i++) {
        int size = 0;
#pragma omp parallel
        {
#pragma omp single
            size = omp_get_num_threads();
            inner();
        }
        CHECK(size == told, "team of %d, not %d", size, told);
    }
    int stock = procs * procs;
    CHECK(most <= stock + 4 * procs, "%d kernel threads, without us %d", most, stock);
    return check_ok();
}
