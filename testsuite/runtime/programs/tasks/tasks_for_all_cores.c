/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A thread that creates long tasks runs one of them itself when it has queued many: by then there is
 * one for each core.  A taskloop has one for each core from its beginning.  Each task here waits until
 * as many run as there are cores.
 * @emulated
 */
#include "../check.h"
#include <omp.h>
#include <time.h>

enum { REGIONS = 10, TASKS_A_CORE = 3, LIMIT_S = 30 };

static void wait_for_all(const int *started, int cores)
{
    const struct timespec look = {0, 1000000};
    time_t began = time(NULL);
    int now;
    while ((now = __atomic_load_n(started, __ATOMIC_RELAXED)) < cores) {
        CHECK(time(NULL) - began < LIMIT_S, "%d tasks run on %d cores", now, cores);
        nanosleep(&look, NULL);
    }
}

static void one(int *started, int cores)
{
    __atomic_fetch_add(started, 1, __ATOMIC_RELAXED);
    wait_for_all(started, cores);
}

static int by_tasks(int count, int cores)
{
    int started = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < count; i++) {
#pragma omp task shared(started)
        one(&started, cores);
    }
    return started;
}

static int by_taskloop(int count, int cores)
{
    int started = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(1) shared(started)
    for (int i = 0; i < count; i++)
        one(&started, cores);
    return started;
}

int main(void)
{
    int cores = omp_get_num_procs(), count = TASKS_A_CORE * cores;
    CHECK(cores > 4, "%d cores are too few to tell", cores);
    for (int region = 0; region < REGIONS; region++) {
        int ran = by_tasks(count, cores);
        CHECK(ran == count, "%d tasks ran", ran);
        ran = by_taskloop(count, cores);
        CHECK(ran == count, "%d tasks of a taskloop ran", ran);
    }
    return check_ok();
}
