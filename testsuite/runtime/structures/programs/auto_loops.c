/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * auto_loops.c - what loop/loop_auto.c learns of loops with OMP_SCHEDULE=auto.  One kernel thread
 * is all thread numbers of a team, with the times that the lines of standard input say.  Each line
 * is answered by a line.
 *
 *   loop SITE TIMES THREADS CORES same|moved [COUNT*NS...]
 *                 a loop at SITE, a number, is executed so many times in a team.  The iterations
 *                 are COUNT of NS nanoseconds each, and so on.  Not more than CORES threads run at
 *                 a time; moved: each static part ends on another kernel thread than it began on.
 *                 The answer is a letter for each execution, s for static and p for split into
 *                 portions, and how many ns the last one has taken.
 *
 * It also checks that every iteration runs once, and that a thread gets no chunk after the loop's
 * last one (compiled code stores lastprivate variables then).
 */
#include "auto_loops.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, MOST = 1 << 14 };

struct loop {
    const void *site;
    long n;
    unsigned threads, cores;
    bool moved;
    uint64_t cost_ns[MOST];
    bool done[MOST];
    struct gomp_thread *last; /* has run the last iteration */
};

static struct gomp_work_share share;
static struct gomp_team team;
static struct gomp_thread threads[MOST_THREADS];

/* A thread number goes on at a time on some core. */
struct step {
    struct loop *loop;
    unsigned number;
    uint64_t now_ns;
    bool more;
};

/* Its next chunk. */
static void *make_step (void *arg)
{
    struct step *step = arg;
    struct loop *loop = step->loop;
    long i = 0, end = 0;
    gomp_current = &threads[step->number];
    inv_hold = INV_HOLD_NONE;
    clock_ns = step->now_ns;
    step->more = runtime_next(&i, &end);
    if (step->more && loop->last == gomp_current)
        gomp_fatal("a thread gets iteration %ld after the last one", i);
    for (; step->more && i < end; i++) {
        if (loop->done[i])
            gomp_fatal("iteration %ld runs again", i);
        loop->done[i] = true;
        clock_ns += loop->cost_ns[i];
    }
    if (step->more && end == loop->n)
        loop->last = gomp_current;
    step->now_ns = clock_ns;
    return NULL;
}

static void make_step_elsewhere (struct step *step)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_step, step) != 0)
        gomp_fatal("no thread");
    pthread_join(thread, NULL);
}

/* A static part goes on to its end: loop_auto.c keeps in the kernel thread when it began. */
static void make_steps (struct step *step, bool is_static)
{
    make_step(step);
    while (is_static && step->more)
        if (step->loop->moved)
            make_step_elsewhere(step);
        else
            make_step(step);
}

/* The core where the next thing happens. */
static struct step *first_of (struct step *core, unsigned ncores)
{
    struct step *first = NULL;
    for (unsigned c = 0; c < ncores; c++)
        if (core[c].more && (!first || core[c].now_ns < first->now_ns))
            first = &core[c];
    return first;
}

/* Each core takes the next thread number when it is done with one. */
static uint64_t run_threads (struct loop *loop)
{
    struct step core[MOST_THREADS], *step;
    unsigned ncores = loop->cores < loop->threads ? loop->cores : loop->threads, next = 0;
    uint64_t begin_ns = 1, end_ns = begin_ns;
    for (; next < ncores; next++)
        core[next] = (struct step){loop, next, begin_ns, true};
    while ((step = first_of(core, ncores))) {
        make_steps(step, share.sched == GFS_AUTO);
        end_ns = step->now_ns > end_ns ? step->now_ns : end_ns;
        if (!step->more && next < loop->threads) {
            step->number = next++;
            step->more = true;
        }
    }
    return end_ns - begin_ns;
}

/* How long it has taken. */
static uint64_t run (struct loop *loop)
{
    memset(&share, 0, sizeof share);
    memset(loop->done, 0, sizeof loop->done);
    loop->last = NULL;
    team.nthreads = loop->threads;
    gomp_available_cpus = loop->cores;
    for (unsigned i = 0; i < loop->threads; i++)
        threads[i].ts = (struct gomp_team_state){
            .team = &team, .team_id = i, .work_share = &share, .static_trip = 0};
    gomp_current = &threads[0];
    init_runtime(&share, 0, loop->n, 1, &team, loop->site);
    uint64_t ns = run_threads(loop);
    for (long i = 0; i < loop->n; i++)
        if (!loop->done[i])
            gomp_fatal("iteration %ld has not run", i);
    return ns;
}

static void obey (char *rest)
{
    static struct loop loop;
    strtok_r(rest, " \n", &rest); /* "loop" */
    loop.site = (const void *)(uintptr_t)strtoull(strtok_r(rest, " \n", &rest), NULL, 10);
    unsigned times = (unsigned)atoi(strtok_r(rest, " \n", &rest));
    loop.threads = (unsigned)atoi(strtok_r(rest, " \n", &rest));
    loop.cores = (unsigned)atoi(strtok_r(rest, " \n", &rest));
    loop.moved = strcmp(strtok_r(rest, " \n", &rest), "moved") == 0;
    loop.n = 0;
    for (char *word; (word = strtok_r(rest, " \n", &rest));) {
        char *ns;
        for (unsigned long count = strtoul(word, &ns, 10); count > 0 && loop.n < MOST; count--)
            loop.cost_ns[loop.n++] = strtoull(ns + 1, NULL, 10);
    }
    uint64_t ns = 0;
    for (; times > 0; times--) {
        ns = run(&loop);
        putchar(share.mode & LOOP_SPLIT ? 'p' : 's');
        free(share.ordered_team_ids);
    }
    printf(" %" PRIu64, ns);
}

int main (void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        obey(line);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
