/* SPDX-License-Identifier: GPL-3.0-or-later */
/* procstat.c - "PID (NAME) STATE ...", processor times being the 14th and 15th word, the number of threads the
 * 20th, the start time the 22nd. */
#define _GNU_SOURCE
#include "rmd/host/procstat.h"
#include "libinvasive/base/now.h"
#include "rmd/host/sysfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_LOOKED_AT = 256 };

/* Reads the kernel's line about a process or a thread.  Returns the number of threads of the
 * process; 0: the process or thread has ended. */
static int read_stat(const char *path, struct rmd_procstat *stat)
{
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC), threads;
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    char *rest = strrchr(text, ')'); /* the name may have any other character, even that one */
    uint64_t user, system;
    bool whole = rest && sscanf(rest, ") %c %d %*s %*s %*s %*s %u %*s %*s %*s %*s %" SCNu64 " %" SCNu64
                                      " %*s %*s %*s %*s %d %*s %" SCNu64,
                                &stat->state, &stat->parent, &stat->flags, &user, &system, &threads,
                                &stat->start_ticks) == 7;
    stat->ran_ticks = whole ? user + system : 0;
    return !whole ? 0 : threads < 1 ? 1 : threads;
}

/* The state of a process whose first thread has ended while others go on. */
static char state_of_others(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    char state = 'Z';
    for (struct dirent *e; threads && state == 'Z' && (e = readdir(threads));) {
        struct rmd_procstat one;
        int tid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, tid);
        if (tid > 0 && tid != pid && read_stat(path, &one))
            state = one.state;
    }
    if (threads)
        closedir(threads);
    return state;
}

bool rmd_procstat(pid_t pid, struct rmd_procstat *stat)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int threads = read_stat(path, stat);
    if (threads > 1 && stat->state == 'Z')
        stat->state = state_of_others(pid);
    return threads > 0;
}

unsigned rmd_threads_running(pid_t pid)
{
    char path[64];
    unsigned running = 0, looked_at = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *e; threads && looked_at < THREADS_LOOKED_AT && (e = readdir(threads));) {
        struct rmd_procstat one;
        int tid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, tid);
        running += tid > 0 && read_stat(path, &one) && one.state == 'R';
        looked_at++;
    }
    if (threads)
        closedir(threads);
    return running;
}

void rmd_process_name(pid_t pid, char *name, size_t bytes)
{
    struct rmd_sysfile file = rmd_sysfile("", "/proc/%d/comm", (int)pid);
    rmd_sysfile_read_line(&file, name, bytes);
}

uint64_t rmd_machine_ran(const char *root)
{
    uint64_t user, nice, system, irq, softirq, sum = 0;
    struct rmd_sysfile file = rmd_sysfile(root, "/proc/stat");
    FILE *f = fopen(file.path, "re");
    if (f && fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*s %*s %" SCNu64 " %" SCNu64, &user, &nice,
                    &system, &irq, &softirq) == 5)
        sum = user + nice + system + irq + softirq;
    if (f)
        fclose(f);
    return sum * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int compare_pids(const void *pid, const void *element)
{
    pid_t a = *(const pid_t *)pid, b = *(const pid_t *)element;
    return (a > b) - (a < b);
}

void *rmd_find_pid(pid_t pid, const void *elements, size_t count, size_t size)
{
    return count ? bsearch(&pid, elements, count, size, compare_pids) : NULL;
}

void *rmd_grow(void *items, unsigned count, unsigned *capacity, size_t size)
{
    unsigned more = *capacity ? 2 * *capacity : 256;
    if (count < *capacity)
        return items;
    items = realloc(items, more * size);
    if (items)
        *capacity = more;
    return items;
}

bool rmd_owner(pid_t pid, uid_t *uid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &st))
        return false;
    *uid = st.st_uid;
    return true;
}

bool rmd_alive(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* --- threads: "RUNNING_NS WAITING_NS TIMES" of schedstat, "PID (NAME) STATE ..." of stat */

static int open_file(pid_t pid, pid_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rmd_thread_unfollow(struct rmd_followed *t)
{
    close_file(&t->time_fd);
    close_file(&t->state_fd);
    t->tid = 0;
    t->ran_ns = 0;
}

bool rmd_thread_follow(struct rmd_followed *t, pid_t pid, pid_t tid)
{
    rmd_thread_unfollow(t);
    t->time_fd = open_file(pid, tid, "schedstat");
    t->state_fd = open_file(pid, tid, "stat");
    if (t->time_fd < 0 || t->state_fd < 0) {
        rmd_thread_unfollow(t);
        return false;
    }
    t->tid = tid;
    rmd_thread_ran(t);
    return true;
}

uint64_t rmd_thread_ran(struct rmd_followed *t)
{
    char text[80];
    ssize_t n = pread(t->time_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    uint64_t before = t->ran_ns;
    t->ran_ns = strtoull(text, NULL, 10);
    return inv_ns_since(before, t->ran_ns);
}

bool rmd_thread_sleeps(struct rmd_followed *t)
{
    char text[160]; /* the name has 64 bytes at most */
    ssize_t n = pread(t->state_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && rest[1] == ' ' && strchr("SDIZX", rest[2]);
}

uint64_t rmd_process_ran(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
