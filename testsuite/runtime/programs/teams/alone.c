/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Without a resource manager a team larger than the processors needs no kernel thread for each of its
 * threads.  The process counts as unmanaged for the public interface, none of its threads is bound, and
 * the child of a fork can begin such teams, whatever they are made of.
 * @mends stock libgomp makes a kernel thread for each, and hangs in the child
 */
#define _GNU_SOURCE
#include "../check.h"
#include "../../../../include/invasive.h"
#include <dlfcn.h>
#include <omp.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>

enum { N = 100, ROUNDS = 30 };

static int processors(void)
{
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "no affinity");
    return CPU_COUNT(&set);
}

/* All threads meet several times; returns the fewest processors that one of them may use. */
static int meet(void)
{
    int sum = 0, least = processors();
#pragma omp parallel num_threads(N) reduction(+ : sum) reduction(min : least)
    for (int round = 0; round < ROUNDS; round++) {
        sum += omp_get_thread_num();
#pragma omp barrier
        if (processors() < least)
            least = processors();
    }
    CHECK(sum == ROUNDS * N * (N - 1) / 2, "sum %d", sum);
    return least;
}

/* The functions are where our libraries are. */
static void count_as_unmanaged(void)
{
    struct inv_claim (*claim_now)(void), claim;
    int (*invade)(const struct inv_constraint *, enum inv_blocking, struct inv_claim *);
    void *now = dlsym(RTLD_DEFAULT, "inv_claim_now"), *ask = dlsym(RTLD_DEFAULT, "inv_invade");
    if (!now || !ask)
        return;
    memcpy(&claim_now, &now, sizeof now);
    memcpy(&invade, &ask, sizeof ask);
    CHECK(!claim_now().managed, "managed");
    CHECK(invade(NULL, INV_BLOCKING, &claim) == 0 && !claim.managed, "managed when asked");
    CHECK(claim.owned_cores == (unsigned)omp_get_num_procs(), "%u cores", claim.owned_cores);
}

int main(void)
{
    int before = processors();
    bool managed = getenv("INVASIVE_SOCKET") != NULL;
    bool ours = managed || getenv("LD_LIBRARY_PATH") != NULL;
#pragma omp parallel num_threads(2)
    CHECK(omp_get_num_threads() == 2, "team of %d", omp_get_num_threads());
    int least = meet();
    if (ours)
        CHECK(before >= N / 4 || kernel_threads() < N / 2, "%d kernel threads", kernel_threads());
    if (!managed) {
        CHECK(least == before, "bound to %d of %d processors", least, before);
        count_as_unmanaged();
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        meet();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: wait status %#x",
          (unsigned)status);
    meet();
    return check_ok();
}
