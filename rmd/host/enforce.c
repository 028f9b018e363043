/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * enforce.c - a thread inherits the affinity of the thread that creates it.  So all threads are
 * confined when a pass over them finds none to change.  A process may widen its affinity again; the
 * next check finds that.  No process can leave a cpuset (cgroup.c).
 */
#define _GNU_SOURCE
#include "rmd/host/enforce.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/slice.h"
#include "rmd/host/procstat.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Passes over the threads of a process, and the time after which no further pass begins: other
 * events wait meanwhile.  The next check finds the threads that are left. */
enum { PASSES = 8, LONG_NS = 2000000 };

/* Returns 0: nothing to do, 1: changed, 2: changed, and the thread could run outside `allowed`. */
static int confine_thread(pid_t tid, const struct inv_cpus *allowed, const struct inv_cpus *before)
{
    struct inv_cpus now, inside;
    if (inv_cpus_get(tid, &now))
        return 0;
    inv_cpus_and(&inside, &now, allowed);
    bool outside = !inv_cpus_equal(&inside, &now);
    bool follows = before && inv_cpus_equal(&now, before) && !inv_cpus_equal(&now, allowed);
    if (!outside && !follows)
        return 0;
    if (follows || inv_cpus_count(&inside) == 0)
        inside = *allowed;
    return inv_cpus_set(tid, &inside) ? 0 : outside ? 2 : 1;
}

unsigned rmd_affinity_confine(pid_t pid, int pidfd, const struct inv_cpus *allowed,
                              const struct inv_cpus *before)
{
    char path[40];
    unsigned outside = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks || inv_cpus_count(allowed) == 0) {
        if (tasks)
            closedir(tasks);
        return 0;
    }
    bool changed = true;
    uint64_t begun = inv_now_ns();
    for (int pass = 0; changed && pass < PASSES; pass++) {
        if (pass && inv_now_ns() - begun > LONG_NS)
            break;
        changed = false;
        rewinddir(tasks);
        for (struct dirent *e; (e = readdir(tasks)) != NULL && rmd_alive(pidfd);) {
            int tid = atoi(e->d_name);
            int moved = tid > 0 ? confine_thread(tid, allowed, before) : 0;
            changed |= moved > 0;
            outside += moved == 2;
        }
    }
    closedir(tasks);
    return outside;
}

void rmd_affinity_release(pid_t pid, int pidfd, const struct inv_cpus *all,
                          const struct inv_cpus *given, const struct inv_cpus *cpuset)
{
    struct inv_cpus inside;
    inv_cpus_and(&inside, given, cpuset);
    rmd_affinity_confine(pid, pidfd, all, given);
    rmd_affinity_confine(pid, pidfd, all, &inside); /* as the kernel shows it */
}

static bool is_thread_of(pid_t pid, int pidfd, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)tid);
    return tid > 0 && !access(path, F_OK) && rmd_alive(pidfd);
}

void rmd_move_thread(pid_t pid, int pidfd, pid_t tid, const struct inv_cpus *cpus)
{
    if (is_thread_of(pid, pidfd, tid))
        inv_cpus_set(tid, cpus);
}

uint64_t rmd_set_slice(pid_t pid, int pidfd, pid_t tid, uint64_t slice_ns)
{
    return is_thread_of(pid, pidfd, tid) ? inv_slice_set(tid, slice_ns) : 0;
}

void rmd_pin_thread(pid_t pid, int pidfd, pid_t tid, int cpu)
{
    if (cpu >= 0 && cpu < INV_MAX_CPUS && is_thread_of(pid, pidfd, tid))
        inv_cpus_set_one(tid, (size_t)cpu);
}

struct request {
    pid_t pid;
    int pidfd, signal;
    const struct inv_cpus *cpus;
};

/* How many of the process's threads `act` says it has acted on. */
static unsigned each_thread(const struct request *r, bool (*act)(const struct request *, pid_t tid))
{
    char path[40];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)r->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *e; tasks && (e = readdir(tasks)) != NULL && rmd_alive(r->pidfd);) {
        int tid = atoi(e->d_name);
        count += tid > 0 && act(r, tid);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

static bool signal_if_running(const struct request *r, pid_t tid)
{
    struct rmd_followed thread = RMD_FOLLOWED_NONE;
    if (!rmd_thread_follow(&thread, r->pid, tid))
        return false;
    bool runs = !rmd_thread_sleeps(&thread);
    rmd_thread_unfollow(&thread);
    if (runs && r->signal)
        syscall(SYS_tgkill, r->pid, tid, r->signal);
    return runs;
}

unsigned rmd_signal_running(pid_t pid, int pidfd, int signal)
{
    return each_thread(&(struct request){.pid = pid, .pidfd = pidfd, .signal = signal},
                       signal_if_running);
}

static bool rebind(const struct request *r, pid_t tid)
{
    struct inv_cpus now, inside;
    if (inv_cpus_get(tid, &now) || inv_cpus_count(&now) != 1)
        return false;
    inv_cpus_and(&inside, &now, r->cpus);
    return inv_cpus_count(&inside) == 0 && !inv_cpus_set(tid, r->cpus);
}

void rmd_affinity_rebind(pid_t pid, int pidfd, const struct inv_cpus *cpus)
{
    each_thread(&(struct request){.pid = pid, .pidfd = pidfd, .cpus = cpus}, rebind);
}
