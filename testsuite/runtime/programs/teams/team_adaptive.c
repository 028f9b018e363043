/* SPDX-License-Identifier: GPL-3.0-or-later */
/* INVASIVE_TEAM=adaptive: a region whose threads sleep much, at barriers, soon gets no more threads
 * than there are cores, whatever kind of region it is; one that runs through keeps its size, so
 * does a nested one; omp_set_dynamic(0) means exact sizes.  Unmanaged nothing changes.
 * @managed needs it, where there is a manager
 * @env INVASIVE_TEAM=adaptive
 * @env OMP_NUM_THREADS=24
 */
#include "../check.h"
#include <omp.h>

enum { N = 24, ENOUGH = 20000, BARRIERS = 10 };

static int members;

static void member(void)
{
#pragma omp atomic
    members++;
}

static void barriers(void)
{
    member();
    for (int i = 0; i < BARRIERS; i++) {
#pragma omp barrier
    }
}

/* Each has its own outlined function.  Returns the size of the team. */
static int heavy(void)
{
    int size = 0;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            size = omp_get_num_threads();
        barriers();
    }
    return size;
}

static int heavy_reduction(void)
{
    int size = 0;
#pragma omp parallel reduction(task, + : size)
    {
        size++;
        barriers();
    }
    return size;
}

static int heavy_clause(void)
{
    int size = 0;
#pragma omp parallel num_threads(N)
    {
        if (omp_get_thread_num() == 0)
            size = omp_get_num_threads();
        barriers();
    }
    return size;
}

static int heavy_nested(void)
{
    int size = 0;
#pragma omp parallel num_threads(2)
    {
        int inner = 0;
#pragma omp parallel num_threads(6) reduction(+ : inner)
        inner++;
        CHECK(inner == 6, "nested team of %d", inner);
        if (omp_get_thread_num() == 0)
            size = omp_get_num_threads();
        member();
    }
    return size;
}

static int light(void)
{
    int size = 0;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            size = omp_get_num_threads();
        member();
    }
    return size;
}

static int one(int (*region)(void))
{
    members = 0;
    int size = region();
    CHECK(members == size, "%d members in a team of %d", members, size);
    return size;
}

/* Run it until its team has at most `most` threads. */
static void becomes_small(int (*region)(void), const char *name, int most)
{
    int size = N;
    for (int i = 0; i < ENOUGH && size > most; i++)
        size = one(region);
    CHECK(size >= 1 && size <= most, "%s: still %d threads", name, size);
    for (int i = 0; i < 100; i++)
        size = one(region);
    CHECK(size >= 1 && size <= most, "%s: %d threads again", name, size);
}

static void stays(int (*region)(void), const char *name, int wanted)
{
    for (int i = 0; i < 100; i++) {
        int size = one(region);
        CHECK(size == wanted, "%s: %d threads, not %d", name, size, wanted);
    }
}

int main(void)
{
    int most = omp_get_num_procs();
    CHECK(omp_get_max_threads() == N, "omp_get_max_threads() is %d", omp_get_max_threads());
    if (!getenv("INVASIVE_SOCKET") || most >= N) {
        CHECK(!omp_get_dynamic() || getenv("INVASIVE_SOCKET"), "dynamic teams, unmanaged");
        stays(heavy, "unmanaged", N);
        return check_ok();
    }
    CHECK(omp_get_dynamic(), "sizes change, but omp_get_dynamic() says no");
    omp_set_max_active_levels(2);
    becomes_small(heavy, "parallel", most);
    becomes_small(heavy_reduction, "parallel with a task reduction", most);
    becomes_small(heavy_clause, "num_threads", most);
    stays(light, "without barriers", N);
    stays(heavy_nested, "with nested regions", 2);
    omp_set_dynamic(0);
    stays(heavy, "exact", N);
    stays(heavy_clause, "exact, num_threads", N);
    omp_set_dynamic(1);
    becomes_small(heavy, "parallel, again", most);
    CHECK(omp_get_max_threads() == N, "omp_get_max_threads() is %d", omp_get_max_threads());
    return check_ok();
}
