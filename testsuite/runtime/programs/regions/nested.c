/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nested regions have the sizes that were asked for and know their ancestors; barriers in them wait
 * for their own team only; nesting beyond max-active-levels gives teams of one.
 */
#include "../check.h"
#include <omp.h>

static void two_levels(int outer, int inner)
{
    int members = 0, seen[64] = {0};
    CHECK(outer * inner <= 64, "table too small");
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(outer)
    {
        int me = omp_get_thread_num();
        CHECK(omp_get_num_threads() == outer, "outer team of %d", omp_get_num_threads());
#pragma omp parallel num_threads(inner)
        {
            CHECK(omp_get_num_threads() == inner, "inner team of %d, not %d",
                  omp_get_num_threads(), inner);
            CHECK(omp_get_level() == 2 && omp_get_active_level() == (outer > 1) + (inner > 1),
                  "level %d, active %d", omp_get_level(), omp_get_active_level());
            CHECK(omp_get_ancestor_thread_num(1) == me, "ancestor %d, not %d",
                  omp_get_ancestor_thread_num(1), me);
            CHECK(omp_get_team_size(1) == outer && omp_get_team_size(2) == inner, "team sizes");
#pragma omp atomic
            members++;
#pragma omp barrier
            seen[me * inner + omp_get_thread_num()]++;
            int third = outer > 1 && inner > 1 ? 1 : 3;
#pragma omp parallel num_threads(3)
            CHECK(omp_get_num_threads() == third && omp_get_level() == 3, "third level: team of %d",
                  omp_get_num_threads());
        }
        CHECK(omp_get_thread_num() == me, "the outer thread number changed");
#pragma omp barrier
    }
    CHECK(members == outer * inner, "%d of %d inner members", members, outer * inner);
    for (int i = 0; i < outer * inner; i++)
        CHECK(seen[i] == 1, "inner task %d ran %d times", i, seen[i]);
}

static void three_levels(void)
{
    int leaves = 0;
    omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(3)
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
        int sizes = omp_get_team_size(1) * 100 + omp_get_team_size(2) * 10 + omp_get_team_size(3);
#pragma omp atomic
        leaves += sizes;
    }
    CHECK(leaves == 12 * 232, "sizes of the teams of 12 leaves sum up to %d", leaves);
}

static void unbalanced(void)
{
    int total = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(4)
    {
        int n = omp_get_thread_num() + 1, mine = 0;
        for (int round = 0; round < 5; round++) {
#pragma omp parallel num_threads(n) reduction(+ : mine)
            mine += omp_get_num_threads() == n;
        }
        CHECK(mine == 5 * n, "%d, not %d", mine, 5 * n);
#pragma omp atomic
        total += mine;
    }
    CHECK(total == 50, "total %d", total);
}

int main(void)
{
    for (int round = 0; round < 5; round++) {
        two_levels(2, 3);
        two_levels(4, 4);
        two_levels(1, 5);
        two_levels(5, 1);
        three_levels();
        unbalanced();
    }
    return check_ok();
}
