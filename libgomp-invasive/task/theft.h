/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * theft.h - how many tasks a thief takes at once.
 *
 * A theft moves cache lines between two cores, which costs both of them some 100 ns.  For long
 * tasks that is nothing, and a thief that took several would keep them from other threads.  So a
 * thread number measures how long what it has stolen kept it busy.  Where that was short it takes
 * several tasks in one go: those that follow the first one and have the same parent, and never more
 * than half of what is left.  They go to its own queue, from where other threads may steal them.
 * One theft in some is measured: two looks at the clock cost half of what a theft does.
 *
 * The idea is the grain size of "Enclave Tasking for DG Methods on Dynamically Adaptive Meshes",
 * doi:10.1137/19M1276194, 4.1, with a time instead of a number.
 *
 * Only the thread that has the thread number reads and writes a history.
 */
#ifndef GOMP_THEFT_H
#define GOMP_THEFT_H 1

#include <libinvasive/base/now.h>
#include <stdint.h>

enum {
    GOMP_BATCH_NS = 8000, /* a batch keeps its thief busy for so long at most: 80 times what it saves */
    GOMP_BATCH_MOST = 16,   /* tasks; more would save less than a hundredth of a theft each */
    GOMP_THEFTS_UNTIMED = 15 /* between two that are measured */
};

/* Zero is a history without thefts. */
struct gomp_theft {
    void (*fn) (void *);  /* the body of the tasks that were stolen last */
    uint64_t mean_ns;     /* how long such a task, and what it created, kept the thread busy */
    uint64_t at_ns;       /* the theft of the tasks that are not yet in the mean; 0: there are none */
    unsigned count;       /* how many these are */
    unsigned untimed;     /* thefts since one was measured */
};

/* The thread is about to look for a victim, so it has done all that it stole before. */
static inline void gomp_theft_look (struct gomp_theft *theft)
{
    if (__builtin_expect(theft->at_ns == 0, 1))
        return;
    uint64_t each = inv_ns_since(theft->at_ns, inv_now_ns()) / theft->count + 1;
    theft->at_ns = 0;
    /* A thread that lost its core meanwhile measures too much: such a time counts little. */
    theft->mean_ns = theft->mean_ns == 0          ? each
                     : each < 3 * theft->mean_ns ? (theft->mean_ns + each) / 2
                                                 : 2 * theft->mean_ns;
}

/* How many tasks may be taken, if the first one has this body. */
static inline unsigned gomp_theft_most (const struct gomp_theft *theft, void (*fn) (void *))
{
    if (theft->fn != fn || theft->mean_ns == 0)
        return 1;
    uint64_t most = GOMP_BATCH_NS / theft->mean_ns;
    return most < 1 ? 1 : most > GOMP_BATCH_MOST ? GOMP_BATCH_MOST : (unsigned)most;
}

/* So many with this body were stolen. */
static inline void gomp_theft_note (struct gomp_theft *theft, void (*fn) (void *), unsigned count)
{
    if (theft->fn != fn) {
        theft->fn = fn;
        theft->mean_ns = 0;
        theft->untimed = GOMP_THEFTS_UNTIMED;
    }
    if (theft->untimed++ < GOMP_THEFTS_UNTIMED)
        return;
    theft->untimed = 0;
    theft->count = count;
    theft->at_ns = inv_now_ns();
}

#endif
