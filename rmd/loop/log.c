/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * log.c - a line for each event.  A line may contain foreign text (a program's name, a line of a
 * file).  Characters that are not printable are replaced, so that one event cannot look like two.
 *
 * The reader of stderr may have stopped: a pipe is full, or a terminal got ^S.  rmd does not wait
 * for it while it serves: it drops the line, and counts it.  O_NONBLOCK belongs to the open file,
 * which other processes share, so rmd opens a pipe or a terminal once more.  If it may not, since
 * the file is another user's, poll tells whether there is space.  That suffices for a line in a
 * pipe that no other process fills at the same moment, and in a terminal that is not nearly full.
 */
#define _GNU_SOURCE
#include "rmd/loop/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 64 };

const char *const rmd_level_names[RMD_LOG_LEVELS] = {"error", "warning", "notice", "info",
                                                      "debug"};

/* Which lines are written, and how.  The main thread writes this before there are other threads,
 * and `level` when the settings are read again; any thread writes `lost` and `torn`. */
static struct {
    enum rmd_level level;
    enum { NAME, DATE, PRIORITY } head; /* what a line begins with */
    enum { WAITS, ASKS, SOCKET } how;   /* how to write to stderr, if `own` is -1 */
    int own;               /* stderr's file, where writing does not block; -1: there is none */
    _Atomic unsigned lost; /* number of lines since the last one that could be written */
    _Atomic bool torn;     /* the last write ended in the middle of a line */
} output = {.level = RMD_WARNING, .own = -1};

/* A descriptor for the same file, not for the same open file. */
static int open_again(void)
{
    return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* JOURNAL_STREAM=DEVICE:INODE is what stderr was when we were started; it may have been
 * redirected since. */
void rmd_log_open(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    if (text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && !fstat(STDERR_FILENO, &st) &&
        st.st_dev == device && st.st_ino == inode)
        output.head = PRIORITY;
}

void rmd_log_set_level(enum rmd_level level) { output.level = level; }

void rmd_log_dated(void)
{
    if (output.head == NAME)
        output.head = DATE;
}

void rmd_log_no_wait(void)
{
    struct stat st = {0};
    fstat(STDERR_FILENO, &st);
    output.how = S_ISSOCK(st.st_mode) ? SOCKET : ASKS;
    if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO))
        output.own = open_again();
}

/* Returns the number of bytes that were written; 0 or -1: there is no room. */
static ssize_t try_write(const char *text, size_t bytes)
{
    struct pollfd writable = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (output.own >= 0)
        return write(output.own, text, bytes);
    if (output.how == SOCKET)
        return send(STDERR_FILENO, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool writes = output.how == WAITS || poll(&writable, 1, 0) == 1;
    return writes ? write(STDERR_FILENO, text, bytes) : -1;
}

static bool write_line(const char *text, size_t bytes)
{
    if (atomic_load(&output.torn) && try_write("\n", 1) != 1)
        return false;
    ssize_t n = try_write(text, bytes);
    atomic_store(&output.torn, n > 0 && (size_t)n < bytes);
    return n == (ssize_t)bytes;
}

/* The beginning of a line, and how long it is. */
static size_t begin_line(char *text, size_t size, enum rmd_level level)
{
    static const char syslog_priority[RMD_LOG_LEVELS] = {'3', '4', '5', '6', '7'};
    struct timespec now;
    struct tm day;
    if (output.head == PRIORITY)
        return (size_t)snprintf(text, size, "<%c>", syslog_priority[level]);
    if (output.head == NAME || clock_gettime(CLOCK_REALTIME, &now) || !gmtime_r(&now.tv_sec, &day))
        return (size_t)snprintf(text, size, "rmd: ");
    size_t n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &day);
    return n + (size_t)snprintf(text + n, size - n, ".%03ldZ rmd: %s: ", now.tv_nsec / 1000000,
                                rmd_level_names[level]);
}

/* Before the first line for which there is room again. */
static bool write_lost_count(void)
{
    char text[HEAD_BYTES + 80];
    unsigned n = atomic_exchange(&output.lost, 0);
    if (!n)
        return true;
    size_t bytes = begin_line(text, HEAD_BYTES, RMD_WARNING);
    bytes += (size_t)snprintf(text + bytes, sizeof text - bytes,
                              "lines lost before this one, which could not be written: %u\n", n);
    if (write_line(text, bytes))
        return true;
    atomic_fetch_add(&output.lost, n);
    return false;
}

void rmd_log(enum rmd_level level, const char *format, ...)
{
    char line[1024];
    if (level > output.level)
        return;
    size_t begun = begin_line(line, HEAD_BYTES, level);
    va_list args;
    va_start(args, format);
    vsnprintf(line + begun, sizeof line - begun - 1, format, args);
    va_end(args);
    size_t length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    if (!write_lost_count() || !write_line(line, length))
        atomic_fetch_add(&output.lost, 1);
}
