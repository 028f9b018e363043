/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tuning.h - `invade --tune`: parameters of the runtime that are tuned by the program's iteration time
 * (Acun et al., doi:10.1109/SC.2014.58, section III.E).
 *
 * INVASIVE_TUNE lists what is tuned: team, spin, poll.  Each parameter has a few values, one search, and
 * its turn: two at once would disturb each other's times.  Times come in samples, iterations that take
 * INV_TUNING_SAMPLE_NS together.  A search begins after 16 samples and takes at most 21 for each value, and
 * as many for the usual one at the end.  Where ranks of a job share a domain the first one searches, and the
 * others take over its values at the ends of their iterations (inv_slot.tuned).
 */
#ifndef INV_TUNING_H
#define INV_TUNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum inv_tuned {
    INV_TUNED_TEAM, /* omp.team: threads of a default team, 1 to 65535; 0: as many as without tuning */
    INV_TUNED_SPIN, /* wait.spin: percent of the usual time for which a thread that waits spins */
    INV_TUNED_POLL, /* mpi.poll: percent of the usual time between two looks of a rank that sleeps in MPI */
    INV_TUNED_PARAMETERS
};

enum { INV_TUNING_SAMPLE_NS = 5000000 }; /* shorter times say little on a machine with other load */

/* What tells lengths of iterations: of two sources the later one here is believed. */
enum inv_iteration_source { INV_ITERATIONS_OF_REGIONS, INV_ITERATIONS_OF_MPI };

struct inv_tuning {
    /* Writers: tuning.c, in the thread that tells of iterations; readers: any thread.  relaxed: any value is
     * right at any time */
    _Atomic uint32_t value[INV_TUNED_PARAMETERS];
    /* Bit p: parameter p is to be tuned.  Written once, before the process is managed */
    uint32_t asked;
};
extern struct inv_tuning inv_tuning;

/* Reads INVASIVE_TUNE.  inv_join calls it before the process is managed. */
void inv_tuning_begin(void);

static inline bool inv_is_tuned(void) { return __builtin_expect(inv_tuning.asked != 0, 0); }

static inline unsigned inv_tuned_team(void)
{
    return atomic_load_explicit(&inv_tuning.value[INV_TUNED_TEAM], memory_order_relaxed);
}
/* A time for which a thread is to spin, and one between two looks, in any unit, as tuned. */
static inline uint64_t inv_tuned_spin(uint64_t usual)
{
    return usual * atomic_load_explicit(&inv_tuning.value[INV_TUNED_SPIN], memory_order_relaxed) / 100;
}
static inline int64_t inv_tuned_poll(int64_t usual)
{
    return usual * atomic_load_explicit(&inv_tuning.value[INV_TUNED_POLL], memory_order_relaxed) / 100;
}

/* The parameter may be tuned in this process, with `count` of 2 to 8 rising values, of which `usual` is one.
 * Only the first offer counts.  Any thread. */
void inv_tuning_offer(enum inv_tuned parameter, const int *values, unsigned count, int usual);
/* The same with percents of the usual value: INV_TUNED_SPIN or INV_TUNED_POLL. */
void inv_tuning_offer_percent(enum inv_tuned parameter);
/* The offer of the team is void: its size is the usual one for good.  Any thread. */
void inv_tuning_keep_team(void);

/* A sample has ended; `ns` nanoseconds is the mean time of its iterations.  kind: those of another kind cannot be
 * compared, and the search begins anew, a few times.  The thread that called MPI_Init, or the one whose regions
 * are timed. */
void inv_tuning_add(enum inv_iteration_source source, uint64_t kind, uint64_t ns);
/* The same in a rank that is not the first of its domain: takes the values over that the process in this slot of
 * the domain uses. */
void inv_tuning_follow(unsigned slot);

#endif
