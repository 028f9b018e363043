/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * log.c - a line for each event.  Text of others (a program's name, a line of a file) may be in
 * it: what is not printable is replaced, so that no event can pretend to be two.
 */
#define _GNU_SOURCE
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum rmd_level rmd_log_level = RMD_WARNING;
const char *const rmd_level_names[RMD_LOG_LEVELS] = {"error", "warning", "notice", "info",
                                                      "debug"};

static bool journal;

/* JOURNAL_STREAM=DEVICE:INODE is what stderr was when we were started; it may have been
 * redirected since. */
void rmd_log_open(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    journal = text && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
              !fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
}

void rmd_log(enum rmd_level level, const char *format, ...)
{
    static const char syslog_priority[RMD_LOG_LEVELS] = {'3', '4', '5', '6', '7'};
    char line[1024];
    if (level > rmd_log_level)
        return;
    int head = journal ? snprintf(line, 8, "<%c>", syslog_priority[level])
                       : snprintf(line, 8, "rmd: ");
    va_list args;
    va_start(args, format);
    vsnprintf(line + head, sizeof line - (size_t)head - 1, format, args);
    va_end(args);
    size_t length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}
