/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that a task has called, and that come when the region is over, do not look for more tasks
 * of it: in the serial part that follows they give their cores up.
 */
#include "../check.h"
#include <omp.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 10, IDLE_NS = 30000000, SERIAL_NS = 50000000 };

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void pause_for(long ns)
{
    const struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

int main(void)
{
    double in_serial_parts = 0;
    int sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(3)
        if (omp_get_thread_num() == 0) {
            pause_for(IDLE_NS); /* the others have nothing to do, and sleep */
#pragma omp task shared(sum)
            sum++;
#pragma omp taskwait
        }
        double before = cpu_seconds();
        pause_for(SERIAL_NS);
        in_serial_parts += cpu_seconds() - before;
    }
    CHECK(sum == ROUNDS, "%d tasks", sum);
    double all = 1e-9 * ROUNDS * SERIAL_NS;
    CHECK(in_serial_parts < 0.5 * all, "%.2f s of processor time in %.2f s without work",
          in_serial_parts, all);
    return check_ok();
}
