/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * history.h - what the runtime remembers of each function that the compiler has outlined from a
 * parallel region, from region to region.
 *
 * A direct-mapped table: one entry for each hash of the function's address, tagged with the
 * address.  Two functions with one hash replace each other's entry.  Entries are estimates and no
 * correctness depends on them, so accesses are relaxed and need no lock.
 */
#ifndef GOMP_HISTORY_H
#define GOMP_HISTORY_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct gomp_region;

enum { GOMP_WAITS_ONE = 256 }; /* unit of gomp_history.waits */

enum gomp_suspicion {
    /* Implicit tasks of the function have never kept a region from ending, or only because they are
     * long (patience_ns). */
    GOMP_UNKNOWN,
    /* They seemed to wait for each other once.  If patience_ns passes as well: GOMP_SPINS. */
    GOMP_SUSPECTED,
    /* They wait for each other in loops of their own, or sleep in the kernel: all are started at
     * once. */
    GOMP_SPINS
};

/* Do implicit tasks of the function wait for each other in loops that call sched_yield? */
enum gomp_yields {
    GOMP_YIELDS_UNKNOWN,
    /* In OpenBLAS or BLIS, whose loops may be left for another context. */
    GOMP_YIELDS_KNOWN,
    /* They have been seen to.  What else such code does is not known: the next implicit task might meet thread-local
     * data in the midst of a change.  So no context is left there.  Kernel threads of regions that are not elastic
     * pass their cores on; elastic regions start all implicit tasks at once, as GOMP_SPINS. */
    GOMP_YIELDS_SEEN
};

struct gomp_history {
    _Atomic(void (*) (void *)) fn;
    /* How long an implicit task may take, in CPU time of the process, before the watchdog thinks
     * that it waits for another one; 0: as long as any.  Writer: the watchdog (progress.c). */
    _Atomic uint64_t patience_ns;
    /* What is thought of its implicit tasks.  Writers: the watchdog, and masters (gomp_history_spins). */
    _Atomic uint32_t suspicion;
    /* The watchdog has had to help a region of the function.  Writer: the watchdog. */
    _Atomic bool stalled;
    /* enum gomp_loops (objects.h): loops in the code near the function.  Writers: masters, and
     * implicit tasks that call sched_yield. */
    _Atomic uint8_t loops;
    /* enum gomp_yields.  Writers, of the next one too: implicit tasks that call sched_yield (gomp_history_yields). */
    _Atomic uint8_t yields;
    /* How often they have done so in one region: epoch, calls * 2^32.  Some calls may be missing. */
    _Atomic uint64_t yielded;
    /* Core time that a region takes, waiting and switching included: a mean over some regions, the
     * latest most; 0: not known.  Writers, of the next one too: masters at the end of a region
     * (gomp_history_region_ends). */
    _Atomic uint64_t core_ns;
    /* What a short region takes, in wall time: where its implicit tasks are left to the master's core at
     * first, and where all cores may take them.  Means over timed regions; 0: not known.  Writers:
     * masters at the end of a region. */
    _Atomic uint64_t alone_ns, shared_ns; /* alone_ns UINT64_MAX: gomp_history_alone_stalls */
    /* The same, where long implicit tasks are taken in order, and where each core begins with implicit tasks that it
     * has had before. */
    _Atomic uint64_t in_order_ns, apart_ns; /* apart_ns UINT64_MAX: gomp_history_apart_stalls */
    /* How often an implicit task sleeps inside a region that has more of them than the process has
     * cores: a mean as above, in 1/GOMP_WAITS_ONE. */
    _Atomic uint32_t waits;
    /* enum gomp_inside (region.h); once they have waited it stays so.  Writers: masters at the end of a region. */
    _Atomic uint32_t inside;
    /* 0: regions are as large as they are asked for.  Else: so many of them have been made no
     * larger than the cores, because of `waits`.  Writers: masters (parallel.c). */
    _Atomic uint32_t narrow;
} __attribute__((aligned(64)));

/* The entry of fn; NULL when there is none.  A hash and a load. */
extern struct gomp_history *gomp_history_find (void (*fn) (void *));
/* The same; makes one, which forgets whatever function was there. */
extern struct gomp_history *gomp_history_of (void (*fn) (void *));

/* Core time of one of n implicit tasks, waiting and switching included; 0: not known. */
static inline uint64_t gomp_history_task_ns (const struct gomp_history *h, unsigned n)
{
    uint64_t ns = atomic_load_explicit(&h->core_ns, memory_order_relaxed);
    return (ns + n - 1) / n;
}

/* Is the region of this epoch timed?  One of 16, at first one of four, at irregular distances. */
static inline bool gomp_history_samples (uint32_t epoch)
{
    enum { FIRST_REGIONS = 32768 }; /* trials of what is not known are over sooner */
    return epoch * UINT32_C(0x9e3779b1) >> (epoch < FIRST_REGIONS ? 30 : 28) == 0;
}

/* Are the implicit tasks of a region of this function to be left to the master's core?  For regions so short
 * that other threads' help takes longer than the work; tried now and then, and measured.  Not if in code
 * near the function threads wait in loops.  The watchdog gives a region that lasts to all cores. */
extern bool gomp_history_prefers_alone (struct gomp_history *, struct gomp_region *);
/* Do implicit tasks of the region's function wait for each other in loops of their own, as far as is known?  Once
 * the watchdog has had to help such a region the code near the function is searched.  Called by the master. */
extern bool gomp_history_spins (struct gomp_history *, struct gomp_region *);
/* An implicit task of a region of this function calls sched_yield, while other implicit tasks wait for a core.  In
 * loops in which they wait for each other a hand-over of the core is worth its cost (doc/measurements.md): in OpenBLAS
 * and BLIS, which is looked for once, and where a region has had so many calls that its implicit tasks do wait. */
extern enum gomp_yields gomp_history_yields (void (*fn) (void *), uint32_t epoch);
/* A region of this function was left to the master's core and was not over soon: no further region
 * is.  Its implicit tasks may wait for each other.  Called by the watchdog, and by a thread that
 * gives the core up. */
extern void gomp_history_alone_stalls (void (*fn) (void *));

/* Is each core to begin with implicit tasks that it has had in the region before, rather than all with the next one
 * in order?  Their data is in its cache then; but threads of a program may wait for the one before.  Both are tried
 * and measured, if implicit tasks take less than 1 ms: for longer ones caches matter less. */
extern bool gomp_history_prefers_apart (const struct gomp_history *, const struct gomp_region *);
/* Threads of a region of this function, for which that order was chosen, have waited for an
 * implicit task that was not started: the order is not chosen again. */
extern void gomp_history_apart_stalls (void (*fn) (void *));

/* Called by the master when a region of more than one implicit task opens, and when it is over.  A
 * nested region is not timed, since other regions have the cores meanwhile, too. */
extern void gomp_history_region_opens (struct gomp_region *, bool nested);
extern void gomp_history_region_ends (struct gomp_region *);
/* Cores that the process computes on, or could at once: those that it holds, those of its own that
 * it has lent, and those that are free.  At least 1. */
extern unsigned gomp_cores_at_hand (void);

#pragma GCC visibility pop
#endif
