/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * energy.h - the energy of the CPU packages, and which process it is counted for.
 *
 * The packages count joules (powercap's RAPL zones; where there are none, hwmon's "Esocket" sensors,
 * which AMD's driver has).  No counter knows processes.  So at each look the energy since the last
 * one is divided in proportion to processor time: each process has its part of what all CPUs have
 * computed.  The part of programs that are not managed counts for no process; the energy of idle
 * cores is divided with that of the others.
 *
 * The caller holds the loop's turn (loop.h).
 */
#ifndef RMD_ENERGY_H
#define RMD_ENERGY_H

#include "libinvasive/table/protocol.h"
#include "rmd/host/sysfile.h"

#include <sys/types.h>

enum { RMD_ENERGY_COUNTERS = 16 };

/* The count of one process; in a list while the process is a member.  Zeros at first. */
struct rmd_energy_share {
    struct rmd_energy_share *next;
    pid_t pid;
    uint64_t energy_uj; /* microjoules, so far */
    uint64_t ran_ns;    /* processor time at the last look, */
    uint64_t recent_ns; /* and since the look before it */
};

/* Zeros at first: a machine without counters. */
struct rmd_energy {
    const char *root;
    unsigned cores;
    enum inv_energy state;
    unsigned count;
    struct rmd_energy_counter {
        struct rmd_sysfile file;
        uint64_t last, range; /* microjoules; a counter is less than its range.  0: unknown */
    } counter[RMD_ENERGY_COUNTERS];
    uint64_t looked_ns, busy_ns; /* time of the last look; all CPUs' busy time then */
    struct rmd_energy_share *first;
};

/* Finds the counters in files below `root`, which stays the caller's, on a machine with `cores`
 * cores. */
void rmd_energy_open(struct rmd_energy *energy, const char *root, unsigned cores);

/*
 * rmd_energy_join - from now on energy is counted for the process with this pid, which has had
 *                   share->energy_uj already.  *share stays where it is until rmd_energy_leave.
 * rmd_energy_sample - divides the energy since the last look.  At least once in the time that a
 *                   counter takes to wrap (minutes).  If a counter has vanished, no more is counted
 *                   from then on, and the log says so.
 * rmd_energy_leave - looks at the process for the last time.
 *   told_ns  for a process that has ended: its processor time by its own record, which is
 *            believed as far as it is possible.  (The record of a process that was killed has too
 *            little)
 */
void rmd_energy_join(struct rmd_energy *energy, struct rmd_energy_share *share, pid_t pid);
void rmd_energy_sample(struct rmd_energy *energy);
void rmd_energy_leave(struct rmd_energy *energy, struct rmd_energy_share *share, uint64_t told_ns);

#endif
