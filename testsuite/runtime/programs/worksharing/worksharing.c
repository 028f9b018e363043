/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every iteration and section runs once, with every schedule, in teams from 1 to 33; ordered and
 * doacross loops keep their order; single gives its value to all; static schedules give a thread
 * number the iterations that the specification says.
 */
#include "../check.h"
#include <omp.h>
#include <string.h>

enum { ITEMS = 997 };

static int count[ITEMS];

static void once(const char *what)
{
    for (int i = 0; i < ITEMS; i++)
        CHECK(count[i] == 1, "%s: iteration %d ran %d times", what, i, count[i]);
    memset(count, 0, sizeof count);
}

static void hit(int i)
{
#pragma omp atomic
    count[i]++;
}

static void schedules(int n)
{
    int last = -1;
#pragma omp parallel num_threads(n)
    {
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < ITEMS; i++)
            hit(i);
    }
    once("dynamic, nowait");
#pragma omp parallel for num_threads(n) schedule(dynamic, 5) lastprivate(last)
    for (int i = 0; i < ITEMS; i++) {
        hit(i);
        last = i;
    }
    once("dynamic,5");
    CHECK(last == ITEMS - 1, "lastprivate %d", last);
#pragma omp parallel for num_threads(n) schedule(guided, 2)
    for (int i = ITEMS - 1; i >= 0; i--)
        hit(i);
    once("guided");
#pragma omp parallel for num_threads(n) schedule(static, 3)
    for (unsigned long long i = 0; i < ITEMS; i++)
        hit((int)i);
    once("static,3");
#pragma omp parallel for num_threads(n) schedule(nonmonotonic : dynamic, 4) collapse(2)
    for (int i = 0; i < 31; i++)
        for (int j = 0; j < 31; j++)
            hit(i * 31 + j);
    for (int i = 961; i < ITEMS; i++)
        hit(i);
    once("collapse");
    static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                                        omp_sched_auto};
    for (int kind = 0; kind < 4; kind++) {
        omp_set_schedule(kinds[kind], 7);
#pragma omp parallel for num_threads(n) schedule(runtime)
        for (int i = 0; i < ITEMS; i++)
            hit(i);
        once("runtime");
    }
}

static void static_split(int n)
{
    int owner[ITEMS];
#pragma omp parallel num_threads(n)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < ITEMS; i++)
            owner[i] = omp_get_thread_num();
        int share = ITEMS / n, rest = ITEMS % n, me = omp_get_thread_num();
        int low = me * share + (me < rest ? me : rest), high = low + share + (me < rest);
        for (int i = low; i < high; i++)
            CHECK(owner[i] == me, "iteration %d ran in thread %d, not %d", i, owner[i], me);
#pragma omp for schedule(static, 2)
        for (int i = 0; i < ITEMS; i++)
            CHECK(i / 2 % n == me, "chunk of iteration %d in thread %d", i, me);
    }
}

static void ordered(int n)
{
    int next = 0;
#pragma omp parallel num_threads(n)
    {
#pragma omp for ordered schedule(dynamic, 2)
        for (int i = 0; i < ITEMS; i++) {
            hit(i);
#pragma omp ordered
            {
                CHECK(next == i, "ordered dynamic: %d at %d", i, next);
                next++;
            }
        }
#pragma omp single
        next = 0;
#pragma omp for ordered schedule(static, 1)
        for (int i = 0; i < ITEMS; i++) {
#pragma omp ordered
            {
                CHECK(next == i, "ordered static: %d at %d", i, next);
                next++;
            }
        }
#pragma omp single
        next = 0;
#pragma omp for ordered schedule(guided)
        for (int i = 0; i < ITEMS; i++) {
            if (i % 3 == 0) {
#pragma omp ordered
                {
                    CHECK(next == i, "ordered guided: %d at %d", i, next);
                    next += 3;
                }
            }
        }
    }
    once("ordered");
}

static void doacross(int n)
{
    enum { LENGTH = 150 }; /* each step is a hand-over between threads that spin */
    int value[LENGTH] = {0};
#pragma omp parallel for num_threads(n) ordered(1) schedule(dynamic, 3)
    for (int i = 1; i < LENGTH; i++) {
#pragma omp ordered depend(sink : i - 1)
        value[i] = value[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    CHECK(value[LENGTH - 1] == LENGTH - 1, "doacross: %d", value[LENGTH - 1]);

    enum { SIDE = 12 };
    int grid[SIDE][SIDE] = {{0}};
#pragma omp parallel for num_threads(n) ordered(2) schedule(static, 1)
    for (int i = 1; i < SIDE; i++)
        for (int j = 1; j < SIDE; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
            int above = grid[i - 1][j], left = grid[i][j - 1];
            grid[i][j] = (above > left ? above : left) + 1;
#pragma omp ordered depend(source)
        }
    CHECK(grid[SIDE - 1][SIDE - 1] == 2 * SIDE - 3, "wavefront: %d", grid[SIDE - 1][SIDE - 1]);
}

static void sections_and_single(int n)
{
    int a = 0, b = 0, c = 0, singles = 0;
#pragma omp parallel num_threads(n)
    {
        for (int round = 0; round < 10; round++) {
            double value = -1;
#pragma omp sections
            {
#pragma omp section
                {
#pragma omp atomic
                    a++;
                }
#pragma omp section
                {
#pragma omp atomic
                    b++;
                }
#pragma omp section
                {
#pragma omp atomic
                    c++;
                }
            }
#pragma omp single copyprivate(value)
            {
                singles++;
                value = round + 0.5;
            }
            CHECK(value == round + 0.5, "copyprivate: %g in round %d", value, round);
#pragma omp single nowait
            {
#pragma omp atomic
                singles++;
            }
        }
    }
    CHECK(a == 10 && b == 10 && c == 10, "sections: %d %d %d", a, b, c);
    CHECK(singles == 20, "single: %d", singles);
#pragma omp parallel sections num_threads(n)
    {
#pragma omp section
        a = 1;
#pragma omp section
        b = 2;
    }
    CHECK(a == 1 && b == 2, "parallel sections");
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 8, 16, 33};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        schedules(sizes[i]);
        static_split(sizes[i]);
        ordered(sizes[i]);
        doacross(sizes[i]);
        sections_and_single(sizes[i]);
    }
    return check_ok();
}
