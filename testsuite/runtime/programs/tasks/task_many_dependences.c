/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The dependences of one task may be so many that a second copy of them does not fit on the stack:
 * an iterator over 100,000 elements, in a team whose threads have 1.5 MB each.  They order tasks as
 * few do, also an undeferred task and a taskwait.
 * @env OMP_STACKSIZE=1536K
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { MANY = 100000, STACK = 1536 << 10 };

static char cell[MANY];
static int ran;

/* Functions of their own: the compiler keeps each array of addresses until its function returns. */
static __attribute__((noinline)) void write_all(char value)
{
#pragma omp task depend(iterator(i = 0 : MANY), out : cell[i])
    {
        memset(cell, value, sizeof cell);
#pragma omp atomic
        ran++;
    }
}

static __attribute__((noinline)) void read_all(char value)
{
#pragma omp task depend(iterator(i = 0 : MANY), in : cell[i])
    {
        CHECK(cell[0] == value && cell[MANY - 1] == value, "read %d, not %d", cell[0], value);
#pragma omp atomic
        ran++;
    }
}

static __attribute__((noinline)) void read_undeferred(char value)
{
#pragma omp task if (0) depend(iterator(i = 0 : MANY), in : cell[MANY - 1 - i])
    CHECK(cell[0] == value && cell[MANY - 1] == value, "undeferred: read %d, not %d", cell[0],
          value);
}

static __attribute__((noinline)) void wait_for_all(char value)
{
#pragma omp taskwait depend(iterator(i = 0 : MANY), in : cell[i])
    CHECK(cell[0] == value && cell[MANY - 1] == value, "taskwait: read %d, not %d", cell[0], value);
}

static void generate(void)
{
    ran = 0;
    for (char round = 1; round <= 3; round++) {
        write_all(round);
        read_all(round);
        read_all(round);
        if (round == 2)
            read_undeferred(round);
        if (round == 3)
            wait_for_all(round);
    }
}

static void *with_teams(void *unused)
{
    for (int n = 1; n <= 4; n++) {
#pragma omp parallel num_threads(n)
        {
#pragma omp masked
            generate();
#pragma omp barrier
#pragma omp single
#pragma omp task /* on any thread */
            generate();
        }
        CHECK(ran == 9, "%d of 9 tasks ran in a team of %d", ran, n);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, STACK) == 0, "stack size");
    CHECK(pthread_create(&thread, &small, with_teams, NULL) == 0, "pthread_create");
    CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
    return check_ok();
}
