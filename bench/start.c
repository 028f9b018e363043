/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * start.c - what a short process costs under `invade`, and `invade` itself.
 *
 *   start TURNS [COMMAND...]
 *
 * In each turn /bin/true is started without LD_PRELOAD, then COMMAND, or /bin/true with the
 * environment as it is: under `invade` that has the preloaded libraries.  Prints microseconds from
 * before the start until after the end, and of processor time, of both: medians of all turns.
 * Processor time is that of the process and of those that it has waited for.
 */
#define _GNU_SOURCE
#include "bench/two.h"

#include <spawn.h>
#include <sys/resource.h>

enum { MOST_TURNS = 100000 };

struct kind {
    const char *name;
    char **argv, **envp;
    double *wall_us, *cpu_us; /* of each turn */
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory)
        two_fail("calloc");
    return memory;
}

static double microseconds(struct timeval t) { return (double)t.tv_sec * 1e6 + (double)t.tv_usec; }

static void run_once(const struct kind *kind, long turn)
{
    struct rusage used;
    pid_t pid;
    int status;
    uint64_t from = two_now_ns();
    if (posix_spawn(&pid, kind->argv[0], NULL, NULL, kind->argv, kind->envp) ||
        wait4(pid, &status, 0, &used) != pid || status != 0)
        two_fail(kind->argv[0]);
    kind->wall_us[turn] = (double)(two_now_ns() - from) / 1e3;
    kind->cpu_us[turn] = microseconds(used.ru_utime) + microseconds(used.ru_stime);
}

static char **without_preload(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = allocate(count + 1, sizeof *copy), **to = copy;
    for (char **from = environ; *from; from++)
        if (strncmp(*from, "LD_PRELOAD=", strlen("LD_PRELOAD=")))
            *to++ = *from;
    return copy;
}

int main(int argc, char **argv)
{
    static char program[] = "/bin/true";
    char *plain[] = {program, NULL};
    long turns = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (turns < 1 || turns > MOST_TURNS) {
        fprintf(stderr, "usage: start TURNS [COMMAND...]\n");
        return 2;
    }
    struct kind kinds[] = {{.name = "bare", .argv = plain, .envp = without_preload()},
                           {.name = "ours", .argv = argc > 2 ? argv + 2 : plain, .envp = environ}};
    for (int k = 0; k < 2; k++) {
        kinds[k].wall_us = allocate((size_t)turns, sizeof(double));
        kinds[k].cpu_us = allocate((size_t)turns, sizeof(double));
    }
    for (long turn = 0; turn < turns; turn++)
        for (int k = 0; k < 2; k++)
            run_once(&kinds[k], turn);
    for (int k = 0; k < 2; k++)
        printf("%s_us %.1f\n%s_cpu_us %.1f\n",
               kinds[k].name, two_quantile(kinds[k].wall_us, (unsigned)turns, 0.5),
               kinds[k].name, two_quantile(kinds[k].cpu_us, (unsigned)turns, 0.5));
    return 0;
}
