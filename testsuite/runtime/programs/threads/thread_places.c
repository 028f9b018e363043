/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each thread number has the place that OMP_PLACES and proc_bind give it, whichever kernel thread
 * and core it runs on, also after barriers and in nested regions; unmanaged it runs there.
 * @env OMP_PLACES=threads
 * @env OMP_NUM_THREADS=6
 */
#define _GNU_SOURCE
#include "../check.h"
#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

enum { MAX = 32, ROUNDS = 20 };

static int places;    /* in the partition of the initial thread: all */
static int home;      /* the place of the initial thread */
static bool bound;    /* the process is unmanaged: places are where threads run */
static int place_of[MAX], partition_len[MAX], partition_first[MAX];

static void in_place(const char *how, int me)
{
    int place = omp_get_place_num();
    CHECK(place >= 0 && place < places, "%s: thread %d is in place %d of %d", how, me, place, places);
    cpu_set_t now;
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0, "sched_getaffinity");
    int n = omp_get_place_num_procs(place), ids[n];
    omp_get_place_proc_ids(place, ids);
    if (!bound)
        return;
    CHECK(CPU_COUNT(&now) == n, "%s: thread %d may run on %d processors, its place has %d", how, me,
          CPU_COUNT(&now), n);
    for (int i = 0; i < n; i++)
        CHECK(CPU_ISSET(ids[i], &now), "%s: thread %d may not run on %d, of its place", how, me, ids[i]);
}

/* What each member of a region calls. */
static void member(const char *how)
{
    int me = omp_get_thread_num(), list[places];
    in_place(how, me);
    place_of[me] = omp_get_place_num();
    partition_len[me] = omp_get_partition_num_places();
    omp_get_partition_place_nums(list);
    partition_first[me] = list[0];
#pragma omp barrier
    in_place(how, me);
    CHECK(omp_get_place_num() == place_of[me], "%s: thread %d moved to another place", how, me);
    CHECK(omp_get_thread_num() == me, "%s: thread %d has become %d", how, me, omp_get_thread_num());
}

/* OpenMP 5.1, 2.6.2: T threads, P places; T > P: between floor and ceiling of T/P in each. */
static void check_counts(const char *how, int threads)
{
    int count[places];
    memset(count, 0, sizeof count);
    for (int i = 0; i < threads; i++)
        count[place_of[i]]++;
    for (int p = 0; p < places; p++)
        CHECK(count[p] >= threads / places && count[p] <= (threads + places - 1) / places,
              "%s: %d of %d threads in place %d of %d", how, count[p], threads, p, places);
}

/* So many threads to each place, in order, when it comes out even. */
static void check_order(const char *how, int threads)
{
    for (int i = 0; i < threads && (threads <= places || threads % places == 0); i++) {
        int expected = (home + (threads <= places ? i : i / (threads / places))) % places;
        CHECK(place_of[i] == expected, "%s: thread %d of %d in place %d, not %d", how, i, threads,
              place_of[i], expected);
    }
}

static void close_to_master(int threads)
{
#pragma omp parallel num_threads(threads) proc_bind(close)
    member("close");
    check_counts("close", threads);
    check_order("close", threads);
    for (int i = 0; i < threads; i++)
        CHECK(partition_len[i] == places, "close: partition of %d places", partition_len[i]);
}

static void spread_out(int threads)
{
#pragma omp parallel num_threads(threads) proc_bind(spread)
    member("spread");
    check_counts("spread", threads);
    if (threads >= places)
        check_order("spread", threads);
    for (int i = 0; i < threads; i++) {
        int most = threads >= places ? 1 : (places + threads - 1) / threads;
        CHECK(partition_len[i] >= 1 && partition_len[i] <= most, "spread: partition of %d places",
              partition_len[i]);
        CHECK(place_of[i] >= partition_first[i] && place_of[i] < partition_first[i] + partition_len[i],
              "spread: thread %d is outside of its partition", i);
    }
}

static void with_master(int threads)
{
#pragma omp parallel num_threads(threads) proc_bind(master)
    member("master");
    for (int i = 0; i < threads; i++)
        CHECK(place_of[i] == home, "master: thread %d in place %d, not %d", i, place_of[i], home);
}

/* Members of an inner team stay in the partition of the outer thread. */
static void nested(void)
{
#pragma omp parallel num_threads(places) proc_bind(spread)
    {
        int place = omp_get_place_num(), outer = omp_get_thread_num();
#pragma omp parallel num_threads(3) proc_bind(close)
        {
            CHECK(omp_get_ancestor_thread_num(1) == outer, "ancestor");
            CHECK(omp_get_place_num() == place, "inner thread %d of %d in place %d, not %d",
                  omp_get_thread_num(), outer, omp_get_place_num(), place);
            CHECK(omp_get_partition_num_places() == 1, "inner partition of %d places",
                  omp_get_partition_num_places());
            in_place("nested", omp_get_thread_num());
        }
        CHECK(omp_get_place_num() == place, "after the inner region thread %d is in place %d, not %d",
              outer, omp_get_place_num(), place);
    }
}

int main(void)
{
    bound = !getenv("INVASIVE_SOCKET");
    places = omp_get_num_places();
    omp_set_max_active_levels(2);
    CHECK(places >= 1 && places <= MAX, "%d places", places);
    home = omp_get_place_num();
    CHECK(home >= 0 && home < places, "the initial thread is in place %d of %d", home, places);
    for (int round = 0; round < ROUNDS; round++) {
        for (int threads = 2; threads <= 6; threads++) {
            close_to_master(threads);
            spread_out(threads);
            with_master(threads);
        }
        nested();
    }
    return check_ok();
}
