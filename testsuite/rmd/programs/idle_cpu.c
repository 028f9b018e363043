/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * idle_cpu.c - the watch for an idle CPU (rmd/host/idle_cpu.h).
 *
 *   idle_cpu finds   a thread computes on the CPU, and then does not
 *   idle_cpu one     a thread computes on one of all CPUs
 *   idle_cpu pauses  a watch that has been paused tells nothing
 *   idle_cpu ends    watches that cannot run are closed, and leave no descriptor and no thread
 *
 * The CPU is the last one that the program may run on; it needs another one.  Prints "good".
 */
#define _GNU_SOURCE
#include "libinvasive/base/test_check.h"
#include "rmd/host/idle_cpu.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PATIENCE_MS = 60000, BUSY_MS = 300, WATCHES = 20 };

static struct inv_cpus cpu;
static atomic_bool begun, ended;

static void *spin(void *unused)
{
    inv_cpus_set(0, &cpu);
    atomic_store(&begun, true);
    while (!atomic_load(&ended))
        ;
    return unused;
}

static bool told(int fd, int patience_ms)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    return poll(&asked, 1, patience_ms) == 1;
}

static int entries(const char *path)
{
    DIR *all = opendir(path);
    int n = 0;
    while (all && readdir(all))
        n++;
    closedir(all);
    return n;
}

static bool comes_to(const char *path, int count)
{
    for (int ms = 0; ms < PATIENCE_MS && entries(path) != count; ms += 10)
        poll(NULL, 0, 10);
    return entries(path) == count;
}

static void find(int fd, struct rmd_idle_cpu *watch, pthread_t spinner)
{
    rmd_idle_cpu_watch(watch, true);
    atomic_store(&ended, true);
    pthread_join(spinner, NULL);
    CHECK(told(fd, PATIENCE_MS));
    rmd_idle_cpu_close(watch);
    close(fd);
}

static void find_one(int fd, struct rmd_idle_cpu *watch, pthread_t spinner)
{
    rmd_idle_cpu_watch(watch, true);
    CHECK(told(fd, PATIENCE_MS));
    rmd_idle_cpu_close(watch);
    close(fd);
    atomic_store(&ended, true);
    pthread_join(spinner, NULL);
}

static void pause_watch(int fd, struct rmd_idle_cpu *watch, pthread_t spinner)
{
    rmd_idle_cpu_watch(watch, true);
    rmd_idle_cpu_pause(watch);
    atomic_store(&ended, true);
    pthread_join(spinner, NULL);
    CHECK(!told(fd, BUSY_MS));
    rmd_idle_cpu_watch(watch, false);
    CHECK(told(fd, PATIENCE_MS));
    rmd_idle_cpu_close(watch);
    close(fd);
}

static void end_watches(pthread_t spinner)
{
    int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    for (int i = 0; i < WATCHES; i++) {
        int fd;
        struct rmd_idle_cpu *watch = rmd_idle_cpu_open(&cpu, &fd);
        CHECK(watch && fd >= 0);
        rmd_idle_cpu_watch(watch, false);
        rmd_idle_cpu_close(watch);
        close(fd);
    }
    rmd_idle_cpu_close(NULL);
    atomic_store(&ended, true);
    pthread_join(spinner, NULL);
    CHECK(comes_to("/proc/self/fd", fds) && comes_to("/proc/self/task", threads - 1));
}

int main(int argc, char **argv)
{
    struct inv_cpus all;
    pthread_t spinner;
    int fd;
    const char *what = argc == 2 ? argv[1] : "";
    if (inv_cpus_get(0, &all) || inv_cpus_last(&all) < 0)
        return 2;
    inv_cpus_add(&cpu, (size_t)inv_cpus_last(&all));
    if (pthread_create(&spinner, NULL, spin, NULL))
        return 2;
    while (!atomic_load(&begun))
        poll(NULL, 0, 1);
    if (!strcmp(what, "ends")) {
        end_watches(spinner);
        return failures || printf("good\n") < 0;
    }
    bool one = !strcmp(what, "one");
    struct rmd_idle_cpu *watch = rmd_idle_cpu_open(one ? &all : &cpu, &fd);
    if (!watch)
        return 2;
    (one ? find_one : !strcmp(what, "finds") ? find : pause_watch)(fd, watch, spinner);
    return failures || printf("good\n") < 0;
}
