/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_placement.c - the placement and the machine's tree on the command line, for
 * test_placement.py: one question per line of stdin, one answer per line of stdout.
 *
 *   machine each|core|first DESCRIPTION     -> apart of each core; -1 when it is none
 *   simulated DESCRIPTION                   -> the same as rmctl simulate reads it
 *   place NCORES N  {APART}*NCORES  {OWNER}*NCORES  {HOLDER}*NCORES  {TARGET MAIN PREFERRED}*N
 *                                           -> MOVED SPREAD and NCORES owners
 * If the first HOLDER is -2 they are not known.
 */
#define _DEFAULT_SOURCE
#include "rmd/placement/placement.h"
#include "tools/rmctl/simulate/simulate.h"
#include "libinvasive/table/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 17 };

static int next(void)
{
    int x;
    if (scanf("%d", &x) != 1)
        exit(2);
    return x;
}

static void read_numbers(int *to, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = next();
}

static void ask_simulated(void)
{
    struct rmd_machine m;
    char description[200], why[200];
    if (scanf(" %199[^\n]", description) != 1)
        exit(2);
    m = (struct rmd_machine){0};
    if (!sim_machine_parse(description, &m, why))
        printf("-1");
    for (unsigned c = 0; c < m.ncores; c++)
        printf("%d ", m.apart[c]);
    printf("\n");
    free((void *)m.apart);
}

static void ask_machine(void)
{
    static struct inv_topology t;
    char smt[16], description[200];
    if (scanf("%15s %199[^\n]", smt, description) != 2)
        exit(2);
    if (inv_topology_emulate(&t, description, !strcmp(smt, "first")))
        printf("-1");
    else
        for (unsigned c = 0; c < t.ncores; c++)
            printf("%d ", t.apart[c]);
    printf("\n");
}

/* How far the processes are spread over the machine: for each process the number of physical cores, caches,
 * NUMA nodes and packages of which it has a core, added up. */
static unsigned long spread_of(const struct rmd_machine *m, const int *owner, unsigned nprocs)
{
    unsigned long spread = 0;
    static int last[MOST];
    for (unsigned level = 0; level < RMD_LEVELS; level++) {
        int group = 0;
        for (unsigned p = 0; p < nprocs; p++)
            last[p] = -1;
        for (unsigned c = 0; c < m->ncores; c++) {
            group += c > 0 && m->apart[c] > level;
            if (owner[c] < 0 || owner[c] >= (int)nprocs || last[owner[c]] == group)
                continue;
            last[owner[c]] = group;
            spread++;
        }
    }
    return spread;
}

static void ask_placement(void)
{
    static struct rmd_placed procs[MOST];
    static unsigned char apart[MOST];
    static int owner[MOST], holders[MOST];
    unsigned ncores = (unsigned)next(), n = (unsigned)next();
    if (ncores > MOST || n > MOST)
        exit(2);
    for (unsigned c = 0; c < ncores; c++)
        apart[c] = (unsigned char)next();
    read_numbers(owner, ncores);
    read_numbers(holders, ncores);
    for (unsigned i = 0; i < n; i++) {
        procs[i].target = (unsigned)next();
        procs[i].main_core = next();
        procs[i].preferred = next();
    }
    struct rmd_machine machine = {ncores, apart};
    unsigned moved = rmd_place_on(&machine, owner, holders[0] == -2 ? NULL : holders, procs, n);
    printf("%u %lu ", moved, spread_of(&machine, owner, n));
    for (unsigned c = 0; c < ncores; c++)
        printf("%d ", owner[c]);
    printf("\n");
}

int main(void)
{
    char what[16];
    setlinebuf(stdout);
    while (scanf("%15s", what) == 1)
        if (!strcmp(what, "machine"))
            ask_machine();
        else if (!strcmp(what, "simulated"))
            ask_simulated();
        else
            ask_placement();
    return 0;
}
