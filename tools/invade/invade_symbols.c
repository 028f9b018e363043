/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_symbols.c - function and source line of places of the program, by addr2line where it is installed
 * (binutils or elfutils), after the program has ended.  Places that addr2line does not know keep
 * what the process has recorded: the dynamic symbol, or nothing.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "invade_model.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One module's places in one call; a large debugging section takes some seconds to read. */
enum { BATCH = 64, PATIENCE_MS = 10000, OUTPUT_BYTES = 1 << 17, PLACES_MOST = 512 };

/* Is this a regular file?  Processes have named it, and opening another kind of file may block, or
 * have an effect. */
static bool is_file(const char *name)
{
    struct stat st;
    return name[0] == '/' && !stat(name, &st) && S_ISREG(st.st_mode);
}

/* addr2line is in invade's process group, so that the terminal's signals and a time limit end it.
 * It ignores signals that are meant for the command: MPICH's launcher sends SIGUSR1 to all when a
 * rank has gone. */
static void become_addr2line(int out, char **argv)
{
    static const char *const programs[] = {"addr2line", "eu-addr2line"};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    unsetenv("LD_PRELOAD"); /* what we have set for the command */
    unsetenv("INVASIVE_SOCKET");
    unsetenv("DEBUGINFOD_URLS"); /* asks the network */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
        _exit(1);
    for (int i = 0; i < 2; i++) {
        argv[0] = (char *)programs[i];
        execvp(argv[0], argv);
    }
    _exit(INVADE_NOT_FOUND);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* All output of addr2line, terminated, for the caller to free; NULL: it has not come in time. */
static char *read_all(int fd)
{
    char *text = malloc(OUTPUT_BYTES);
    size_t length = 0;
    int64_t limit = now_ms() + PATIENCE_MS;
    while (text && length < OUTPUT_BYTES - 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = limit - now_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = ready > 0 ? read(fd, text + length, OUTPUT_BYTES - 1 - length) : -1;
        if (n < 0) {
            free(text);
            return NULL;
        }
        if (n == 0)
            break;
        length += (size_t)n;
    }
    if (text)
        text[length] = '\0';
    return text;
}

static char *run_addr2line(char **argv)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC))
        return NULL;
    pid_t child = fork();
    if (child == 0)
        become_addr2line(pipe_fds[1], argv);
    close(pipe_fds[1]);
    char *text = child > 0 ? read_all(pipe_fds[0]) : NULL;
    close(pipe_fds[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return text;
}

static void copy_clean(char *to, size_t room, const char *from)
{
    size_t i = 0;
    for (; i + 1 < room && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

/* Two lines for each place: the function, and FILE:LINE; "??" for what is unknown. */
static void take_names(char *text, struct place **places, unsigned count)
{
    char *rest = text;
    for (unsigned i = 0; i < count; i++) {
        char *function = strsep(&rest, "\n"), *line = rest ? strsep(&rest, "\n") : NULL;
        if (!line)
            return;
        line[strcspn(line, " ")] = '\0'; /* "(discriminator 2)" */
        const char *number = strrchr(line, ':');
        if (function[0] && function[0] != '?')
            copy_clean(places[i]->symbol, sizeof places[i]->symbol, function);
        if (line[0] != '?' && number && number[1] >= '1' && number[1] <= '9')
            copy_clean(places[i]->line, sizeof places[i]->line, line);
    }
}

static void resolve_batch(struct place **places, unsigned count)
{
    char addresses[BATCH][24], file[INV_MODULE_BYTES];
    char *argv[BATCH + 6] = {(char *)"", (char *)"-f", (char *)"-C", (char *)"-e", file};
    strcpy(file, places[0]->file);
    for (unsigned i = 0; i < count; i++) {
        /* the call, not what follows it */
        unsigned long long at = places[i]->offset - !places[i]->entry;
        snprintf(addresses[i], sizeof addresses[i], "0x%llx", at);
        argv[5 + i] = addresses[i];
    }
    char *text = is_file(file) ? run_addr2line(argv) : NULL;
    if (text)
        take_names(text, places, count);
    free(text);
}

static struct place *place_at(void *all, size_t bytes, unsigned i)
{
    return (void *)((char *)all + i * bytes);
}

void places_resolve(void *all, size_t bytes, unsigned count)
{
    bool done[PLACES_MOST] = {false};
    unsigned n = count < PLACES_MOST ? count : PLACES_MOST;
    for (unsigned first = 0; first < n; first++) {
        const struct place *of = place_at(all, bytes, first);
        struct place *batch[BATCH];
        unsigned in = 0;
        for (unsigned i = first; i < n && in < BATCH; i++) {
            struct place *p = place_at(all, bytes, i);
            if (!done[i] && !p->other && !strcmp(p->file, of->file)) {
                done[i] = true;
                batch[in++] = p;
            }
        }
        if (in)
            resolve_batch(batch, in);
    }
}
