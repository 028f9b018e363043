/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * complain.h - a line of ours on the stderr of a program, which may be a pipe without a reader
 * or a file as large as the program's limit: the program did not write, so it must not get
 * SIGPIPE or SIGXFSZ.  The program's handlers and dispositions stay as they are.
 */
#ifndef INV_COMPLAIN_H
#define INV_COMPLAIN_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Writes the text in one system call, so that lines of several processes do not mix.  Keeps errno;
 * thread safe, also in signal handlers.  What cannot be written is lost without a message. */
static inline void inv_write_stderr(const char *text, size_t bytes)
{
    const struct timespec no_time = {0, 0};
    sigset_t ours, before, pending;
    int error = errno;
    sigpending(&pending);
    sigemptyset(&ours);
    if (!sigismember(&pending, SIGPIPE))
        sigaddset(&ours, SIGPIPE);
    if (!sigismember(&pending, SIGXFSZ))
        sigaddset(&ours, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    /* Either signal goes to the thread that writes, before write returns. */
    if (write(STDERR_FILENO, text, bytes) < 0)
        while (sigtimedwait(&ours, NULL, &no_time) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
}

/* The same with a format, as printf has it.  A line of more than 511 bytes is cut. */
static inline void __attribute__((format(printf, 1, 2))) inv_say_on_stderr(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0)
        inv_write_stderr(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

#endif
