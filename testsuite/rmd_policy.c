/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_policy.c - the policies and the placement on the command line, for test_rmd_policy.py:
 * one question per line of stdin, one answer per line of stdout.
 *
 *   equal|workload NCORES N  {MIN MAX OWNED WORKLOAD}*N   -> N targets
 *   throughput NCORES N  {MIN MAX OWNED WORKLOAD}*N  {POINTS {CORES SPEEDUP}*POINTS}*N
 *                                          -> N targets; -1 for a graph that is not valid
 *   worthwhile NCORES N  {MIN MAX OWNED WORKLOAD}*N  {TARGET}*N   -> 0 or 1
 *   place NCORES N  {TARGET KEEP WISH}*N  {OWNER}*NCORES  -> MOVED and NCORES owners
 */
#include "placement.h"
#include "policy.h"
#include "scalability.h"

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

static rmd_policy *policy_named(const char *what)
{
    return what[0] == 'e' ? rmd_policy_equal
           : what[0] == 't' ? rmd_policy_throughput
                            : rmd_policy_workload;
}

static void ask_policy(const char *what, unsigned ncores, unsigned n)
{
    static struct rmd_need needs[MOST];
    static unsigned target[MOST];
    struct rmd_snapshot s = {ncores, n, needs};
    for (unsigned i = 0; i < n; i++) {
        needs[i].min_cores = (unsigned)next();
        needs[i].max_cores = (unsigned)next();
        needs[i].owned = (unsigned)next();
        needs[i].workload = next();
        needs[i].scalability = (struct inv_scalability){0};
    }
    bool valid = true;
    for (unsigned i = 0; what[0] == 't' && i < n; i++)
        valid &= read_graph(&needs[i].scalability);
    if (!valid) {
        printf("-1\n");
        return;
    }
    if (!strcmp(what, "worthwhile")) {
        for (unsigned i = 0; i < n; i++)
            target[i] = (unsigned)next();
        printf("%d\n", rmd_policy_worthwhile(&s, target));
        return;
    }
    policy_named(what)(&s, target);
    for (unsigned i = 0; i < n; i++)
        printf("%u ", target[i]);
    printf("\n");
}

static void ask_placement(unsigned ncores, unsigned n)
{
    static struct rmd_placed procs[MOST];
    static int owner[MOST];
    for (unsigned i = 0; i < n; i++) {
        procs[i].target = (unsigned)next();
        procs[i].keep = (int)next();
        procs[i].wish = (int)next();
    }
    for (unsigned c = 0; c < ncores; c++)
        owner[c] = (int)next();
    printf("%u ", rmd_place(owner, ncores, procs, n));
    for (unsigned c = 0; c < ncores; c++)
        printf("%d ", owner[c]);
    printf("\n");
}

int main(void)
{
    char what[16]; /* the longest is throughput */
    while (scanf("%15s", what) == 1) {
        unsigned ncores = (unsigned)next(), n = (unsigned)next();
        if (ncores < 1 || ncores > MOST || n > MOST)
            return 2;
        if (what[0] == 'p')
            ask_placement(ncores, n);
        else
            ask_policy(what, ncores, n);
    }
    return 0;
}
