/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * thread_limits.c - how many threads this process could start (thread_limits.h).
 *
 * Stock libgomp starts as many threads as there are processors; a managed team has more, which no
 * user has asked for.  So the default size must fit into limits that are wide enough for stock:
 * `ulimit -v -d -u` of batch systems, pids.max of containers, a large OMP_STACKSIZE.  It has to be
 * known before the program is told of it, so it is an estimate, made once, of some files of
 * /proc and /sys.
 */
#define _GNU_SOURCE
#include "process.h"
#include "thread_limits.h"
#include <libinvasive/base/environment.h>
#include <libinvasive/table/table.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* Bytes of address space that malloc reserves for a thread (glibc's HEAP_MAX_SIZE). */
    ARENA_BYTES = 64 << 20,
    /* Processes of a user are counted only where the limit is below this: it costs some 20 us for
     * each, and a wider limit is out of reach of one team. */
    COUNT_BELOW = 16384,
    LEAST_STACK = 16384, /* bytes; the C library refuses smaller ones */
};
#define NO_LIMIT ULONG_MAX

static unsigned long smaller_of (unsigned long a, unsigned long b)
{
    return a < b ? a : b;
}

static unsigned long what_is_left (unsigned long limit, unsigned long used)
{
    return limit > used ? limit - used : 0;
}

/* The beginning of a file as a string; false: there is none. */
static bool read_file (const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The number behind `name` in lines as those of /proc/self/status; 0 where there is none. */
static unsigned long field_value (const char *text, const char *name)
{
    const char *found = strstr(text, name);
    return found ? strtoul(found + strlen(name), NULL, 10) : 0;
}

/* Ranks of the job on this node, which share the user's limits; at least 1. */
static unsigned long local_ranks (void)
{
    int n = inv_local_size();
    return n > 0 ? (unsigned long)n : 1;
}

/* --- stacks */

/* Bytes that an OMP_STACKSIZE means; 0: it means nothing. */
static size_t stack_of_text (const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text)
        return 0;
    end += strspn(end, " \t\n");
    const char *units = "bBkKmMgG", *unit = *end ? strchr(units, *end) : units + 2;
    unsigned shift = unit ? 10 * (unsigned)((unit - units) / 2) : 0;
    if (!unit || n > SIZE_MAX >> 1 >> shift || n << shift < LEAST_STACK)
        return 0;
    return n << shift;
}

static size_t stack_bytes (void)
{
    static const char *const names[] = {"OMP_STACKSIZE", "OMP_STACKSIZE_ALL", "GOMP_STACKSIZE"};
    size_t bytes;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = inv_getenv(names[i]);
        if (text && (bytes = stack_of_text(text)) > 0)
            return bytes;
    }
    pthread_attr_t attr;
    bytes = 8 << 20;
    if (pthread_getattr_default_np(&attr) == 0) {
        pthread_attr_getstacksize(&attr, &bytes);
        pthread_attr_destroy(&attr);
    }
    return bytes;
}

/* --- limits of this process */

static unsigned long limit_of (int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return NO_LIMIT;
    return limit.rlim_cur;
}

static unsigned long left_of_memory (size_t stack)
{
    unsigned long space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA), used[6] = {0};
    char text[256];
    if ((space == NO_LIMIT && data == NO_LIMIT) ||
        !read_file("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%lu %lu %lu %lu %lu %lu", &used[0], &used[1], &used[2], &used[3], &used[4],
               &used[5]) != 6)
        return NO_LIMIT;
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE), left = NO_LIMIT;
    if (space != NO_LIMIT)
        left = what_is_left(space, used[0] * page) / (stack + page + ARENA_BYTES);
    if (data != NO_LIMIT)
        left = smaller_of(left, what_is_left(data, used[5] * page) / stack);
    return left;
}

/* --- limits that all processes of the user, the control group or the machine share */

/* For how many stacks the kernel would still promise memory, where it promises no more than it has
 * (vm.overcommit_memory = 2). */
static unsigned long left_of_commitment (size_t stack)
{
    char text[4096];
    if (!read_file("/proc/sys/vm/overcommit_memory", text, sizeof text) || text[0] != '2' ||
        !read_file("/proc/meminfo", text, sizeof text))
        return NO_LIMIT;
    unsigned long kib =
        what_is_left(field_value(text, "CommitLimit:"), field_value(text, "Committed_AS:"));
    return kib / (stack >> 10);
}

/* How many threads a process has that is this user's; else 0. */
static unsigned long threads_of (int proc, const char *pid)
{
    struct stat about;
    char path[64], text[2048];
    if (fstatat(proc, pid, &about, 0) != 0 || about.st_uid != geteuid())
        return 0;
    snprintf(path, sizeof path, "/proc/%.20s/status", pid);
    if (!read_file(path, text, sizeof text) || field_value(text, "\nUid:") != getuid())
        return 0;
    return field_value(text, "\nThreads:");
}

static unsigned long threads_of_user (void)
{
    unsigned long count = 0;
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while (proc && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            count += threads_of(dirfd(proc), entry->d_name);
    if (proc)
        closedir(proc);
    return count;
}

/* Root's processes are not counted, nor are those with CAP_SYS_ADMIN or CAP_SYS_RESOURCE. */
static bool exempt_from_counting (void)
{
    const unsigned long exempting = 1UL << 21 | 1UL << 24;
    char text[4096];
    if (getuid() == 0)
        return true;
    if (!read_file("/proc/self/status", text, sizeof text))
        return false;
    const char *found = strstr(text, "\nCapEff:");
    return found && (strtoul(found + 8, NULL, 16) & exempting);
}

static unsigned long left_of_processes (void)
{
    unsigned long limit = limit_of(RLIMIT_NPROC);
    if (limit >= COUNT_BELOW || exempt_from_counting())
        return NO_LIMIT;
    return what_is_left(limit, threads_of_user());
}

/* What pids.max leaves in a control group, `path` of them mounted at `base`, and in those above. */
static unsigned long left_in_group (const char *base, const char *path)
{
    unsigned long left = NO_LIMIT;
    char group[4096], file[4200], most[32], now[32];
    snprintf(group, sizeof group, "%s%s", base, path);
    for (char *end = group + strlen(group); strlen(group) >= strlen(base);) {
        snprintf(file, sizeof file, "%s/pids.max", group);
        bool limited = read_file(file, most, sizeof most) && strncmp(most, "max", 3) != 0;
        snprintf(file, sizeof file, "%s/pids.current", group);
        if (limited && read_file(file, now, sizeof now))
            left = smaller_of(left, what_is_left(strtoul(most, NULL, 10), strtoul(now, NULL, 10)));
        if (!(end = strrchr(group, '/')))
            break;
        *end = '\0';
    }
    return left;
}

/* The lines are ID:CONTROLLERS:PATH, the second version's with no controllers. */
static unsigned long left_of_groups (void)
{
    unsigned long left = NO_LIMIT;
    char text[8192], *rest = text, *line;
    if (!read_file("/proc/self/cgroup", text, sizeof text))
        return left;
    while ((line = strsep(&rest, "\n"))) {
        strsep(&line, ":");
        char *controllers = strsep(&line, ":");
        if (!line)
            continue;
        if (controllers[0] == '\0') {
            left = smaller_of(left, left_in_group("/sys/fs/cgroup", line));
            left = smaller_of(left, left_in_group("/sys/fs/cgroup/unified", line));
        } else if (strcmp(controllers, "pids") == 0)
            left = smaller_of(left, left_in_group("/sys/fs/cgroup/pids", line));
    }
    return left;
}

bool gomp_space_to_join (unsigned nthreads)
{
    enum { OTHERS = 3 /* the runtime's in no team: background, watchdog, free worker */ };
    unsigned long space = limit_of(RLIMIT_AS), pages;
    char text[256];
    if (space == NO_LIMIT || !read_file("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%lu", &pages) != 1)
        return true;
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    unsigned long left = what_is_left(space, pages * page);
    left = what_is_left(left, INV_TABLE_BYTES);
    return left / (stack_bytes() + page + ARENA_BYTES) >= (unsigned long)nthreads + OTHERS - 1;
}

/* This process's part of what all ranks share. */
static unsigned long part_of (unsigned long shared)
{
    return shared == NO_LIMIT ? NO_LIMIT : shared / local_ranks();
}

unsigned long gomp_threads_left (void)
{
    size_t stack = stack_bytes();
    unsigned long shared = smaller_of(left_of_processes(), left_of_groups());
    shared = smaller_of(shared, left_of_commitment(stack));
    return smaller_of(part_of(shared), left_of_memory(stack));
}

unsigned long gomp_threads_to_spare (void)
{
    /* Stock libgomp does without invade, rmd, rmd's second thread, and the watchdog.  The second
     * thread begins when the first process joins, so until then it takes one more. */
    enum { HELD_BACK = 4 };
    unsigned long left = part_of(smaller_of(left_of_processes(), left_of_groups()));
    return left == NO_LIMIT ? NO_LIMIT : what_is_left(left, HELD_BACK + !inv_managed());
}
