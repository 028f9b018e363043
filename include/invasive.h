/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * invasive.h - the public interface: claims on cores, and constraints on them.
 *
 * A *claim* is the set of cores that this process may compute on now.  A program
 * never has to call any of this: under `invade` the OpenMP runtime and the MPI shim
 * do.  A program that knows its own needs better than they can measure them
 * announces a range or a workload here; the resource manager (rmd) then moves core
 * ownership, and the next parallel regions run on the cores of the new claim.
 *
 * The terms are those of invasive computing: *invade* asks for cores under
 * constraints, *infect* computes on them (here: an OpenMP parallel region), and
 * *retreat* gives them up.  (Schreiber et al., "Invasive Compute Balancing for
 * Applications with Shared and Hybrid Parallelization", sections 2 and 5.)
 *
 * Without a resource manager every function answers as if the process owned all
 * the cores of its affinity mask; nothing fails because of us.
 *
 * Thread safety: every function may be called by any thread at any time, except
 * from a signal handler.
 */
#ifndef INVASIVE_H
#define INVASIVE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A scalability graph: S(c) = T(1) / T(c), how much faster the process's work is done on c
 * cores than on one.  S is linear between the points, from S(0) = 0 to the first one, and on
 * the line of the last two points beyond the last (of the origin and the point, if it is the
 * only one).  Give two last points of the same speed-up where more cores bring nothing.
 * Points may be as noisy as measurements are: to the resource manager S is the smallest monotone
 * and concave function that is nowhere below them, and S(c) <= c.
 */
enum { INV_SCALABILITY_POINTS = 8 };
struct inv_scalability {
    struct inv_scalability_point {
        unsigned cores; /* larger than that of the point before; 0: no point, nor any after it */
        float speedup;  /* S(cores) > 0 */
    } point[INV_SCALABILITY_POINTS];
};

/* What a process tells the resource manager about its needs.  Zero-initialise it,
 * then set what you know: {0} means "at least one core, as many as there are, no
 * workload known". */
struct inv_constraint {
    unsigned min_cores; /* range: at least this many cores; 0 is taken as 1 */
    unsigned max_cores; /* range: at most this many cores; 0 means no upper limit */
    double workload;    /* W >= 0, any unit that is the same in all processes of the
                           job (cells, core-seconds per iteration, ...); cores are
                           shared out in proportion to it.  0 means unknown.  */
    struct inv_scalability scalability; /* no point: unknown.  What looks at it: rmd-policies(7) */
    double iteration_s; /* computing time of the latest iterations, in seconds, waiting left out; 0
                           means unknown.  With it policy `interference` sees which process has
                           cores that deliver less: its iterations take longer than the
                           others' for the same W.  Give it with a W that is counted in the
                           program's own units, not with one that is measured as time */
};

/* A snapshot of the claim at the time of the call. */
struct inv_claim {
    unsigned owned_cores; /* cores that the resource manager has given to us; 0 in a domain
                             with more processes than cores, where no process owns one */
    unsigned held_cores;  /* cores that we compute on now, lent ones left out and
                             borrowed ones counted */
    bool managed;         /* false: no resource manager; both counts are then the
                             number of cores in the affinity mask */
};

/* How invade and reinvade wait. */
enum inv_blocking {
    INV_NONBLOCKING = 0, /* announce the constraint and return at once */
    INV_BLOCKING = 1     /* return when the resource manager has decided on it */
};

/*
 * inv_invade - ask for cores under a constraint; joins the domain if this process
 * has not done so yet.
 *
 * constraint  in; may be NULL for {0}.  Copied.
 * blocking    INV_BLOCKING waits until rmd has answered, at most one second; awake for the
 *             first 100 us, which is longer than an answer usually takes.
 * claim       out; may be NULL.  On any return it holds the current claim.
 *
 * Returns 0; or -1 with errno set, the previous constraint staying in force:
 *   EINVAL     min_cores > max_cores (and max_cores != 0), or min_cores larger than the
 *              domain, or workload or iteration_s negative or not finite, or points of the
 *              scalability graph not in the order of cores, or without a speed-up > 0
 *   ETIMEDOUT  blocking, and no decision within one second: the request stays announced
 */
int inv_invade(const struct inv_constraint *constraint, enum inv_blocking blocking,
               struct inv_claim *claim);

/*
 * inv_reinvade - the same with new constraints, for a process that has invaded.
 * A reinvade that changes nothing costs no system call and no shared write, so it
 * may be called in every time step.  Parameters, results and errors as inv_invade.
 */
int inv_reinvade(const struct inv_constraint *constraint, enum inv_blocking blocking,
                 struct inv_claim *claim);

/*
 * inv_retreat - replace the constraint by "one core is enough, no workload known", without
 * blocking, and stop asking for cores.  The calling thread goes on computing.  The OpenMP
 * threads of a region that is running leave the other cores after their current implicit
 * task when another process asks for them; the next region asks for cores again.  Returns 0,
 * always.
 */
int inv_retreat(void);

/*
 * inv_lend - the calling thread is about to wait where the MPI shim does not see it: for a file, a child, a
 * device, another thread.  Lends the core that the thread holds, at once.  The lend is over
 *   - with inv_reclaim,
 *   - when the thread begins a parallel region, or has waited in OpenMP (at a barrier, for a lock) or
 *     in MPI: it has a core again then,
 *   - with the thread.
 * Until then the thread runs where the kernel puts it, beside those that hold cores: it may do what
 * belongs to the wait, and should not compute.  Inside a parallel region implicit tasks and tasks of
 * the region that lack a core come first; then other processes.  Cores of the process's other threads
 * stay as they are: idle workers of OpenMP give theirs up by themselves.
 *
 * Returns true: the core is lent.  False, and nothing has changed: the thread holds none (there is no
 * resource manager, or the process is no member of the domain yet, or the thread is one that the
 * kernel places), or has lent it already; calls do not nest.
 */
bool inv_lend(void);

/*
 * inv_reclaim - has a core for the calling thread again, which has lent its own: one of the process's own
 * cores if it has any, within the reclaim bound (rmd(8)); the thread holds it on return.  Waits awake
 * for some microseconds, then asleep.
 *
 * Returns true: the thread had lent its core, and holds one.  False: it had lent none (any more), or
 * the process owns no core and got none within the bound; the thread then goes on without.
 */
bool inv_reclaim(void);

/* inv_claim_now - the current claim, without asking for anything. */
struct inv_claim inv_claim_now(void);

/*
 * inv_announce_workload - shorthand for an inv_reinvade that changes the workload only,
 * without blocking; the range of cores stays.  Joins the domain if need be.  Returns 0, or
 * -1 with errno EINVAL when the workload is negative or not finite.
 */
int inv_announce_workload(double workload);

/*
 * inv_announce_scalability - the same for the scalability graph; the rest of the constraint
 * stays.  NULL: not known any more.  Returns 0, or -1 with errno EINVAL when the graph is not
 * as struct inv_scalability says.
 */
int inv_announce_scalability(const struct inv_scalability *scalability);

/*
 * inv_control_point - a parameter of the program whose best value is found while the program runs: a block
 * size, a number of pipeline stages, a threshold.  Call it once an iteration, where the iteration begins,
 * and compute the iteration with *value.  The time from call to call is that of the iteration.
 *
 *     int block = 64;
 *     for (int step = 0; step < steps; step++) {
 *         inv_control_point("block", 8, 1024, &block);
 *         advance(field, block);
 *     }
 *
 * name   what reports call it: 1 to 47 bytes, the same in each call; copied
 * low, high  the least and the largest value that are allowed, low <= high.  Another range than in the
 *        call before begins a new search
 * value  in: at the first call the program's own value, which is brought into the range; later what the
 *        call before has left.  out: the value for the iteration that begins
 *
 * Iterations must do the same amount of work, but for some; what changes for good begins a new search.
 * Results must be right with any value of the range.  A value is tried in 6 to 21 iterations, and some 5
 * to 15 values are; the value that is chosen is the program's own or a faster one, as
 * far as noise lets that be told.  With two
 * points in one loop the times of one are disturbed by the other: call the second when the first has
 * settled, or give each a loop of its own.
 * Each process finds its own value.  Where the ranks of a job need the same, let one rank call and
 * broadcast its value.  `invade --report` tells what was tried and chosen.
 * No resource manager is needed.  With INVASIVE=off *value stays as it is.
 *
 * Returns 0; or -1 with errno set, *value as before, and a line on stderr, once in a process:
 *   EINVAL  low > high, or no name, or one that is too long, or value is NULL
 *   ENOSPC  there are 8 control points already, those of invade --tune among them
 *   ENOMEM  no memory
 * While another thread is in a call, calls leave *value as it is.
 * Method: Acun et al., "Parallel Programming with Migratable Objects: Charm++ in Practice", SC 2014,
 * doi:10.1109/SC.2014.58, section III.E; the search is hill climbing (libinvasive/base/tune.h).
 */
int inv_control_point(const char *name, int low, int high, int *value);

/*
 * inv_core_speed - the speed of the core that the calling thread holds now, as a part of the speed of the
 * machine's fastest cores, greater than 0, at most 1.  1 where all cores are alike, where the thread holds
 * no certain core, and in an unmanaged process.  It is what the machine says of its cores (rmd(8)); what
 * other programs take of the core does not count.
 */
double inv_core_speed(void);

/* inv_version - "major.minor.patch" of the library; static storage. */
const char *inv_version(void);

#ifdef __cplusplus
}
#endif

/* OpenMP tasks that wait for MPI requests: for a program that has included mpi.h before. */
#if defined(MPI_VERSION) && defined(_OPENMP) && (defined(__clang__) || __GNUC__ >= 11)
#include "invasive-tasks.h"
#endif
#endif /* INVASIVE_H */
