/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * count_events - a tool that checks the promises of include/invasive-tool.h while it counts, and at
 * exit appends a line of counts to the file that COUNT_EVENTS names:
 *
 *   PID regions B E tasks B E idles B E cores A L own O borrowed B wrong W
 *
 * W counts broken promises; each of the first ten says on stderr what it was.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <invasive-tool.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 64, CORES = 1024, REGIONS = 4096 };

static _Atomic long region_begins, region_ends, task_begins, task_ends, idle_begins, idle_ends;
static _Atomic long arrivals, departures, own, borrowed, wrong;

/* What this thread is in: regions and implicit tasks, innermost last. */
static __thread struct open {
    const void *region;
    long number; /* -1: the region itself */
} stack[DEPTH];
static __thread int depth;
static __thread bool idle;

/* The open regions, for the order between threads. */
static struct {
    _Atomic(const void *) region;
    unsigned threads;
    _Atomic long begun, ended;
} regions[REGIONS];

static _Atomic int held[CORES];
static _Atomic int tokens;

static void complain(const char *what)
{
    if (atomic_fetch_add(&wrong, 1) < 10)
        dprintf(STDERR_FILENO, "count_events: %s\n", what);
}

static void check(bool good, const char *what)
{
    if (!good)
        complain(what);
}

static int find(const void *region)
{
    for (int i = 0; i < REGIONS; i++)
        if (atomic_load(&regions[i].region) == region)
            return i;
    return -1;
}

static void enter(const void *region, long number)
{
    check(depth < DEPTH, "nested deeper than the program nests");
    if (depth < DEPTH)
        stack[depth++] = (struct open){region, number};
}

static void leave(const void *region, long number)
{
    bool good = depth > 0 && stack[depth - 1].region == region && stack[depth - 1].number == number;
    check(good, "an end that does not fit the last begin of its thread");
    if (depth > 0)
        depth--;
}

static void region_begin(const void *region, void (*function)(void *), unsigned threads,
                         unsigned level)
{
    region_begins++;
    check(function && threads > 0 && level > 0, "a region without function, threads or level");
    check(find(region) < 0, "two open regions with the same handle");
    check(!idle, "a region on an idle thread");
    enter(region, -1);
    for (int i = 0; i < REGIONS; i++) {
        const void *none = NULL;
        if (!atomic_compare_exchange_strong(&regions[i].region, &none, region))
            continue;
        regions[i].threads = threads;
        regions[i].begun = regions[i].ended = 0;
        return;
    }
    complain("more regions open than this tool can know");
}

static void region_end(const void *region)
{
    region_ends++;
    leave(region, -1);
    int i = find(region);
    check(i >= 0, "the end of a region that did not begin");
    if (i < 0)
        return;
    check(regions[i].begun == regions[i].threads && regions[i].ended == regions[i].threads,
          "the end of a region before that of all implicit tasks");
    atomic_store(&regions[i].region, NULL);
}

static void task_begin(const void *region, unsigned number)
{
    task_begins++;
    check(!idle, "a task on an idle thread");
    enter(region, number);
    int i = find(region);
    check(i >= 0 && number < regions[i].threads, "a task of an unknown region or number");
    if (i >= 0)
        regions[i].begun++;
}

static void task_end(const void *region, unsigned number)
{
    task_ends++;
    leave(region, number);
    int i = find(region);
    check(i >= 0, "the end of a task after that of its region");
    if (i >= 0)
        regions[i].ended++;
}

static void idle_begin(void)
{
    idle_begins++;
    check(!idle && depth == 0, "idle twice, or inside a task");
    idle = true;
}

static void idle_end(void)
{
    idle_ends++;
    check(idle, "not idle any more without having been");
    idle = false;
}

static void core_arrived(int core, enum inv_tool_arrival how)
{
    arrivals++;
    (how == INV_TOOL_OWN ? &own : &borrowed)[0]++;
    if (core == INV_TOOL_ANY_CORE)
        tokens++;
    else
        check(core >= 0 && core < CORES && atomic_exchange(&held[core], 1) == 0,
              "a core that arrives twice");
}

static void core_left(int core, enum inv_tool_departure how)
{
    departures++;
    check(how >= INV_TOOL_LENT && how <= INV_TOOL_EVICTED, "an unknown kind of departure");
    if (core == INV_TOOL_ANY_CORE)
        check(atomic_fetch_sub(&tokens, 1) > 0, "a token that leaves without having arrived");
    else
        check(core >= 0 && core < CORES && atomic_exchange(&held[core], 0) == 1,
              "a core that leaves without having arrived");
}

/* The child of a fork holds none. */
static void forget_cores(void)
{
    for (int core = 0; core < CORES; core++)
        held[core] = 0;
    tokens = 0;
}

static void __attribute__((destructor)) report(void)
{
    const char *path = getenv("COUNT_EVENTS");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0)
        return;
    /* Not all at one moment: what begins later cannot be counted as ended. */
    long ends[] = {region_ends, task_ends, idle_ends, departures};
    dprintf(file,
            "%d regions %ld %ld tasks %ld %ld idles %ld %ld cores %ld %ld own %ld borrowed %ld "
            "wrong %ld\n",
            getpid(), region_begins, ends[0], task_begins, ends[1], idle_begins, ends[2], arrivals,
            ends[3], own, borrowed, wrong);
    close(file);
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
    const char *result = getenv("COUNT_EVENTS_START");
    if (result)
        return atoi(result);
    pthread_atfork(NULL, NULL, forget_cores);
    return inv_tool_register(&tool, INV_TOOL_VERSION);
}
