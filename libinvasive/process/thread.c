/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* thread.c - see thread.h. */
#define _GNU_SOURCE
#include "libinvasive/process/thread.h"
#include "libinvasive/base/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread int inv_hold __attribute__((tls_model("initial-exec"))) = INV_HOLD_NONE;
__thread bool inv_hold_is_lent __attribute__((tls_model("initial-exec")));
__thread int inv_tid __attribute__((tls_model("initial-exec")));

int inv_own_tid(void)
{
    if (inv_tid == 0)
        inv_tid = (int)syscall(SYS_gettid);
    inv_assert(inv_tid > 0);
    return inv_tid;
}

uint64_t inv_thread_cpu_ns(int tid)
{
    struct timespec ts;
    clockid_t clock = (clockid_t)((~(unsigned)tid << 3) | 4 | 2); /* as pthread_getcpuclockid */
    return clock_gettime(clock, &ts) == 0
               ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1
               : 0;
}

/* Read a file of a thread of this process.  Returns how long it is, at most size - 1, or -errno. */
static ssize_t read_of(int tid, const char *name, char *text, size_t size)
{
    INV_UNCANCELLED;
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? -error : n;
}

struct inv_thread_time inv_thread_time(int tid)
{
    char text[80]; /* "RAN_NS WAITED_NS TIMES" */
    unsigned long long ran, waited;
    ssize_t n = read_of(tid, "schedstat", text, sizeof text);
    if (n > 0 && sscanf(text, "%llu %llu", &ran, &waited) == 2 && ran > 0)
        return (struct inv_thread_time){ran, waited};
    return (struct inv_thread_time){inv_thread_cpu_ns(tid), 0};
}

bool inv_thread_sleeps(int tid)
{
    char text[256];
    ssize_t n = read_of(tid, "stat", text, sizeof text);
    if (n < 0)
        return n == -ENOENT || n == -ESRCH; /* gone before, or while its file was open */
    const char *name_end = strrchr(text, ')');
    return !name_end || strncmp(name_end, ") R", 3) != 0;
}
