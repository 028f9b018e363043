/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A team that shrinks and grows again parks its threads: none ends, and none is created anew.
 * @mends stock libgomp ends the threads of a shrinking team and creates them again
 */
#include "../check.h"
#include <dirent.h>

enum { LARGE = 8, SMALL = 2, ALTERNATIONS = 100, KNOWN_MAX = 4096 };

static int known[KNOWN_MAX], nknown;

/* Adds the process's threads to `known`; returns how many of the first `first` are alive. */
static int look(int first)
{
    int alive = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks, "no /proc");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        int id = atoi(entry->d_name), i = 0;
        if (id == 0)
            continue;
        while (i < nknown && known[i] != id)
            i++;
        if (i < first)
            alive++;
        if (i == nknown && nknown < KNOWN_MAX)
            known[nknown++] = id;
    }
    closedir(tasks);
    return alive;
}

static void region(int threads)
{
    int members = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp atomic
        members++;
#pragma omp barrier
    }
    CHECK(members == threads, "%d members in a team of %d", members, threads);
}

int main(void)
{
    for (int i = 0; i < 5; i++) {
        region(LARGE);
        region(SMALL);
    }
    look(0);
    int warm = nknown;
    for (int i = 0; i < ALTERNATIONS; i++) {
        region(LARGE);
        region(SMALL);
        int alive = look(warm);
        CHECK(alive == warm, "%d of %d threads have ended", warm - alive, warm);
    }
    /* Some room for threads that a runtime may start once, late, for reasons of its own. */
    CHECK(nknown <= warm + LARGE, "%d threads were created during %d alternations", nknown - warm,
          ALTERNATIONS);
    return check_ok();
}
