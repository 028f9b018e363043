/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * costs.c - what teams cost, by outlined function (costs.h).
 *
 * Functions have numbers in the record, which a bounded table of this process knows by address.  What
 * finds no room is function 0 of the record, with the regions of all functions that found none.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* for dl_iterate_phdr */
#endif
#include "costs.h"
#include "context.h"
#include "history.h"
#include "region.h"
#include "tls.h"
#include "use.h"
#include "spinlock.h"
#include "suspended.h"
#include <link.h>
#include <string.h>

enum {
    MAP_BITS = 8,
    MAP = 1 << MAP_BITS, PROBES = 16,
    OTHERS = 0,                    /* the number of all functions for which there is no room */
    CODE_TIMED = 4,                /* the first regions of a function, whose code is timed all */
    TIMED = 16,                    /* the first ones, which are timed all */
    GAP = 8,                       /* afterwards one of GAP to 2 * GAP - 1 is timed */
    LONG_NS = 200000,              /* in a longer region more reads of the clock do not matter */
    PIECES = 16,                   /* code before its first barriers, so many, is timed all there */
    ONE_IN = 64,                   /* else one of so many */
    MOST_GROWTH = 8,               /* a sample stands for others with at most so many means */
    CORES_EVERY = 8,               /* timed regions after which cores are counted again */
    SWITCHES_EVERY = 63,           /* pieces of code after which a switch is timed */
    SWITCH_MOST_NS = 2000,         /* one that takes longer was interrupted */
};

/* Of a function: when its next region is timed.  Written by masters, relaxed: two that write at once
 * only make a sample stand for too many or too few. */
struct gomp_cost_sampling {
    _Atomic(void (*) (void *)) fn; /* NULL: free; written once, under the lock */
    uint32_t number;               /* in the record; written before fn */
    _Atomic uint32_t seen, last, next;
    _Atomic uint64_t mean_ns;  /* of timed regions, the latest counts most */
    _Atomic uint64_t piece_ns; /* of pieces of code */
};

static struct {
    struct gomp_cost_sampling map[MAP], others; /* (the number of these is OTHERS) */
    struct gomp_spinlock naming; /* of what is new in the map and the record */
    _Atomic uint64_t clock_ns;   /* what a look at the clock takes; written with the first function */
    _Atomic unsigned cores_lately, cores_counted; /* written by masters; relaxed, a guess */
} costs;

/* Of the calling kernel thread: how many pieces of code have ended; how many switches it had made
 * as a carrier when it began to time one. */
static __thread unsigned pieces __attribute__((tls_model("initial-exec")));
static __thread uint64_t switches_left __attribute__((tls_model("initial-exec")));

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

/* --- the clock */

static void measure_clock (void)
{
    uint64_t least = UINT64_MAX, last = inv_now_ns();
    for (int i = 0; i < 16; i++) {
        uint64_t now = inv_now_ns();
        if (now - last < least)
            least = now - last;
        last = now;
    }
    SET(costs.clock_ns, least);
}

/* Time since then, less the time of the look at the clock itself. */
static uint64_t elapsed_since (uint64_t then)
{
    uint64_t ns = inv_now_ns() - then, look = GET(costs.clock_ns);
    return ns > look ? ns - look : 0;
}

/* --- functions */

struct search {
    uintptr_t address, base;
    const char *name;
};

static int in_module (struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || s->address - info->dlpi_addr - p->p_vaddr >= p->p_memsz)
            continue;
        s->base = info->dlpi_addr;
        s->name = info->dlpi_name;
        return 1;
    }
    return 0;
}

/* The number of the module in the record, + 1; INV_MODULES + 1: there is no room. */
static uint32_t module_number (struct inv_record *r, const char *file)
{
    uint32_t i = 0;
    while (i < INV_MODULES && r->module[i][0] && strcmp(r->module[i], file) != 0)
        i++;
    if (i < INV_MODULES)
        strcpy(r->module[i], file);
    return i + 1;
}

/* (Not by dladdr: a thread that holds its lock may run constructors and wait for this thread.) */
static void name_function (struct inv_record *r, struct inv_function *f, void (*fn) (void *))
{
    char file[INV_MODULE_BYTES] = "";
    struct search s = {.address = (uintptr_t)fn};
    if (dl_iterate_phdr(in_module, &s))
        inv_record_name_module(file, s.name);
    f->offset = s.address - s.base;
    /* release: partner is the acquire load of the record's reader */
    atomic_store_explicit(&f->named, module_number(r, file), memory_order_release);
}

/* Gives the function a number, and a name in the record; OTHERS: no number is left.  Under the
 * lock. */
static uint32_t new_number (struct inv_record *r, void (*fn) (void *))
{
    uint32_t number = GET(r->functions);
    if (number <= OTHERS) {
        number = OTHERS + 1;
        measure_clock();
    }
    if (number < INV_FUNCTIONS) {
        name_function(r, &r->function[number], fn);
        SET(r->functions, number + 1);
    } else {
        number = OTHERS;
        SET(r->functions, INV_FUNCTIONS + 1);
    }
    return number;
}

/* The function's entry, or a free one; NULL: neither. */
static struct gomp_cost_sampling *find_sampling (void (*fn) (void *))
{
    unsigned first = (uintptr_t)fn * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MAP_BITS);
    for (unsigned i = 0; i < PROBES; i++) {
        struct gomp_cost_sampling *s = &costs.map[(first + i) % MAP];
        /* acquire: what follows it in the entry; partner: the store of sampling_of */
        void (*known) (void *) = atomic_load_explicit(&s->fn, memory_order_acquire);
        if (!known || known == fn)
            return s;
    }
    return NULL;
}

static struct gomp_cost_sampling *sampling_of (struct inv_record *r, void (*fn) (void *))
{
    struct gomp_cost_sampling *s = find_sampling(fn);
    if (s && GET(s->fn))
        return s;
    gomp_spinlock_lock(&costs.naming);
    s = find_sampling(fn); /* it may have come meanwhile */
    if (s && !GET(s->fn)) {
        s->number = new_number(r, fn);
        atomic_store_explicit(&s->fn, fn, memory_order_release);
    }
    gomp_spinlock_unlock(&costs.naming);
    return s ? s : &costs.others;
}

/* --- regions */

/* shared: masters of several regions may write at the same time. */
static void add_to_counter (_Atomic uint64_t *to, uint64_t n, bool shared)
{
    if (n == 0)
        return;
    if (shared)
        atomic_fetch_add_explicit(to, n, memory_order_relaxed);
    else
        SET(*to, GET(*to) + n);
}

/* An irregular sequence, so that samples are not in step with the program. */
static uint32_t scatter (uint32_t n)
{
    return n * UINT32_C(0x9e3779b1);
}

static uint32_t gap_after (const struct gomp_cost_sampling *s, uint32_t seen)
{
    if (seen < TIMED || GET(s->mean_ns) > LONG_NS)
        return 1;
    return GAP + scatter(seen) / (UINT32_MAX / GAP + 1);
}

/* Only what was found first is recorded.  (Looked for without the lock, since a thread that holds
 * the dynamic linker's lock may wait for it.) */
static void record_what_ties (struct inv_record *r)
{
    char name[sizeof r->tied_by];
    if (!gomp_what_ties_threads(name, sizeof name))
        return;
    gomp_spinlock_lock(&costs.naming);
    if (!GET(r->tied)) {
        memcpy(r->tied_by, name, sizeof name);
        /* release: partner is the acquire load of a reader of the record */
        atomic_store_explicit(&r->tied, 1, memory_order_release);
    }
    gomp_spinlock_unlock(&costs.naming);
}

void gomp_cost_team (unsigned nthreads)
{
    struct inv_record *r = inv_own_record();
    if (!r)
        return;
    if (nthreads > GET(r->team_threads))
        SET(r->team_threads, nthreads);
    if (__builtin_expect(nthreads > 1 && gomp_ties_are_new(), 0))
        record_what_ties(r);
}

void gomp_cost_region_opens (struct gomp_region *region)
{
    struct gomp_cost *cost = &region->cost;
    struct inv_record *r = inv_own_record();
    if (!r || GET(r->until_ns))
        return;
    struct gomp_cost_sampling *s = sampling_of(r, region->start.fn);
    cost->of = &r->function[s->number];
    cost->sampling = s;
    cost->generation = gomp_barrier_flags(&region->start.team->barrier) & -BAR_INCR;
    uint32_t seen = GET(s->seen);
    cost->full = seen < CODE_TIMED || GET(s->mean_ns) > LONG_NS;
    cost->began_ns = seen >= GET(s->next) ? inv_now_ns() : 0;
    if (cost->began_ns)
        cost->switches = gomp_carriers_switches();
    if (region->start.level == 1)
        gomp_cost_team(region->start.nthreads);
}

/* Cores are counted for one of CORES_EVERY regions, since each core has to be looked at. */
static unsigned cores_at_hand (void)
{
    unsigned cores = GET(costs.cores_lately);
    if (atomic_fetch_add_explicit(&costs.cores_counted, 1, memory_order_relaxed) % CORES_EVERY && cores)
        return cores;
    cores = gomp_cores_at_hand();
    SET(costs.cores_lately, cores);
    return cores;
}

/* The time that a sample stands for; its mean is kept.  A sample that was interrupted for a time slice does
 * not stand for a time that long. */
static uint64_t usual_of (_Atomic uint64_t *mean_ns, uint64_t ns)
{
    uint64_t mean = GET(*mean_ns), most = MOST_GROWTH * mean;
    uint64_t usual = mean > 0 && ns > most ? most : ns;
    SET(*mean_ns, mean ? (3 * mean + usual) / 4 : usual);
    return usual;
}

/* Counts a timed region, which stands for `weight` regions. */
static void count_sample (struct gomp_region *region, uint32_t weight, bool shared)
{
    struct inv_function *f = region->cost.of;
    uint64_t elapsed = elapsed_since(region->cost.began_ns);
    uint64_t usual = usual_of(&region->cost.sampling->mean_ns, elapsed);
    add_to_counter(&f->elapsed_ns, elapsed + (weight - 1) * usual, shared);
    add_to_counter(&f->cores, (uint64_t)weight * cores_at_hand(), shared);
    if (region->light && region->start.level == 1) /* switches of all carriers, also for other nested regions */
        add_to_counter(&f->switches,
                       weight * (gomp_carriers_switches() - region->cost.switches), shared);
}

void gomp_cost_region_ends (struct gomp_region *region)
{
    struct gomp_cost *cost = &region->cost;
    struct inv_function *f = cost->of;
    if (!inv_own_record())
        return;
    bool shared = region->start.level > 1 || gomp_use_has_further_threads();
    unsigned generation = gomp_barrier_flags(&region->start.team->barrier);
    uint32_t seen = GET(cost->sampling->seen) + 1;
    SET(cost->sampling->seen, seen);
    add_to_counter(&f->regions, 1, shared);
    add_to_counter(&f->threads, region->start.nthreads, shared);
    add_to_counter(&f->barriers, ((generation & -BAR_INCR) - cost->generation) / BAR_INCR, shared);
    if (!region->light)
        add_to_counter(&f->sleeps, GET(region->sleeps), shared);
    if ((generation & BAR_TASKS) && !GET(f->tasks))
        SET(f->tasks, 1);
    if (cost->began_ns == 0)
        return;
    /* (If masters write at the same time this may be 0 or very large.) */
    uint32_t weight = seen - GET(cost->sampling->last);
    count_sample(region, weight - 1 < 2 * GAP ? weight : 1, shared);
    SET(cost->sampling->last, seen);
    SET(cost->sampling->next, seen - 1 + gap_after(cost->sampling, seen));
}

/* --- code */

/* How many pieces of code the one after this barrier stands for; 0: it is not timed. */
static uint32_t weight_of (const struct gomp_region *region, unsigned generation)
{
    unsigned piece = (generation - region->cost.generation) / BAR_INCR;
    if (region->cost.full && piece < PIECES)
        return 1;
    return scatter(GET(region->epoch) * 257 + piece) / (UINT32_MAX / ONE_IN + 1) ? 0 : ONE_IN;
}

/* The calling carrier left the code of one context at gomp_carrier_left_ns, and has come to the
 * code of another: the time between is that of a switch.  (Not if it has made no switch
 * meanwhile.) */
static void count_switch (void)
{
    struct inv_record *r = inv_own_record();
    uint64_t ns = elapsed_since(gomp_carrier_left_ns);
    gomp_carrier_left_ns = 0;
    if (!r || ns > SWITCH_MOST_NS || gomp_carrier_own_switches() == switches_left)
        return;
    add_to_counter(&r->switches_ns, ns, true);
    add_to_counter(&r->switches_timed, 1, true);
}

/* code_from_ns is the time; its last bit is set if the piece stands for ONE_IN pieces. */
void gomp_cost_code_begins (gomp_barrier_t *bar)
{
    if (gomp_carrier_left_ns)
        count_switch();
    uint32_t weight = weight_of(bar->region, gomp_barrier_flags(bar) & -BAR_INCR);
    if (weight)
        gomp_thread()->task->own.code_from_ns = (inv_now_ns() & ~UINT64_C(1)) | (weight > 1);
}

static void count_code (const struct gomp_cost *cost, uint64_t from)
{
    uint64_t ns = elapsed_since(from & ~UINT64_C(1));
    uint64_t usual = usual_of(&cost->sampling->piece_ns, ns);
    if (inv_own_record())
        add_to_counter(&cost->of->code_ns, ns + (from & 1 ? (ONE_IN - 1) * usual : 0), true);
}

void gomp_cost_code_ends (gomp_barrier_t *bar)
{
    struct gomp_task_own *own = &gomp_thread()->task->own;
    uint64_t from = own->code_from_ns;
    own->code_from_ns = 0;
    if (from)
        count_code(&bar->region->cost, from);
    gomp_carrier_left_ns = 0;
    if (++pieces % SWITCHES_EVERY != 0 || !gomp_in_context())
        return;
    switches_left = gomp_carrier_own_switches();
    gomp_carrier_left_ns = inv_now_ns();
}

void gomp_costs_forget (void)
{
    memset(costs.map, 0, sizeof costs.map);
    memset(&costs.others, 0, sizeof costs.others);
    atomic_store(&costs.naming.held, 0);
    SET(costs.cores_lately, 0);
}
