/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * check.h - what the OpenMP test programs share: a CHECK that names the broken promise and
 * ends the program, from any thread, without running exit handlers.
 *
 * A program prints OK and ends with status 0 when every promise held.  Comments in its first
 * lines tell test_programs.py how to run it: `@env NAME=VALUE`, and `@mends TEXT` when the
 * stock library breaks the promise, so that the program is not run with it.  `@changing`: also run
 * while cores come and go.  `@emulated`: only on emulated cores.  `@plugin NAME`: the argument is that
 * program, compiled as a shared object.
 */
#ifndef CHECK_H
#define CHECK_H

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static inline void check_failed(const char *file, int line,
                                                                      const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    fflush(stderr);
    _exit(1);
}

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, __VA_ARGS__);                                         \
    } while (0)

static inline int check_ok(void)
{
    printf("OK\n");
    return 0;
}

/* Kernel threads of this process. */
static inline int kernel_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks, "no /proc");
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static inline int kernel_thread(void)
{
    return (int)syscall(SYS_gettid);
}

#endif
