/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * occupant.c - holds a core of the domain, lends it for a while, and takes it back.
 *
 * Run under `invade`.  Starts PROGRAM, which becomes a second process of the domain, and
 * computes on the core that it owns.  From when the program says that it has begun:
 * after LEND milliseconds it lends the core, after BACK milliseconds it takes it back, and then
 * computes until the program has ended.  Prints when that really was: the core is the
 * program's from "lend_s" to "back_s".
 *
 * occupant LEND_MS BACK_MS PROGRAM ARGUMENT...   (and --start-fd=FD is appended)
 *
 * It is a part of the measurement and uses libinvasive's internal interface.
 */
#define _GNU_SOURCE
#include "libinvasive/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 32 };

static void fail(const char *what)
{
    fprintf(stderr, "occupant: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void compute_us(uint64_t us)
{
    uint64_t end = inv_now_ns() + us * 1000;
    while (inv_now_ns() < end)
        inv_bell_read();
}

/* A moment of computing, as a thread that keeps the rules: a core that its owner asks
 * for is given up. */
static void compute_a_moment(void)
{
    compute_us(20);
    enum inv_verdict verdict = inv_hold_poll();
    if (verdict == INV_GIVE || verdict == INV_LOST) {
        inv_wait_begin();
        inv_wait_end();
    }
}

/* The program, once `go` can be read. */
static pid_t start_program(char **words, int count, int go, int started)
{
    char fd_option[32], *arguments[MAX_ARGUMENTS + 2], byte;
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (int i = 0; i < count; i++)
        arguments[i] = words[i];
    snprintf(fd_option, sizeof fd_option, "--start-fd=%d", started);
    arguments[count] = fd_option;
    arguments[count + 1] = NULL;
    if (read(go, &byte, 1) == 1)
        execv(arguments[0], arguments);
    fail(arguments[0]);
    return -1;
}

static void compute_until(uint64_t end_ns)
{
    while (inv_now_ns() < end_ns)
        compute_a_moment();
}

static void await_byte(int fd)
{
    char byte;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (;;) {
        ssize_t got = read(fd, &byte, 1);
        if (got == 1)
            return;
        if (got == 0)
            fail("the program ended before it began");
        compute_a_moment();
    }
}

static void sleep_until(uint64_t end_ns)
{
    uint64_t now;
    while ((now = inv_now_ns()) < end_ns)
        inv_wait_sleep(inv_bell_read(), (int64_t)(end_ns - now));
}

static int await_end(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        compute_a_moment();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > MAX_ARGUMENTS) {
        fprintf(stderr, "occupant LEND_MS BACK_MS PROGRAM ARGUMENT...\n");
        return 2;
    }
    uint64_t lend_ns = (uint64_t)(1e6 * atof(argv[1])), back_ns = (uint64_t)(1e6 * atof(argv[2]));
    int go[2], started[2];
    if (pipe(go) != 0 || pipe(started) != 0)
        fail("pipe");
    /* Before we join: the program must not inherit that we are pinned. */
    pid_t pid = start_program(argv + 3, argc - 3, go[0], started[1]);
    if (pid < 0)
        fail("fork");
    close(started[1]);
    if (!inv_join(-1, -1, -1)) {
        fprintf(stderr, "occupant: run me under invade\n");
        return 1;
    }
    if (write(go[1], "g", 1) != 1)
        fail("write");
    await_byte(started[0]);
    uint64_t start = inv_now_ns();
    compute_until(start + lend_ns);
    uint64_t lent = inv_now_ns();
    inv_wait_begin();
    sleep_until(start + back_ns);
    inv_wait_end();
    uint64_t back = inv_now_ns();
    int status = await_end(pid);
    printf("lend_s %.6f\nback_s %.6f\n", 1e-9 * (double)(lent - start),
           1e-9 * (double)(back - start));
    return status;
}
