/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * region_history.c - region/history.c alone: regions of functions that are numbers, with the times
 * that the lines of standard input say.  Each line is answered by a line.
 *
 *   cores HELD LENT FREE AWAY   how many cores of the domain are ours and held, ours and lent to
 *                               others, free, and another process's: how many the process could
 *                               compute on
 *   tokens N                    the same in anonymous mode
 *   unmanaged N                 the same in a process that has not joined, on a machine of N cores
 *   regions FN COUNT N ALONE IN-ORDER APART [nested|bound] [waits] [sleeps:K]
 *                               so many regions of N implicit tasks.  One takes ALONE ns if it is
 *                               left to the master's core, APART if each core begins with the
 *                               implicit tasks that it has had, else IN-ORDER.  In it, threads
 *                               sleep K times: how many were alone, apart, timed
 *   show FN                     the entry, or "none": core_ns alone_ns shared_ns in_order_ns
 *                               apart_ns waits inside
 *   code none|loops|yielding    what is found near the code of every function from now on
 *   stalls FN alone|apart|region  what the watchdog has seen of a region
 *   spins FN                    does it wait in loops?  And how often code has been searched
 *   yields FN EPOCH CALLS       what so many calls of sched_yield in a region say: unknown, known
 *                               or seen
 */
#define _GNU_SOURCE
#include "members.h"
#include "history.h"
#include "objects.h"
#include "region.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t clock_ns = 1;
static struct gomp_region region;
static enum gomp_loops loops = GOMP_NO_LOOPS;
static unsigned searches;

int clock_gettime (clockid_t clock, struct timespec *ts)
{
    (void)clock;
    *ts = (struct timespec){(time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000)};
    return 0;
}

enum gomp_loops gomp_loops_near (void (*fn) (void *))
{
    (void)fn;
    searches++;
    return loops;
}

typedef void (*function) (void *);

static function function_of (const char *word)
{
    return (function)(uintptr_t)strtoull(word, NULL, 10);
}

/* --- regions */

struct way {
    unsigned nthreads, sleeps;
    uint64_t alone_ns, in_order_ns, apart_ns;
    bool nested, bound, waits;
};

/* In this order the master asks (implicit/open.c). */
static void open_region (function fn, const struct way *way)
{
    region.start.fn = fn;
    region.start.nthreads = way->nthreads;
    region.elastic = !way->bound;
    region.epoch++;
    gomp_history_region_opens(&region, way->nested);
    struct gomp_history *h = gomp_history_find(fn);
    region.inside = h ? h->inside : GOMP_INSIDE_UNKNOWN;
    region.waited = false;
    region.tickets.alone = h && !way->nested && gomp_history_prefers_alone(h, &region);
    region.order_is_chosen = h != NULL;
    region.tickets.apart = h && gomp_history_prefers_apart(h, &region);
}

static void print_regions (function fn, unsigned count, const struct way *way)
{
    unsigned alone = 0, apart = 0, timed = 0;
    for (unsigned i = 0; i < count; i++) {
        open_region(fn, way);
        bool is_alone = region.tickets.alone, is_apart = region.tickets.apart && !is_alone;
        alone += is_alone;
        apart += is_apart;
        timed += region.began_ns != 0;
        clock_ns += is_alone ? way->alone_ns : is_apart ? way->apart_ns : way->in_order_ns;
        region.sleeps = way->sleeps;
        region.waited = way->waits;
        gomp_history_region_ends(&region);
    }
    printf("%u %u %u", alone, apart, timed);
}

static void obey_regions (char **word)
{
    struct way way = {.nthreads = (unsigned)atoi(word[3])};
    way.alone_ns = strtoull(word[4], NULL, 10);
    way.in_order_ns = strtoull(word[5], NULL, 10);
    way.apart_ns = strtoull(word[6], NULL, 10);
    for (unsigned i = 7; word[i]; i++) {
        way.nested |= strcmp(word[i], "nested") == 0;
        way.bound |= strcmp(word[i], "bound") == 0;
        way.waits |= strcmp(word[i], "waits") == 0;
        sscanf(word[i], "sleeps:%u", &way.sleeps);
    }
    print_regions(function_of(word[1]), (unsigned)atoi(word[2]), &way);
}

static void show (function fn)
{
    const struct gomp_history *h = gomp_history_find(fn);
    if (!h)
        printf("none");
    else
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u", h->core_ns,
               h->alone_ns, h->shared_ns, h->in_order_ns, h->apart_ns, h->waits, h->inside);
}

static void stall (function fn, const char *what)
{
    if (strcmp(what, "alone") == 0)
        gomp_history_alone_stalls(fn);
    else if (strcmp(what, "apart") == 0)
        gomp_history_apart_stalls(fn);
    else
        gomp_history_of(fn)->stalled = true;
}

static const char *yields (function fn, uint32_t epoch, unsigned calls)
{
    enum gomp_yields found = GOMP_YIELDS_UNKNOWN;
    for (unsigned i = 0; i < calls; i++)
        found = gomp_history_yields(fn, epoch);
    return found == GOMP_YIELDS_SEEN ? "seen" : found == GOMP_YIELDS_KNOWN ? "known" : "unknown";
}

/* --- cores */

static void obey_cores (char **word)
{
    become_member();
    unsigned us = inv_own_name();
    add_cores((unsigned)atoi(word[1]), us, us);
    add_cores((unsigned)atoi(word[2]), OTHER_NAME, us);
    add_cores((unsigned)atoi(word[3]), 0, OTHER_NAME);
    add_cores((unsigned)atoi(word[4]), OTHER_NAME, OTHER_NAME);
}

static void obey_process (char **word)
{
    if (strcmp(word[0], "cores") == 0)
        obey_cores(word);
    else if (strcmp(word[0], "tokens") == 0) {
        become_member();
        inv_process.anonymous = true;
        tokens = atoi(word[1]);
    } else {
        inv_process.managed = false;
        domain_cores = (unsigned)atoi(word[1]);
    }
    printf("%u", gomp_cores_at_hand());
}

static void obey (char **word)
{
    const char *what = word[0];
    if (strcmp(what, "regions") == 0)
        obey_regions(word);
    else if (strcmp(what, "show") == 0)
        show(function_of(word[1]));
    else if (strcmp(what, "stalls") == 0)
        stall(function_of(word[1]), word[2]);
    else if (strcmp(what, "code") == 0)
        loops = word[1][0] == 'n'   ? GOMP_NO_LOOPS
                : word[1][0] == 'l' ? GOMP_LOOPS
                                    : GOMP_YIELDING_LOOPS;
    else if (strcmp(what, "spins") == 0) {
        region.start.fn = function_of(word[1]);
        bool spins = gomp_history_spins(gomp_history_of(region.start.fn), &region);
        printf("%s %u", spins ? "yes" : "no", searches);
    } else if (strcmp(what, "yields") == 0)
        printf("%s", yields(function_of(word[1]), (uint32_t)atoi(word[2]),
                            (unsigned)atoi(word[3])));
    else
        obey_process(word);
}

int main (void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        char *word[16] = {NULL}, *rest = line;
        for (unsigned i = 0; i < 15 && (word[i] = strtok_r(rest, " \n", &rest)); i++)
            ;
        obey(word);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
