/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each clause of a task promises: order and exclusion of dependences of every kind,
 * priorities, final and undeferred tasks, cancelled taskgroups, events fulfilled by any thread,
 * large and copied arguments, taskloops of all grains, waits that run no task but descendants,
 * tasks outside regions and in nested ones.
 *
 * @mends the stock library hangs in the wavefront of dependences
 * @changing
 */
#include "../check.h"
#include "../fibonacci.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { MANY = 300 };

static void pause_a_little(void)
{
    for (volatile int i = 0; i < 300; i++)
        ;
}

/* Readers between two writers see the first one's value, whatever the number of addresses. */
static void readers_and_writers(int n)
{
    static int cell[MANY], sum[MANY];
    memset(cell, 0, sizeof cell);
    memset(sum, 0, sizeof sum);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < MANY; i++) {
            int *c = &cell[i], *s = &sum[i];
#pragma omp task depend(inout : c[0]) firstprivate(c)
            {
                pause_a_little();
                c[0]++;
            }
            for (int r = 0; r < 2; r++) {
#pragma omp task depend(in : c[0]) firstprivate(c, s, round)
                {
                    CHECK(c[0] == round + 1, "a reader saw %d in round %d", c[0], round);
#pragma omp atomic
                    s[0]++;
                }
            }
        }
    for (int i = 0; i < MANY; i++)
        CHECK(cell[i] == 3 && sum[i] == 6, "address %d: %d writers, %d readers", i, cell[i], sum[i]);
}

/* Each cell of a grid after its upper and left neighbours. */
static void wavefront(int n)
{
    enum { SIDE = 24 };
    static int grid[SIDE + 1][SIDE + 1];
    memset(grid, 0, sizeof grid);
    grid[0][1] = 1;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 1; i <= SIDE; i++)
        for (int j = 1; j <= SIDE; j++) {
#pragma omp task depend(in : grid[i - 1][j], grid[i][j - 1]) depend(out : grid[i][j])
            grid[i][j] = (grid[i - 1][j] + grid[i][j - 1]) % 1000;
        }
    int expected[SIDE + 1][SIDE + 1] = {{0}};
    expected[0][1] = 1;
    for (int i = 1; i <= SIDE; i++)
        for (int j = 1; j <= SIDE; j++) {
            expected[i][j] = (expected[i - 1][j] + expected[i][j - 1]) % 1000;
            CHECK(grid[i][j] == expected[i][j], "wavefront: [%d][%d]", i, j);
        }
}

/* mutexinoutset: one at a time on each address, also for tasks with two of them. */
static void exclusion(int n)
{
    int a = 0, b = 0, in_a = 0, in_b = 0, before = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp task depend(out : a) shared(before)
        {
            pause_a_little();
            before = 1;
        }
        for (int i = 0; i < MANY; i++) {
#pragma omp task depend(mutexinoutset : a) shared(a, in_a, before)
            {
                CHECK(before == 1, "mutexinoutset before its predecessor");
                CHECK(__atomic_add_fetch(&in_a, 1, __ATOMIC_RELAXED) == 1, "two in a");
                a++;
                __atomic_sub_fetch(&in_a, 1, __ATOMIC_RELAXED);
            }
#pragma omp task depend(mutexinoutset : a, b) shared(a, b, in_a, in_b)
            {
                CHECK(__atomic_add_fetch(&in_a, 1, __ATOMIC_RELAXED) == 1, "two in a and b");
                CHECK(__atomic_add_fetch(&in_b, 1, __ATOMIC_RELAXED) == 1, "two in b and a");
                a++, b++;
                __atomic_sub_fetch(&in_b, 1, __ATOMIC_RELAXED);
                __atomic_sub_fetch(&in_a, 1, __ATOMIC_RELAXED);
            }
#pragma omp task depend(mutexinoutset : b) shared(b, in_b)
            {
                CHECK(__atomic_add_fetch(&in_b, 1, __ATOMIC_RELAXED) == 1, "two in b");
                b++;
                __atomic_sub_fetch(&in_b, 1, __ATOMIC_RELAXED);
            }
        }
#pragma omp task depend(in : a, b) shared(a, b)
        CHECK(a == 2 * MANY && b == 2 * MANY, "after the sets: %d %d", a, b);
    }
}

/* Dependence objects and iterators name the same addresses as plain clauses. */
static void objects_and_iterators(int n)
{
    int x = 0, v[8] = {0};
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        omp_depend_t out, in;
#pragma omp depobj(out) depend(inout : x)
#pragma omp depobj(in) depend(in : x)
        for (int i = 0; i < 50; i++) {
#pragma omp task depend(depobj : out) shared(x) firstprivate(i)
            {
                CHECK(x == i, "depobj chain: %d for %d", x, i);
                x++;
            }
        }
#pragma omp task depend(depobj : in) shared(x)
        CHECK(x == 50, "depobj in: %d", x);
#pragma omp taskwait depend(in : x)
        CHECK(x == 50, "taskwait depend: %d", x);
#pragma omp depobj(out) destroy
#pragma omp depobj(in) destroy
        for (int i = 0; i < 8; i++) {
#pragma omp task depend(out : v[i]) shared(v)
            {
                pause_a_little();
                v[i] = i + 1;
            }
        }
#pragma omp task depend(iterator(k = 0 : 8), in : v[k]) shared(v)
        for (int i = 0; i < 8; i++)
            CHECK(v[i] == i + 1, "iterator: v[%d] = %d", i, v[i]);
    }
}

/* The descendants of a task that waits may run on its stack, siblings may not: they would find its
 * lock taken by their own thread. */
static void only_descendants(int n)
{
    static omp_lock_t lock;
    int done = 0;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 40; i++) {
#pragma omp task shared(done)
        {
            /* never blocks on a lock that a suspended task below holds: that would be for ever */
            omp_set_lock(&lock);
            for (int k = 0; k < 6; k++) {
#pragma omp task
                pause_a_little();
            }
#pragma omp taskwait
            omp_unset_lock(&lock);
#pragma omp atomic
            done++;
        }
    }
    CHECK(done == 40, "%d tasks held the lock", done);
    omp_destroy_lock(&lock);
}

/* Children that outlive their parents count for a taskgroup and for the region. */
static void orphans(int n)
{
    int ran = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
#pragma omp taskgroup
        for (int i = 0; i < 60; i++) {
#pragma omp task shared(ran)
            for (int k = 0; k < 10; k++) {
#pragma omp task shared(ran)
                {
#pragma omp task shared(ran)
                    {
                        pause_a_little();
#pragma omp atomic
                        ran++;
                    }
                }
            }
        }
        CHECK(ran == 600, "taskgroup: %d of 600", ran);
#pragma omp task shared(ran)
#pragma omp task shared(ran)
#pragma omp task shared(ran)
        {
            pause_a_little();
#pragma omp atomic
            ran++;
        }
#pragma omp taskwait
    }
    CHECK(ran == 601, "region: %d of 601", ran);
}

static void final_and_undeferred(int n)
{
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        int x = 0;
#pragma omp task final(1) shared(x)
        {
            CHECK(omp_in_final(), "not in a final task");
#pragma omp task shared(x)
            {
                CHECK(omp_in_final(), "the child of a final task is not final");
                x = 1;
            }
            CHECK(x == 1, "the child of a final task was deferred");
        }
#pragma omp taskwait
        x = 0;
#pragma omp task if (0) shared(x)
        {
#pragma omp task shared(x)
            {
                pause_a_little();
                x = 1;
            }
#pragma omp taskwait
        }
        CHECK(x == 1, "undeferred task: %d", x);
        CHECK(!omp_in_final(), "in a final task after it");
    }
}

struct large {
    char bytes[5000];
};

static void large_arguments(int n)
{
    int wrong = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 100; i++) {
        struct large l;
        memset(&l, i, sizeof l);
#pragma omp task firstprivate(l) shared(wrong)
        if (l.bytes[0] != i || l.bytes[4999] != i) {
#pragma omp atomic
            wrong++;
        }
    }
    CHECK(!wrong, "%d large arguments arrived damaged", wrong);
}

static void taskloops(int n)
{
    static int hits[1000];
    for (int size = 1; size <= 1000; size = size * 3 + 1)
        for (int kind = 0; kind < 5; kind++) {
            int last = -1;
            memset(hits, 0, sizeof hits);
#pragma omp parallel num_threads(n)
#pragma omp single
            switch (kind) {
            case 0:
#pragma omp taskloop lastprivate(last)
                for (int i = 0; i < size; i++) {
                    __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
                    last = i;
                }
                break;
            case 1:
#pragma omp taskloop grainsize(1) lastprivate(last)
                for (int i = size - 1; i >= 0; i--) {
                    __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
                    last = size - 1 - i;
                }
                break;
            case 2:
#pragma omp taskloop num_tasks(7) nogroup
                for (long long i = 0; i < size; i++)
                    __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
#pragma omp taskwait
                for (int i = 0; i < size; i++)
                    CHECK(hits[i] == 1, "taskwait after nogroup: %d", hits[i]);
                last = size - 1;
                break;
            case 3:
#pragma omp taskloop grainsize(1) if (0) lastprivate(last)
                for (unsigned i = 0; i < (unsigned)size; i++) {
                    hits[i]++;
                    last = (int)i;
                }
                break;
            default:
#pragma omp taskloop collapse(2) num_tasks(5) lastprivate(last)
                for (int i = 0; i < size; i++)
                    for (int k = 0; k < 1; k++) {
                        __atomic_add_fetch(&hits[i], 1, __ATOMIC_RELAXED);
                        last = i;
                    }
            }
            for (int i = 0; i < size; i++)
                CHECK(hits[i] == 1, "taskloop %d of %d: %d ran %d times", kind, size, i, hits[i]);
            CHECK(last == size - 1, "taskloop %d of %d: lastprivate %d", kind, size, last);
        }
}

static void *fulfil_all(void *arg)
{
    omp_event_handle_t *events = arg;
    for (int i = 0; i < 20; i++) {
        pause_a_little();
        omp_fulfill_event(events[i]);
    }
    return NULL;
}

/* Events that come before the body ends, after it, from inside the team and outside of it. */
static void events(int n)
{
    omp_event_handle_t event[20];
    int x = 0;
    pthread_t outside;
#pragma omp parallel num_threads(n)
#pragma omp single
    {
        for (int i = 0; i < 20; i++) {
            omp_event_handle_t e;
#pragma omp task detach(e) depend(inout : x) shared(x)
            x++;
            event[i] = e;
        }
        CHECK(pthread_create(&outside, NULL, fulfil_all, event) == 0, "pthread_create");
#pragma omp taskwait
        CHECK(x == 20, "%d of 20 detached tasks", x);
#pragma omp taskgroup
        for (int i = 0; i < 10; i++) {
            omp_event_handle_t e;
#pragma omp task detach(e) shared(x)
            {
#pragma omp task shared(x)
                {
#pragma omp atomic
                    x++;
                }
                if (i % 2)
                    omp_fulfill_event(e);
            }
            if (i % 2 == 0)
                omp_fulfill_event(e);
        }
        CHECK(x == 30, "detached tasks of a group: %d", x);
    }
    CHECK(pthread_join(outside, NULL) == 0, "pthread_join");
}

/* Regions within tasks, and tasks within those. */
static void nested(int n)
{
    int sum = 0;
#pragma omp parallel num_threads(n)
#pragma omp single
    for (int i = 0; i < 8; i++) {
#pragma omp task shared(sum)
        {
            int part = 0;
#pragma omp parallel num_threads(2) shared(part)
#pragma omp single
            part = fibonacci(10, 0);
#pragma omp atomic
            sum += part;
        }
    }
    CHECK(sum == 8 * 55, "nested: %d", sum);
}

static void outside_of_regions(void)
{
    int x = 0;
    CHECK(fibonacci(10, 0) == 55, "tasks outside a region");
#pragma omp taskgroup task_reduction(+ : x)
    {
#pragma omp task in_reduction(+ : x)
        x += 5;
#pragma omp taskloop in_reduction(+ : x)
        for (int i = 0; i < 10; i++)
            x += i;
    }
    CHECK(x == 50, "task reduction outside a region: %d", x);
}

int main(void)
{
    static const int sizes[] = {1, 2, 4, 16};
    omp_set_max_active_levels(2);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        readers_and_writers(n);
        wavefront(n);
        exclusion(n);
        objects_and_iterators(n);
        only_descendants(n);
        orphans(n);
        final_and_undeferred(n);
        large_arguments(n);
        taskloops(n);
        events(n);
        nested(n);
        outside_of_regions();
    }
    return check_ok();
}
