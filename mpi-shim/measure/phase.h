/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * phase.h - finds a program's iterations in the sequence of its synchronising calls.
 *
 * Pure: a sequence of call sites goes in, the ends of iterations come out; no clock, no MPI,
 * no memory of its own.  phase.c describes the method.
 */
#ifndef SHIM_PHASE_H
#define SHIM_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SHIM_PHASE_SITES = 128,   /* call sites told apart; the others count as one more */
    SHIM_PHASE_PERIOD = 128,  /* calls: the longest sequence that is recognised at first sight */
    SHIM_PHASE_HISTORY = 512, /* power of two, at least 3 * SHIM_PHASE_PERIOD */
    SHIM_PHASE_HASHED = 256,  /* power of two, at least 2 * SHIM_PHASE_SITES */
    SHIM_PHASE_BUNDLE = 1 << 20,
};

/* The call sites that an iteration went through, as a set: how often it went round an inner
 * loop does not matter. */
struct shim_phase_set {
    uint64_t bits[SHIM_PHASE_SITES / 64];
};

enum shim_phase_event {
    SHIM_PHASE_NONE,
    SHIM_PHASE_BEGIN, /* an iteration begins here; the calls before are of none */
    SHIM_PHASE_END,   /* an iteration ends here, `ended` is its set, and the next begins */
};

/* Zero-initialised: nothing is known.  For one thread at a time. */
struct shim_phase {
    int marker; /* number of the site where iterations begin, + 1; 0: searching */
    bool begun; /* the marker has been passed */
    uint32_t bundle, left; /* passes of the marker in an iteration; those until the next one */
    struct shim_phase_set set, ended; /* of the present iteration, and of the one before */

    /* numbers of call sites, in the order in which they were first seen */
    uint32_t key[SHIM_PHASE_HASHED]; /* 0: free */
    uint8_t number[SHIM_PHASE_HASHED];
    unsigned sites;

    /* while searching */
    uint32_t calls; /* so far; the last ones are in history */
    uint32_t period, matched; /* the guess, in calls; how many calls in sequence agree with it */
    uint32_t last[SHIM_PHASE_SITES]; /* the site's latest call, + 1; 0: never */
    uint8_t history[SHIM_PHASE_HISTORY];

    /* sites of some iterations only: how often they have come and gone */
    uint8_t comings[SHIM_PHASE_SITES];
};

/* A synchronising call is made at the call site with this hash (not 0). */
enum shim_phase_event shim_phase_call(struct shim_phase *p, uint32_t key);

/* Is the call site with this hash the marker?  If not, its calls end no iteration, and need not be
 * reported again in this iteration. */
bool shim_phase_marks(struct shim_phase *p, uint32_t key);
/* A call is made at the marker.  True: it ends no iteration, and has been counted.  False: nothing
 * has been done, call shim_phase_call. */
static inline bool shim_phase_pass(struct shim_phase *p)
{
    if (p->left < 2)
        return false;
    p->left--;
    return true;
}

/* The latest iterations were too short to be measured.  From now on the marker is a rarer call
 * site, one of an outer loop; if there is none, an iteration is twice as many passes of the
 * marker. */
void shim_phase_lengthen(struct shim_phase *p);

/* The latest iteration was long: if it was several passes of the marker, halves their number. */
void shim_phase_shorten(struct shim_phase *p);

/* The marker is not passed any more: searches again. */
void shim_phase_forget(struct shim_phase *p);

/* A hash of the set, the same in all ranks that have made the same calls; not 0. */
uint64_t shim_phase_hash(const struct shim_phase_set *set);

/* The hash of a call site, for the functions above. */
static inline uint32_t shim_phase_key(const void *call_site)
{
    uint64_t h = (uint64_t)(uintptr_t)call_site * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32) | 1;
}

#endif
