/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace_tool - a tool that writes a line for each event: seconds since the start, thread, event.
 *
 *   gcc -O2 -fPIC -shared trace_tool.c -o trace_tool.so
 *   INVASIVE_TOOL=$PWD/trace_tool.so TRACE=trace.txt invade -- ./program
 *
 * The file is TRACE with the process's number behind it.  Every line is one write, so that lines of
 * several threads do not mix; a tool for measurements would keep them in memory for each thread.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <invasive-tool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int file = -1;
static struct timespec start;

__attribute__((format(printf, 1, 2))) static void event(const char *format, ...)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9;
    char line[200];
    int length = snprintf(line, 40, "%.9f %ld ", seconds, syscall(SYS_gettid));
    va_list list;
    va_start(list, format);
    length += vsnprintf(line + length, sizeof line - 41, format, list);
    va_end(list);
    line[length++] = '\n';
    if (write(file, line, (size_t)length) != length)
        inv_tool_unregister(); /* a full disk: the trace ends here */
}

static void region_begin(const void *region, void (*function)(void *), unsigned threads,
                         unsigned level)
{
    event("region %p begins: function %p, %u implicit tasks, level %u", region, (void *)function,
          threads, level);
}

static void region_end(const void *region)
{
    event("region %p ends", region);
}

static void task_begin(const void *region, unsigned number)
{
    event("task %u of %p begins", number, region);
}

static void task_end(const void *region, unsigned number)
{
    event("task %u of %p ends", number, region);
}

static void idle_begin(void)
{
    event("idle");
}

static void idle_end(void)
{
    event("not idle");
}

static void core_arrived(int core, enum inv_tool_arrival how)
{
    event("core %d arrives: %s", core, how == INV_TOOL_OWN ? "own" : "borrowed");
}

static void core_left(int core, enum inv_tool_departure how)
{
    static const char *const words[] = {"lent", "returned", "reclaimed", "evicted"};
    event("core %d leaves: %s", core, words[how]);
}

int inv_tool_start(void)
{
    static const struct inv_tool tool = {.region_begin = region_begin,
                                         .region_end = region_end,
                                         .task_begin = task_begin,
                                         .task_end = task_end,
                                         .idle_begin = idle_begin,
                                         .idle_end = idle_end,
                                         .core_arrived = core_arrived,
                                         .core_left = core_left};
    const char *name = getenv("TRACE");
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name ? name : "trace", (int)getpid());
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    clock_gettime(CLOCK_MONOTONIC, &start);
    return file < 0 ? -1 : inv_tool_register(&tool, INV_TOOL_VERSION);
}
