/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where thieves have learned that tasks are short, and take several at once, each task runs once; a
 * task that then takes long keeps the others from no thread; and a task that waits runs none but
 * its descendants.
 *
 * @changing
 */
#include "../check.h"
#include <omp.h>
#include <string.h>

enum { MANY = 20000, ROUNDS = 20, SHORT = 1000, FEW = 12 };

static unsigned char hits[MANY];

/* One thread makes all tasks, which are short: the others steal. */
static void short_ones(int n)
{
    memset(hits, 0, sizeof hits);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < MANY; i++) {
#pragma omp task firstprivate(i)
        __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(hits[i] == 1, "task %d ran %d times", i, hits[i]);
}

/* Many short tasks, and then some of the same body, of which the first goes on until all others have
 * run.  The queue is empty when it is made, so that its creator does not run it at once. */
static void one_waits(int n)
{
    int others = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < SHORT + FEW; i++) {
        if (i == SHORT) {
#pragma omp taskwait
        }
#pragma omp task firstprivate(i) shared(others)
        if (i != SHORT)
            __atomic_add_fetch(&others, 1, __ATOMIC_RELEASE);
        else
            while (__atomic_load_n(&others, __ATOMIC_ACQUIRE) < SHORT + FEW - 1) {
#pragma omp taskyield
            }
    }
    CHECK(others == SHORT + FEW - 1, "%d others", others);
}

/* Groups of short tasks under several parents, each of which holds a lock while it waits. */
static void only_children(int n)
{
    static omp_lock_t lock;
    int done = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 100; i++) {
#pragma omp task shared(done)
        {
            omp_set_lock(&lock);
            for (int k = 0; k < 20; k++) {
#pragma omp task shared(done)
                __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
            }
#pragma omp taskwait
            omp_unset_lock(&lock);
        }
    }
    CHECK(done == 2000, "%d children", done);
    omp_destroy_lock(&lock);
}

int main(void)
{
    static const int sizes[] = {2, 4, 16};
    for (int i = 0; i < 3; i++) {
        short_ones(sizes[i]);
        only_children(sizes[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        one_waits(2 + round % 3);
    return check_ok();
}
