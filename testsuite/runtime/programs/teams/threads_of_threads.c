/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Many threads of a program that has thread-local data may open regions of the default size at once:
 * the kernel threads are those that there are without us, a watchdog, and at most a free worker for each
 * core; each thread gets teams of the size that it is told, and its thread numbers keep their data from
 * region to region.  When the program's threads have ended, so have those that were made for them.  An
 * argument is INVASIVE_BIND.
 * @each strict elastic
 */
#include "../threads.h"
#include <omp.h>
#include <pthread.h>

enum { THREADS = 24, REGIONS = 10 };

static __thread int mine;
static pthread_barrier_t meeting;
static int strict;

static void regions(int team)
{
    for (int i = 0; i < REGIONS; i++) {
        int size = 0, wrong = 0;
#pragma omp parallel reduction(+ : wrong)
        {
            wrong += mine++ != i;
#pragma omp barrier
#pragma omp single
            size = omp_get_num_threads();
        }
        CHECK(size == team, "team of %d, not %d", size, team);
        CHECK(!strict || wrong == 0, "%d threads have lost their data", wrong);
    }
}

static void *work(void *none)
{
    int told = omp_get_max_threads();
    regions(told);
    CHECK(omp_get_max_threads() == told, "told %d, then %d", told, omp_get_max_threads());
    pthread_barrier_wait(&meeting); /* all have their workers */
    pthread_barrier_wait(&meeting);
    return none;
}

static void all_at_once(void)
{
    int procs = omp_get_num_procs(), stock = 1 + THREADS * procs;
    /* In elastic regions threads that wait in a barrier hand their core to others, of which some may be
     * on their way at any time (gomp_free_workers_enough). */
    int on_their_way = strict ? 0 : 8;
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&ids[i], NULL, work, NULL) == 0, "pthread_create");
    pthread_barrier_wait(&meeting);
    int now = kernel_threads();
    CHECK(now <= stock + 1 + procs + on_their_way, "%d kernel threads, without us %d", now, stock);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(ids[i], NULL) == 0, "pthread_join");
    int left = threads_after_a_while(1 + procs);
    CHECK(left <= 1 + procs, "%d kernel threads are left", left);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: threads_of_threads strict|elastic");
    strict = argv[1][0] == 's';
    setenv("INVASIVE_BIND", argv[1], 1); /* read when the first region begins */
    pthread_barrier_init(&meeting, NULL, THREADS + 1);
    all_at_once();
    all_at_once();
    return check_ok();
}
