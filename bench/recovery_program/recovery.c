/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * recovery.c - how long the cores of a killed process stay away from the others.
 *
 * Run under `invade`.  A survivor computes in parallel regions that could use every core.
 * Again and again it starts a victim, which becomes a second process of the domain and
 *   holds    its own core, computing;
 *   lends    it, asleep;
 *   borrows  the survivor's, which is asleep;
 *   waits    asleep, with its core asked back from the survivor;
 *   blocks   in the kernel, for some milliseconds after each region, so that rmd lends its core;
 * kills it (SIGKILL) at some moment and takes the time until every core of the domain is
 * the survivor's.  Prints the median, the longest, and how many took longer than 10 ms.
 *
 * It looks at the core table (libinvasive), which a normal program never does.
 */
#define _GNU_SOURCE
#include "libinvasive/process.h"
#include "bench/two.h"

#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEATHS = 100, TASK_US = 50, BLOCK_US = 4000, LIMIT_MS = 10, TIMEOUT_MS = 2000 };
static const char *const modes[] = {"holds", "lends", "borrows", "waits", "blocks"};
enum { HOLDS, LENDS, BORROWS, WAITS, BLOCKS, MODES };

static void busy_us(uint64_t us)
{
    uint64_t end = inv_now_ns() + us * 1000;
    while (inv_now_ns() < end)
        inv_bell_read();
}

/* One region whose implicit tasks last TASK_US each. */
static void region(void)
{
#pragma omp parallel
    busy_us(TASK_US);
}

static unsigned count_cores(bool held)
{
    unsigned count = 0;
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = atomic_load(&inv_core_at(inv_process.table, core)->word);
        count += (held ? inv_word_holder(w) : inv_word_owner(w)) == inv_own_name();
    }
    return count;
}

static int victim(int mode)
{
    region(); /* joins */
    if (!inv_managed() || write(STDOUT_FILENO, "r", 1) != 1)
        return 1;
    for (;;) {
        if (mode == HOLDS || mode == BORROWS || mode == BLOCKS) {
            region();
            if (mode == BLOCKS)
                usleep(BLOCK_US);
            continue;
        }
        inv_wait_begin();
        inv_wait_sleep(inv_bell_read(), mode == WAITS ? 200000 : 100000000);
        inv_wait_end();
    }
}

static pid_t start_victim(int mode, int *ready)
{
    int ends[2];
    char number[8];
    if (pipe(ends) != 0)
        return -1;
    snprintf(number, sizeof number, "%d", mode);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "recovery", number, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *ready = ends[0];
    return pid;
}

/* Let the victim be in the middle of what it does. */
static void live_beside(int mode, uint64_t us)
{
    if (mode == BORROWS) {
        inv_wait_begin();
        inv_wait_sleep(inv_bell_read(), (int64_t)us * 1000);
        inv_wait_end();
        return;
    }
    uint64_t end = inv_now_ns() + us * 1000;
    while (inv_now_ns() < end)
        region();
}

/* From the kill until all cores are ours and computed on; -1: not within the timeout. */
static double time_to_recover(pid_t pid)
{
    uint64_t start = inv_now_ns(), took = 0;
    kill(pid, SIGKILL);
    while (count_cores(true) < inv_process.ncores && took < TIMEOUT_MS * UINT64_C(1000000)) {
        region();
        took = inv_now_ns() - start;
    }
    return count_cores(true) == inv_process.ncores ? (double)(inv_now_ns() - start) * 1e-6 : -1;
}

static double one_death(int mode, unsigned number)
{
    int ready;
    char byte;
    pid_t pid = start_victim(mode, &ready);
    if (pid < 0 || read(ready, &byte, 1) != 1)
        two_fail("recovery: the victim did not start");
    live_beside(mode, 2000 + number * 37 % 3000);
    double ms = time_to_recover(pid);
    close(ready);
    waitpid(pid, NULL, 0);
    return ms;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return victim(atoi(argv[1]));
    region();
    if (!inv_managed()) {
        fprintf(stderr, "recovery: run me under invade\n");
        return 1;
    }
    static double ms[DEATHS];
    unsigned late = 0;
    for (unsigned i = 0; i < DEATHS; i++) {
        ms[i] = one_death((int)(i % MODES), i);
        if (ms[i] < 0 || ms[i] > LIMIT_MS) {
            fprintf(stderr, "recovery: death %u (%s) took %.1f ms\n", i, modes[i % MODES], ms[i]);
            late++;
        }
    }
    printf("deaths %d\nmedian_ms %.3f\nlongest_ms %.3f\nlate %u\n", DEATHS,
           two_quantile(ms, DEATHS, 0.5), two_quantile(ms, DEATHS, 1), late);
    return 0;
}
