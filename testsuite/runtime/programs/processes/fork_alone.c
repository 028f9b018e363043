/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The child of a fork in the middle of a region may run regions of one thread, and the parent's
 * region goes on.  (Children with teams, which qemu-user does not run: fork_anywhere.c.)
 * @env OMP_NUM_THREADS=24
 */
#include "../check.h"
#include <omp.h>
#include <sys/wait.h>

enum { N = 24, ROUNDS = 3 };

static int one_thread(void)
{
    int sum = 0;
#pragma omp parallel num_threads(1) reduction(+ : sum)
    {
#pragma omp barrier
#pragma omp task shared(sum)
        sum++;
#pragma omp taskwait
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 10; i++)
            sum++;
    }
    return sum;
}

static void with_child(int me)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0, "fork failed in %d", me);
    if (child == 0) {
        alarm(30);
        _exit(one_thread() == 11 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid failed in %d", me);
    CHECK(status == 0, "child of %d: wait status %#x", me, (unsigned)status);
}

int main(void)
{
    int rounds = 0;
#pragma omp parallel num_threads(N) reduction(+ : rounds)
    for (int round = 0; round < ROUNDS; round++) {
        int me = omp_get_thread_num();
#pragma omp barrier
#pragma omp critical
        if (me % 5 == round)
            with_child(me);
        rounds++;
    }
    CHECK(rounds == N * ROUNDS, "%d rounds", rounds);
    return check_ok();
}
