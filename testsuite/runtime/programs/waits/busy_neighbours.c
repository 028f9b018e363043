/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program with many barriers gets through although 16 busy loops of others want the same cores.
 */
#include "../check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NEIGHBOURS = 16, BARRIERS = 60 };

static pid_t neighbours[NEIGHBOURS];

static void start_neighbours(void)
{
    for (int i = 0; i < NEIGHBOURS; i++) {
        neighbours[i] = fork();
        CHECK(neighbours[i] >= 0, "fork");
        if (neighbours[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile unsigned long n = 0; getppid() != 1;)
                n = n + 1;
            _exit(0);
        }
    }
}

static void end_neighbours(void)
{
    for (int i = 0; i < NEIGHBOURS; i++)
        kill(neighbours[i], SIGKILL);
    for (int i = 0; i < NEIGHBOURS; i++)
        waitpid(neighbours[i], NULL, 0);
}

int main(void)
{
    int passed = 0;
    start_neighbours();
#pragma omp parallel num_threads(4)
    for (int i = 0; i < BARRIERS; i++) {
#pragma omp barrier
#pragma omp master
        passed++;
    }
    for (int i = 0; i < BARRIERS; i++) {
#pragma omp parallel num_threads(4)
        {
#pragma omp atomic
            passed++;
        }
    }
    end_neighbours();
    CHECK(passed == BARRIERS + 4 * BARRIERS, "%d", passed);
    return check_ok();
}
