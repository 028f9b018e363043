/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads of nested regions may wait for each other and for those of other regions, by every construct, as
 * if each were a kernel thread, and no kernel thread is needed for each that waits.  The argument says
 * which.
 * @each constructs tasks locks recursive many unbalanced cancelled sizes
 * @env OMP_MAX_ACTIVE_LEVELS=8
 * @env OMP_CANCELLATION=true
 * @changing
 */
#include "check.h"
#include <omp.h>
#include <string.h>

enum { OUTER = 3, INNER = 5, ROUNDS = 8 };

static void in_each_inner_team(void (*body)(int outer, int inner))
{
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(OUTER)
        {
            int outer = omp_get_thread_num();
#pragma omp parallel num_threads(INNER)
            {
                CHECK(omp_get_num_threads() == INNER && omp_get_level() == 2 &&
                          omp_get_ancestor_thread_num(1) == outer && omp_get_team_size(1) == OUTER,
                      "a thread of team %d does not know where it is", outer);
                body(outer, omp_get_thread_num());
            }
            CHECK(omp_get_thread_num() == outer && omp_get_num_threads() == OUTER,
                  "thread %d of the outer team is %d now", outer, omp_get_thread_num());
        }
    }
}

/* Of each outer thread. */
static int turn[OUTER], sum[OUTER], grid[OUTER][INNER];

static void constructs(int outer, int inner)
{
    int copied = 0;
#pragma omp single copyprivate(copied)
    copied = 100 + outer;
    CHECK(copied == 100 + outer, "copyprivate gave %d", copied);
#pragma omp single
    turn[outer] = sum[outer] = 0;
#pragma omp for ordered schedule(dynamic, 1)
    for (int i = 0; i < 3 * INNER; i++) {
#pragma omp ordered
        {
            CHECK(turn[outer] == i, "turn %d, not %d", i, turn[outer]);
            turn[outer]++;
        }
    }
#pragma omp for ordered(1) schedule(static, 1)
    for (int i = 1; i < 2 * INNER; i++) {
#pragma omp ordered depend(sink : i - 1)
        turn[outer]++;
#pragma omp ordered depend(source)
    }
    CHECK(turn[outer] == 5 * INNER - 1, "%d turns", turn[outer]);
    for (int k = 1; k <= 4; k++) {
        grid[outer][inner] = k;
#pragma omp barrier
        CHECK(grid[outer][(inner + k) % INNER] == k, "a neighbour has not come to barrier %d", k);
#pragma omp barrier
    }
#pragma omp critical(in_nested)
    sum[outer] += inner;
#pragma omp barrier
    CHECK(sum[outer] == INNER * (INNER - 1) / 2, "sum %d", sum[outer]);
}

static int fib(int n)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

/* A task that begins a region of its own. */
static int team_of_task(int n)
{
    int count = 0;
#pragma omp parallel num_threads(n) reduction(+ : count)
    {
#pragma omp barrier
        count++;
    }
    return count;
}

static void tasks(int outer, int inner)
{
    static int before[OUTER], after[OUTER];
    int result = 0;
#pragma omp single
    {
        before[outer] = after[outer] = 0;
#pragma omp taskgroup
        for (int i = 0; i < 10; i++) {
#pragma omp task shared(before, after)
            {
                int members = team_of_task(3);
#pragma omp atomic
                before[outer] += members;
            }
        }
        CHECK(before[outer] == 30, "%d threads of tasks", before[outer]);
    }
    result = fib(8);
    CHECK(result == 21, "fib(8) is %d", result);
#pragma omp task depend(inout : result)
#pragma omp atomic
    after[outer]++;
#pragma omp barrier
    CHECK(after[outer] == INNER, "%d of thread %d", after[outer], inner);
}

/* The outer thread that begins a nested region holds a lock that the others wait for. */
static void locks(void)
{
    static omp_lock_t lock;
    int inside = 0;
    omp_init_lock(&lock);
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(OUTER * 2)
        {
            omp_set_lock(&lock);
            inside++;
            int seen = inside, members = 0;
#pragma omp parallel num_threads(INNER) reduction(+ : members)
            {
#pragma omp barrier
                members++;
            }
            CHECK(members == INNER && inside == seen, "another thread has the lock, too");
            omp_unset_lock(&lock);
        }
    }
    CHECK(inside == ROUNDS * OUTER * 2, "%d times inside", inside);
    omp_destroy_lock(&lock);
}

static int descend(int levels)
{
    int leaves = 0;
    if (levels == 0)
        return 1;
#pragma omp parallel num_threads(2) reduction(+ : leaves)
    {
#pragma omp barrier
        leaves += descend(levels - 1);
#pragma omp barrier
        CHECK(omp_get_num_threads() == 2, "team of %d", omp_get_num_threads());
    }
    return leaves;
}

static void recursive(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int leaves = descend(6);
        CHECK(leaves == 64, "%d leaves", leaves);
    }
}

/* More regions at a time than are open in any sensible program. */
static void many(void)
{
    enum { REGIONS = 100 };
    int open = 0, most = 0;
#pragma omp parallel num_threads(REGIONS)
    for (int round = 0; round < 2; round++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            {
                int now;
#pragma omp atomic capture
                now = ++open;
#pragma omp critical
                most = now > most ? now : most;
            }
#pragma omp barrier
#pragma omp single
#pragma omp atomic
            open--;
        }
#pragma omp barrier
    }
    CHECK(open == 0 && most >= 1 && most <= REGIONS, "%d open, %d at most", open, most);
}

/* Only one outer thread has work, in nested regions; the others wait at the outer barrier. */
static void unbalanced(void)
{
    int total = 0;
#pragma omp parallel num_threads(4) reduction(+ : total)
    for (int round = 0; round < 20; round++) {
        if (omp_get_thread_num() == round % 4) {
            int members = 0;
#pragma omp parallel num_threads(8) reduction(+ : members)
            {
#pragma omp barrier
                members++;
            }
            total += members;
        }
#pragma omp barrier
    }
    CHECK(total == 160, "%d threads", total);
}

static void cancelled(int outer, int inner)
{
    static int count[OUTER];
#pragma omp single
    count[outer] = 0;
#pragma omp for
    for (int i = 0; i < 1000; i++) {
#pragma omp atomic
        count[outer]++;
        if (i % 200 == 10) {
#pragma omp cancel for
        }
#pragma omp cancellation point for
    }
#pragma omp barrier
    CHECK(count[outer] > 0 && count[outer] < 1000, "%d iterations of team %d, thread %d", count[outer],
          outer, inner);
}

/* The team of one outer thread is cancelled, those of the others are not. */
static void cancelled_teams(void)
{
    int whole[OUTER] = {0};
#pragma omp parallel num_threads(OUTER)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(INNER)
        {
            if (outer == 1 && omp_get_thread_num() == INNER - 1) {
#pragma omp cancel parallel
            }
#pragma omp barrier
#pragma omp atomic
            whole[outer]++;
        }
    }
    CHECK(whole[0] == INNER && whole[1] == 0 && whole[2] == INNER, "%d, %d, %d threads went on",
          whole[0], whole[1], whole[2]);
}

/* Teams of changing sizes, and of one thread in between; the struct of an ended region is used again. */
static void sizes(void)
{
    int before = kernel_threads(), most = 0;
    for (int round = 0; round < 40; round++) {
        int outer = 1 + round % 5, total = 0;
#pragma omp parallel num_threads(outer) reduction(+ : total) reduction(max : most)
        {
            int inner = 1 + (round + omp_get_thread_num()) % 7, members = 0;
#pragma omp parallel num_threads(1)
#pragma omp parallel num_threads(inner) reduction(+ : members)
            {
#pragma omp barrier
                members++;
            }
            CHECK(members == inner, "team of %d, not %d", members, inner);
            total += members;
            int now = kernel_threads();
            most = now > most ? now : most;
        }
        CHECK(total >= outer, "%d threads in %d teams", total, outer);
    }
    CHECK(most >= before, "%d kernel threads at most, %d before", most, before);
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "constructs") == 0)
        in_each_inner_team(constructs);
    else if (strcmp(what, "tasks") == 0)
        in_each_inner_team(tasks);
    else if (strcmp(what, "cancelled") == 0)
        in_each_inner_team(cancelled), cancelled_teams();
    else if (strcmp(what, "locks") == 0)
        locks();
    else if (strcmp(what, "recursive") == 0)
        recursive();
    else if (strcmp(what, "many") == 0)
        many();
    else if (strcmp(what, "unbalanced") == 0)
        unbalanced();
    else if (strcmp(what, "sizes") == 0)
        sizes();
    else
        CHECK(0, "usage: nested_waits constructs|tasks|locks|recursive|many|unbalanced|cancelled|sizes");
    return check_ok();
}
