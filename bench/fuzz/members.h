/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * members.h - the domain of those fuzzers that have members write into its table: eight emulated
 * cores and two members.  Whatever cannot be set up aborts.
 */
#ifndef FUZZ_MEMBERS_H
#define FUZZ_MEMBERS_H

#include "rmd/domain/domain_inside.h"
#include "fuzz.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CORES = 8, MEMBERS = 2 };

/* Members need a process each that lives: two pids of one process will do, the second is our
 * parent's. */
static inline pid_t fuzz_member_pid(unsigned i) { return i ? getppid() : getpid(); }

/* As one of so many ranks. */
static inline void fuzz_member_join(struct rmd_domain *d, unsigned i, int ranks)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    int pidfd = (int)syscall(SYS_pidfd_open, fuzz_member_pid(i), 0);
    request.rank = (int32_t)i;
    request.size = request.local_size = ranks;
    if (pidfd < 0 || rmd_domain_join(d, fuzz_member_pid(i), pidfd, &request) < 0)
        abort();
}

/* d is zeros but for what the caller has chosen.  Its cores are not there yet. */
static inline void fuzz_domain_open(struct rmd_domain *d)
{
    static struct inv_topology topology;
    static struct rmd_shared shared = {.rates.persons = &shared.persons};
    if (!topology.ncores && inv_topology_emulate(&topology, "8", false))
        abort();
    d->topology = topology;
    d->shared = &shared;
    d->rules.policy = rmd_policy_named("workload");
    d->rules.tuning = (struct rmd_tuning)RMD_TUNING;
    d->rules.reclaim_bound_us = 5000;
    if (rmd_domain_open(d))
        abort();
}

static inline void fuzz_domain_admit(struct rmd_domain *d)
{
    for (unsigned c = 0; c < CORES; c++)
        rmd_domain_admit(d, c);
}

/* Parts of the table, so that few inputs are lost in bytes that rmd does not read. */
static inline void fuzz_write_table(struct fuzz_input *in, struct inv_table *t)
{
    static const size_t starts[] = {0, INV_CORES_OFFSET, INV_SLOTS_OFFSET,
                                    INV_SLOTS_OFFSET + sizeof(struct inv_slot),
                                    INV_RECORDS_OFFSET, INV_ARRIVAL_OFFSET};
    size_t start = starts[fuzz_number(in, 1) % (sizeof starts / sizeof *starts)];
    size_t offset = fuzz_number(in, 2), bytes = fuzz_number(in, 1) % 64;
    if (start + offset + bytes <= INV_TABLE_BYTES)
        fuzz_take(in, (char *)t + start + offset, bytes);
}

#endif
