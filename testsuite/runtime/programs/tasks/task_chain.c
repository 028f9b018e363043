/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A chain of tasks, each of which creates the next one and ends, may be as long as it likes: it
 * needs neither the stack nor the memory of all its tasks, in a team of one either.  A
 * thread that waits for the chain waits for all of it.
 * @mends with two threads, when a chain has leaves, tasks run at once within each other without end
 * @changing
 */
#include "../check.h"

enum { LINKS = 150000, LIMIT_KB = 30000 };

static void count(long *ran)
{
    __atomic_fetch_add(ran, 1, __ATOMIC_RELAXED);
}

static void link_of_chain(long *ran, long left, int leaves)
{
    count(ran);
    for (int i = 0; i < leaves; i++) {
#pragma omp task
        count(ran);
    }
    /* Now and then one that has more than one successor and waits for all that come of it. */
    if (left % 1000 == 0) {
#pragma omp taskgroup
        {
#pragma omp task
            link_of_chain(ran, 10, 1);
        }
    }
    if (left > 1) {
#pragma omp task
        link_of_chain(ran, left - 1, leaves);
    }
}

/* A link in a thousand has a chain of ten, with a leaf each, beside its successor. */
static long expected(long links, int leaves)
{
    return links * (1 + leaves) + links / 1000 * 20;
}

static long peak_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "no /proc/self/status");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    fclose(status);
    return kb;
}

/* One chain for which a task waits, and so executes nothing else, and one for which the region
 * does. */
static void run_chains(int threads, long links, int leaves)
{
    long grouped = 0, loose = 0, all = expected(links, leaves);
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp task shared(grouped)
        {
#pragma omp taskgroup
            {
#pragma omp task shared(grouped)
                link_of_chain(&grouped, links, leaves);
            }
            CHECK(grouped == all, "%d threads: %ld of %ld tasks of the group", threads, grouped, all);
        }
        link_of_chain(&loose, links, leaves);
    }
    CHECK(loose == all, "%d threads: %ld of %ld tasks", threads, loose, all);
}

int main(void)
{
    long before = peak_kb();
    for (int threads = 1; threads <= 4; threads++)
        run_chains(threads, LINKS, 0);
    long after = peak_kb();
    CHECK(after - before < LIMIT_KB, "the chains took %ld kB", after - before);
    for (int threads = 1; threads <= 4; threads++)
        run_chains(threads, LINKS / 3, 5);
    return check_ok();
}
