/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_policy.c - the policies and the placement on the command line, for test_policy.py and
 * test_policies.py: one question per line of stdin, one answer per line of stdout.
 *
 *   decide POLICY NCORES N LOSS {NEED}*N        -> N targets
 *   worth POLICY NCORES N LOSS COST_S WITHIN_S {NEED}*N {TARGET}*N  -> 0 or 1, and the gain
 *   limited POLICY NCORES N LOSS MOST {LAUNCH}*N {NEED}*N  -> the same, MOST cores for a launch
 *   prioritized POLICY NCORES N LOSS MOST {LAUNCH}*N {PRIORITY}*N {NEED}*N  -> the same, by priorities
 *     with NEED = MIN MAX OWNED WORKLOAD JOB DELIVERED ITERATION_S POINTS {CORES SPEEDUP}*POINTS,
 *     a graph being as it was announced, valid or not
 *   curve NCORES POINTS {CORES SPEEDUP}*POINTS  -> S(1) ... S(NCORES) as the policies see it
 *   policies                                    -> their names
 *
 *   equal|workload NCORES N  {MIN MAX OWNED WORKLOAD}*N   -> N targets
 *   throughput NCORES N  {MIN MAX OWNED WORKLOAD}*N  {POINTS {CORES SPEEDUP}*POINTS}*N
 *                                          -> N targets; -1 for a graph that is not valid
 *   worthwhile NCORES N  {MIN MAX OWNED WORKLOAD}*N  {TARGET}*N   -> 0 or 1
 *   partition NCORES N  {LOAD CORE}*N          -> N cores; -1 in and out: none
 *   place NCORES N  {TARGET MAIN PREFERRED}*N  {OWNER}*NCORES  -> MOVED and NCORES owners
 */
#include "rmd/policy/curve.h"
#include "rmd/policy/limit.h"
#include "rmd/placement/partition.h"
#include "rmd/placement/placement.h"
#include "rmd/policy/policy.h"
#include "libinvasive/table/scalability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static double next(void)
{
    double x;
    if (scanf("%lf", &x) != 1)
        exit(2);
    return x;
}

/* False when it is not valid. */
static bool read_graph(struct inv_scalability *s)
{
    unsigned points = (unsigned)next();
    *s = (struct inv_scalability){0};
    for (unsigned i = 0; i < points && i < INV_SCALABILITY_POINTS; i++) {
        s->point[i].cores = (unsigned)next();
        s->point[i].speedup = (float)next();
    }
    return inv_scalability_valid(s);
}

/* What the snapshots of all questions have in common. */
static struct rmd_snapshot snapshot_of(unsigned ncores, unsigned n)
{
    static struct rmd_need needs[MOST];
    static char arena[RMD_ARENA_BYTES(MOST)] __attribute__((aligned(16)));
    memset(needs, 0, sizeof needs);
    memset(arena, 0x5a, RMD_ARENA_BYTES(n)); /* no data of a former call */
    return (struct rmd_snapshot){ncores, n, needs, arena, RMD_TUNING, false};
}

static void read_range(struct rmd_need *need)
{
    need->min_cores = (unsigned)next();
    need->max_cores = (unsigned)next();
    need->owned = (unsigned)next();
    need->workload = next();
}

static void print_targets(const unsigned *target, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        printf("%u ", target[i]);
    printf("\n");
}

static void ask_policy(const char *what, unsigned ncores, unsigned n)
{
    static unsigned target[MOST];
    const struct rmd_policy *policy = rmd_policy_named(what);
    struct rmd_snapshot s = snapshot_of(ncores, n);
    struct rmd_need *needs = (struct rmd_need *)s.needs;
    for (unsigned i = 0; i < n; i++)
        read_range(&needs[i]);
    bool valid = true;
    for (unsigned i = 0; what[0] == 't' && i < n; i++)
        valid &= read_graph(&needs[i].scalability);
    if (!valid) {
        printf("-1\n");
        return;
    }
    if (!policy) { /* worthwhile */
        for (unsigned i = 0; i < n; i++)
            target[i] = (unsigned)next();
        printf("%d\n", rmd_policy_worthwhile(&rmd_policies[0], &s, target));
        return;
    }
    policy->decide(&s, target);
    print_targets(target, n);
}

/* What decide has left in the arena makes gain faster, and changes no result. */
static void compare_gains(const struct rmd_policy *policy, struct rmd_snapshot *s,
                          const unsigned *target)
{
    s->decided = true;
    double kept = policy->gain(s, target);
    memset(s->arena, 0x5a, RMD_ARENA_BYTES(s->nprocs));
    s->decided = false;
    double fresh = policy->gain(s, target);
    if (memcmp(&kept, &fresh, sizeof kept) != 0) {
        printf("gain %g after decide, %g by itself\n", kept, fresh);
        exit(3);
    }
}

/* decide, worth, limited and prioritized */
static void ask_named(const char *what)
{
    static unsigned target[MOST];
    static uint64_t launch[MOST];
    bool worth = what[0] == 'w';
    unsigned most = 0;
    char name[32];
    if (scanf("%31s", name) != 1 || !rmd_policy_named(name))
        exit(2);
    unsigned ncores = (unsigned)next(), n = (unsigned)next();
    if (ncores < 1 || n > MOST)
        exit(2);
    struct rmd_snapshot s = snapshot_of(ncores, n);
    struct rmd_need *needs = (struct rmd_need *)s.needs;
    s.tuning.energy_loss = next();
    if (worth) {
        s.tuning.move_cost_s = next();
        s.tuning.within_s = next();
    }
    if (what[0] == 'l' || what[0] == 'p') {
        most = (unsigned)next();
        for (unsigned i = 0; i < n; i++)
            launch[i] = (uint64_t)next();
    }
    unsigned priority[MOST];
    for (unsigned i = 0; i < n; i++)
        priority[i] = what[0] == 'p' ? (unsigned)next() : RMD_PRIORITY;
    for (unsigned i = 0; i < n; i++) {
        read_range(&needs[i]);
        needs[i].priority = priority[i];
        needs[i].job = (unsigned)next();
        needs[i].delivered = next();
        needs[i].iteration_s = next();
        needs[i].iteration_cores = needs[i].owned;
        read_graph(&needs[i].scalability);
    }
    if (!worth) {
        rmd_prioritized(rmd_policy_named(name), &s, launch, most, target);
        if (what[0] == 'd')
            compare_gains(rmd_policy_named(name), &s, target);
        print_targets(target, n);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        target[i] = (unsigned)next();
    printf("%d %.9g\n", rmd_policy_worthwhile(rmd_policy_named(name), &s, target),
           rmd_policy_named(name)->gain(&s, target));
}

static void ask_curve(void)
{
    struct inv_scalability graph;
    unsigned ncores = (unsigned)next();
    read_graph(&graph);
    struct rmd_curve curve;
    rmd_curve_of(&graph, &curve);
    for (unsigned c = 1; c <= ncores; c++)
        printf("%.9g ", rmd_curve_at(&curve, c));
    printf("\n");
}

static void ask_names(void)
{
    for (const struct rmd_policy *p = rmd_policies; p->name; p++)
        printf("%s ", p->name);
    printf("\n");
}

static void ask_placement(unsigned ncores, unsigned n)
{
    static struct rmd_placed procs[MOST];
    static int owner[MOST];
    for (unsigned i = 0; i < n; i++) {
        procs[i].target = (unsigned)next();
        procs[i].main_core = (int)next();
        procs[i].preferred = (int)next();
    }
    for (unsigned c = 0; c < ncores; c++)
        owner[c] = (int)next();
    const struct rmd_machine flat = {ncores, NULL};
    printf("%u ", rmd_place_on(&flat, owner, NULL, procs, n));
    for (unsigned c = 0; c < ncores; c++)
        printf("%d ", owner[c]);
    printf("\n");
}

static void ask_partition(unsigned ncores, unsigned n)
{
    static double load[MOST];
    static int core[MOST];
    static unsigned order[MOST];
    for (unsigned i = 0; i < n; i++) {
        load[i] = next();
        core[i] = (int)next();
    }
    rmd_partition(load, n, ncores, core, order);
    for (unsigned i = 0; i < n; i++)
        printf("%d ", core[i]);
    printf("\n");
}

/* A question of which we know the number of cores and processes. */
static void ask_sized(const char *what)
{
    unsigned ncores = (unsigned)next(), n = (unsigned)next();
    if (ncores < 1 || ncores > MOST || n > MOST)
        exit(2);
    if (!strcmp(what, "place"))
        ask_placement(ncores, n);
    else if (!strcmp(what, "partition"))
        ask_partition(ncores, n);
    else
        ask_policy(what, ncores, n);
}

int main(void)
{
    char what[16]; /* the longest is throughput */
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    while (scanf("%15s", what) == 1) {
        if (!strcmp(what, "decide") || !strcmp(what, "worth") || !strcmp(what, "limited") ||
            !strcmp(what, "prioritized"))
            ask_named(what);
        else if (!strcmp(what, "curve"))
            ask_curve();
        else if (!strcmp(what, "policies"))
            ask_names();
        else
            ask_sized(what);
    }
    return 0;
}
