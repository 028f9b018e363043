/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GOMP_CPU_AFFINITY: thread number i has the i-th place of the list, round about; unmanaged it runs
 * there (test_thread_identity.py, which sets it).
 * @helper
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <sched.h>

int main(void)
{
    int cpus[64], n = 0;
    const char *list = getenv("GOMP_CPU_AFFINITY");
    CHECK(list, "GOMP_CPU_AFFINITY is not set");
    for (char *end; n < 64; list = end) {
        long cpu = strtol(list, &end, 10);
        if (end == list)
            break;
        cpus[n++] = (int)cpu;
    }
    CHECK(n > 0 && omp_get_num_places() == n, "%d places, not %d", omp_get_num_places(), n);
    CHECK(omp_get_proc_bind() != omp_proc_bind_false, "threads are not bound");
    for (int round = 0; round < 30; round++) {
#pragma omp parallel num_threads(2 * n)
        {
            int me = omp_get_thread_num(), cpu = -1;
            if (round % 2) {
#pragma omp barrier
            }
            int place = omp_get_place_num();
            CHECK(place == me / 2, "thread %d is in place %d", me, place);
            CHECK(omp_get_place_num_procs(place) == 1, "place of %d", omp_get_place_num_procs(place));
            omp_get_place_proc_ids(place, &cpu);
            CHECK(cpu == cpus[place], "place %d is processor %d, not %d", place, cpu, cpus[place]);
            CHECK(getenv("INVASIVE_SOCKET") || sched_getcpu() == cpu, "thread %d on %d, not %d", me,
                  sched_getcpu(), cpu);
        }
    }
    return check_ok();
}
