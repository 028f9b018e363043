/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads of nested regions may wait for each other and for threads of other regions, by every construct, as
 * if each were a kernel thread.  The argument says how.
 * @each constructs tasks locks mutex flag recursive many unbalanced cancelled sizes
 * @env OMP_MAX_ACTIVE_LEVELS=8
 * @env OMP_CANCELLATION=true
 * @changing
 */
#include "../check.h"
#include "../fibonacci.h"
#include <omp.h>
#include <pthread.h>
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
    result = fibonacci(8, 0);
    CHECK(result == 21, "fibonacci(8) is %d", result);
#pragma omp task depend(inout : result)
#pragma omp atomic
    after[outer]++;
#pragma omp barrier
    CHECK(after[outer] == INNER, "%d of thread %d", after[outer], inner);
}

static int members_of_nested(void)
{
    int members = 0;
#pragma omp parallel num_threads(INNER) reduction(+ : members)
    {
#pragma omp barrier
        members++;
    }
    return members;
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
            int seen = inside, members = members_of_nested();
            CHECK(members == INNER && inside == seen, "another thread has the lock, too");
            omp_unset_lock(&lock);
        }
    }
    CHECK(inside == ROUNDS * OUTER * 2, "%d times inside", inside);
    omp_destroy_lock(&lock);
}

/* The same with a mutex, for which a thread waits in the kernel.  All have met at a barrier before, so any of them
 * may be the one that goes on first. */
static void mutex(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int inside = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(OUTER)
        {
#pragma omp barrier
            pthread_mutex_lock(&lock);
            int members = omp_get_thread_num() == round % OUTER ? members_of_nested() : INNER;
            CHECK(members == INNER, "team of %d", members);
            inside++;
            pthread_mutex_unlock(&lock);
        }
    }
    CHECK(inside == ROUNDS * OUTER, "%d times inside", inside);
}

/* One outer thread waits in a loop for what another one does after its nested region. */
static void flag(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int over = 0, one = round % 2;
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
            if (omp_get_thread_num() == one) {
                CHECK(members_of_nested() == INNER, "a team of another size");
                __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
            } else
                while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                    ;
        }
    }
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

/* All of these are open at a time: of 100 more than in any sensible program. */
static void open_at_once(int regions)
{
    int open = 0;
#pragma omp parallel num_threads(regions)
    for (int round = 1; round <= 2; round++) {
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 0) {
                int now;
#pragma omp atomic
                open++;
                do {
#pragma omp taskyield
#pragma omp atomic read
                    now = open;
                } while (now < round * regions);
            }
#pragma omp barrier
        }
    }
    CHECK(open == 2 * regions, "%d regions have been open", open);
}

/* Afterwards regions are what they were. */
static void many(void)
{
    static const int regions[] = {20, 100, 20};
    for (int i = 0; i < 3; i++) {
        open_at_once(regions[i]);
        CHECK(members_of_nested() == INNER, "a team of another size");
    }
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
    for (int round = 0; round < 40; round++) {
        int outer = 1 + round % 5, total = 0, expected = 0;
        for (int i = 0; i < outer; i++)
            expected += 1 + (round + i) % 7;
#pragma omp parallel num_threads(outer) reduction(+ : total)
        {
            int inner = 1 + (round + omp_get_thread_num()) % 7, members = 0;
#pragma omp parallel num_threads(1)
#pragma omp parallel num_threads(inner) reduction(+ : members)
            {
#pragma omp parallel num_threads(1)
                {
#pragma omp critical(in_sizes)
                    members++;
                }
#pragma omp barrier
            }
            CHECK(members == inner, "team of %d, not %d", members, inner);
            total += members;
        }
        CHECK(total == expected, "%d threads in %d teams, not %d", total, outer, expected);
    }
}

/* Called once, or by each thread of each inner team. */
static const struct {
    const char *name;
    void (*once)(void);
    void (*in_teams)(int outer, int inner);
} kinds[] = {
    {"constructs", NULL, constructs}, {"tasks", NULL, tasks},        {"locks", locks, NULL},
    {"mutex", mutex, NULL},           {"flag", flag, NULL},          {"recursive", recursive, NULL},
    {"many", many, NULL},             {"unbalanced", unbalanced, NULL},
    {"cancelled", cancelled_teams, cancelled},                       {"sizes", sizes, NULL},
};

int main(int argc, char **argv)
{
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    int kind = 0;
    while (kind < KINDS && (argc != 2 || strcmp(argv[1], kinds[kind].name) != 0))
        kind++;
    CHECK(kind < KINDS, "usage: nested_waits constructs|tasks|locks|mutex|flag|recursive|many|"
                        "unbalanced|cancelled|sizes");
    if (kinds[kind].in_teams)
        in_each_inner_team(kinds[kind].in_teams);
    if (kinds[kind].once)
        kinds[kind].once();
    return check_ok();
}
