/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_evicted.c - what an eviction does to the affinity of the thread that loses its core.
 *
 * A thread of a process that pins its threads may run on the other cores only.  A thread of a
 * process that has had no region of our OpenMP runtime keeps its affinity: another runtime in that
 * process asks the kernel for it.  Runs under `invade` with two cores; the argument is "pinned" or
 * "free".  The program starts itself once more as the process that evicts.
 */
#define _GNU_SOURCE
#include "libinvasive/base/test_check.h"
#include "libinvasive/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct inv_cpus kernel_cpus(void)
{
    struct inv_cpus cpus = {0};
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof cpus, &cpus) > 0); /* not what ours shows */
    return cpus;
}

/* The other process: evicts the thread that computes on the core. */
static int evict(char **words)
{
    int core = atoi(words[0]), slot = atoi(words[1]);
    CHECK(inv_join(-1, -1, -1));
    if (failures == 0)
        inv_repin_evicted(core, (unsigned)slot);
    return failures != 0;
}

static bool evicted_by(char *self, int core)
{
    char core_text[16], slot_text[16];
    snprintf(core_text, sizeof core_text, "%d", core);
    snprintf(slot_text, sizeof slot_text, "%u", inv_process.slot);
    pid_t pid = fork();
    if (pid == 0) {
        execl(self, self, "evict", core_text, slot_text, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return evict(argv + 2);
    bool pinned = argc == 2 && strcmp(argv[1], "pinned") == 0;
    struct inv_cpus before = kernel_cpus();
    CHECK(inv_cpus_count(&before) >= 2);
    CHECK(inv_join(-1, -1, -1) && inv_hold >= 0);
    if (failures)
        return 1;
    size_t cpu = (size_t)inv_core_at(inv_process.table, (unsigned)inv_hold)->os_cpu;
    if (pinned) {
        inv_pin_threads();
        struct inv_cpus now = kernel_cpus();
        CHECK(inv_cpus_count(&now) == 1 && inv_cpus_has(&now, cpu));
    }
    CHECK(evicted_by(argv[0], inv_hold));
    struct inv_cpus after = kernel_cpus();
    if (pinned)
        CHECK(inv_cpus_count(&after) >= 1 && !inv_cpus_has(&after, cpu));
    else
        CHECK(inv_cpus_equal(&after, &before));
    if (failures == 0)
        puts("evicted: as documented");
    return failures != 0;
}
