/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * decide.c - the time of one decision of rmd: policy, whether it is worthwhile, placement.
 *
 *   decide POLICY PROCESSES CORES SECONDS -> "us_per_decision X", of which the policy has taken
 *   "us_policy Y" and the placement the rest, and "moved_per_decision Z"
 *
 * The machine has packages of 2 NUMA nodes, 8 caches, 64 cores and 128 threads.  Processes are the
 * ranks of jobs of four, with graphs of four points, and ranges for some.
 * Before each decision every workload changes, and every tenth graph, outside of the time.
 * Medians of all decisions in SECONDS in which cores moved, in processor time: a decision is made
 * by one thread that waits for nothing, and what others do to it meanwhile is not its cost.
 */
#define _GNU_SOURCE
#include "rmd/placement/placement.h"
#include "rmd/policy/policy.h"
#include "bench/two.h"

enum { MOST = 100000 }; /* decisions */

static uint64_t seed = 88172645463325252u;

/* [0, 1) (xorshift64) */
static double chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

/* Processor time of the thread. */
static double used_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        two_fail("decide");
    return p;
}

/* Perfect at first, then worse and worse. */
static struct inv_scalability some_graph(unsigned share)
{
    struct inv_scalability g = {0};
    double speed = 0, slope = 1;
    unsigned cores = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned more = 1 + (unsigned)(chance() * share);
        cores += more;
        speed += slope * more;
        g.point[i].cores = cores;
        g.point[i].speedup = (float)speed;
        slope *= 0.3 + 0.6 * chance();
    }
    return g;
}

static void make_needs(struct rmd_need *needs, unsigned nprocs, unsigned ncores)
{
    unsigned share = ncores / nprocs;
    for (unsigned i = 0; i < nprocs; i++)
        needs[i] = (struct rmd_need){.max_cores = chance() < 0.1 ? 2 * share : 0,
                                     .min_cores = chance() < 0.1 ? 1 + share / 2 : 0,
                                     .job = i / 4,
                                     .workload = 0.5 + chance(),
                                     .delivered = chance() < 0.1 ? 0.8 : 1,
                                     .scalability = some_graph(share)};
}

struct world {
    struct rmd_machine machine;
    struct rmd_snapshot snapshot;
    struct rmd_need *needs;
    unsigned *target;
    struct rmd_placed *placed;
    int *owner;
};

struct cost {
    double policy_us, all_us;
    unsigned moved; /* cores */
};

static struct cost decide(struct world *w, const struct rmd_policy *policy)
{
    double start = used_us();
    struct cost cost = {0};
    w->snapshot.decided = false;
    policy->decide(&w->snapshot, w->target);
    w->snapshot.decided = true; /* as rmd/domain/divide.c */
    bool worthwhile = rmd_policy_worthwhile(policy, &w->snapshot, w->target);
    cost.policy_us = used_us() - start;
    for (unsigned i = 0; worthwhile && i < w->snapshot.nprocs; i++)
        w->placed[i] =
            (struct rmd_placed){.target = w->target[i], .main_core = -1, .preferred = -1};
    if (worthwhile)
        cost.moved = rmd_place_on(&w->machine, w->owner, NULL, w->placed, w->snapshot.nprocs);
    cost.all_us = used_us() - start;
    return cost;
}

/* Two threads in a core, 8 cores in a cache, 4 caches in a NUMA node, 2 of those in a package. */
static struct rmd_machine some_machine(unsigned ncores)
{
    unsigned char *apart = allocate(ncores, 1);
    for (unsigned c = 0; c < ncores; c++)
        apart[c] = (unsigned char)((c % 2 == 0) + (c % 16 == 0) + (c % 64 == 0) + (c % 128 == 0));
    return (struct rmd_machine){ncores, apart};
}

static void change(struct world *w)
{
    for (unsigned i = 0; i < w->snapshot.nprocs; i++) {
        w->needs[i].owned = 0;
        w->needs[i].workload = 0.3 + chance();
        if (chance() < 0.1)
            w->needs[i].scalability = some_graph(w->snapshot.ncores / w->snapshot.nprocs);
    }
    for (unsigned c = 0; c < w->snapshot.ncores; c++)
        if (w->owner[c] != RMD_NO_OWNER)
            w->needs[w->owner[c]].owned++;
}

int main(int argc, char **argv)
{
    const struct rmd_policy *policy = argc == 5 ? rmd_policy_named(argv[1]) : NULL;
    if (!policy) {
        fprintf(stderr, "usage: decide %s PROCESSES CORES SECONDS\n", rmd_policy_names().text);
        return 2;
    }
    unsigned nprocs = (unsigned)atoi(argv[2]), ncores = (unsigned)atoi(argv[3]);
    double *all = allocate(MOST, sizeof *all), *decided = allocate(MOST, sizeof *decided);
    struct world w = {.machine = some_machine(ncores),
                      .needs = allocate(nprocs, sizeof *w.needs),
                      .target = allocate(nprocs, sizeof *w.target),
                      .placed = allocate(nprocs, sizeof *w.placed),
                      .owner = allocate(ncores, sizeof *w.owner)};
    w.snapshot = (struct rmd_snapshot){ncores, nprocs, w.needs, allocate(1, RMD_ARENA_BYTES(nprocs)),
                                       RMD_TUNING, false};
    make_needs(w.needs, nprocs, ncores);
    for (unsigned c = 0; c < ncores; c++)
        w.owner[c] = RMD_NO_OWNER;
    decide(&w, policy); /* everything is given out for the first time */
    uint64_t end = two_now_ns() + (uint64_t)(atof(argv[4]) * 1e9);
    double moved = 0;
    unsigned n = 0;
    while (n < MOST && (two_now_ns() < end || n < 3)) {
        change(&w);
        struct cost cost = decide(&w, policy);
        all[n] = cost.all_us;
        decided[n] = cost.policy_us;
        moved += cost.moved;
        /* if nothing ever moves, that is what it costs */
        n += cost.moved > 0 || two_now_ns() > end;
    }
    printf("us_per_decision %.3f\nus_policy %.3f\nmoved_per_decision %.1f\n",
           two_quantile(all, n, 0.5), two_quantile(decided, n, 0.5), moved / n);
    return 0;
}
