/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * placement.c - from C and D to the next C.  Two passes: whoever has too many gives up
 * edges, preferably those beside somebody who has too few; then whoever has too few takes
 * free cores, preferably beside its own.
 */
#include "placement.h"

#include <stdbool.h>
#include <stdlib.h>

static unsigned count(const int *owner, unsigned ncores, int who)
{
    unsigned n = 0;
    for (unsigned c = 0; c < ncores; c++)
        n += owner[c] == who;
    return n;
}

static int owner_at(const int *owner, unsigned ncores, long core)
{
    return core < 0 || core >= (long)ncores ? RMD_NO_OWNER : owner[core];
}

/* How glad we are to see process `who` lose this core; higher is better. */
static int loss_score(const int *owner, unsigned ncores, unsigned core, int who, int keep,
                      const bool *hungry)
{
    int left = owner_at(owner, ncores, (long)core - 1);
    int right = owner_at(owner, ncores, (long)core + 1);
    int score = 0;
    if ((int)core == keep)
        score -= 100;
    score -= 4 * ((left == who) + (right == who)); /* inside of a range */
    if ((left >= 0 && hungry[left]) || (right >= 0 && hungry[right]))
        score += 2;
    else if ((core > 0 && left < 0) || (core + 1 < ncores && right < 0))
        score += 1; /* beside one that was given up before */
    return score;
}

static void shrink(int *owner, unsigned ncores, int who, unsigned surplus, int keep,
                   const bool *hungry)
{
    for (; surplus; surplus--) {
        int best = -1000;
        unsigned victim = 0;
        for (unsigned c = 0; c < ncores; c++) {
            if (owner[c] != who)
                continue;
            int score = loss_score(owner, ncores, c, who, keep, hungry);
            if (score >= best) { /* of equals the last: ranges grow upwards */
                best = score;
                victim = c;
            }
        }
        owner[victim] = RMD_NO_OWNER;
    }
}

/* First core of the longest run of free ones, -1 when there is none. */
static int roomiest(const int *owner, unsigned ncores)
{
    unsigned best = 0, run = 0;
    int at = -1;
    for (unsigned c = 0; c < ncores; c++) {
        run = owner[c] == RMD_NO_OWNER ? run + 1 : 0;
        if (run > best) {
            best = run;
            at = (int)(c + 1 - run);
        }
    }
    return at;
}

/* The free core that `who` should take next. */
static int next_core(const int *owner, unsigned ncores, int who, int wish)
{
    bool owns_any = false;
    for (unsigned c = 0; c < ncores; c++)
        owns_any |= owner[c] == who;
    for (unsigned c = 0; c < ncores && owns_any; c++) /* above its own before below */
        if (owner[c] == RMD_NO_OWNER && owner_at(owner, ncores, (long)c - 1) == who)
            return (int)c;
    for (unsigned c = 0; c < ncores && owns_any; c++)
        if (owner[c] == RMD_NO_OWNER && owner_at(owner, ncores, (long)c + 1) == who)
            return (int)c;
    if (!owns_any && wish >= 0 && wish < (int)ncores && owner[wish] == RMD_NO_OWNER)
        return wish;
    return roomiest(owner, ncores);
}

unsigned rmd_place(int *owner, unsigned ncores, const struct rmd_placed *procs, unsigned nprocs)
{
    int before[ncores];
    bool hungry[nprocs ? nprocs : 1];
    unsigned moved = 0;
    for (unsigned c = 0; c < ncores; c++)
        before[c] = owner[c];
    for (unsigned p = 0; p < nprocs; p++)
        hungry[p] = count(owner, ncores, (int)p) < procs[p].target;
    for (unsigned p = 0; p < nprocs; p++) {
        unsigned has = count(owner, ncores, (int)p);
        if (has > procs[p].target)
            shrink(owner, ncores, (int)p, has - procs[p].target, procs[p].keep, hungry);
    }
    for (unsigned p = 0; p < nprocs; p++) {
        unsigned has = count(owner, ncores, (int)p);
        for (; has < procs[p].target; has++) {
            int core = next_core(owner, ncores, (int)p, procs[p].wish);
            if (core < 0)
                break;
            owner[core] = (int)p;
        }
    }
    for (unsigned c = 0; c < ncores; c++)
        moved += before[c] != owner[c];
    return moved;
}

unsigned rmd_place_on(const struct rmd_machine *machine, int *owner, const int *holders,
                      const struct rmd_placed *procs, unsigned nprocs)
{
    (void)holders;
    return rmd_place(owner, machine->ncores, procs, nprocs);
}

unsigned long rmd_spread(const struct rmd_machine *m, const int *owner, unsigned nprocs)
{
    unsigned long spread = 0;
    int *last = malloc(((size_t)nprocs + 1) * sizeof *last);
    for (unsigned level = 0; last && level < RMD_LEVELS; level++) {
        int group = 0;
        for (unsigned p = 0; p < nprocs; p++)
            last[p] = -1;
        for (unsigned c = 0; c < m->ncores; c++) {
            group += c > 0 && (m->apart ? m->apart[c] : 1) > level;
            if (owner[c] < 0 || owner[c] >= (int)nprocs || last[owner[c]] == group)
                continue;
            last[owner[c]] = group;
            spread++;
        }
    }
    free(last);
    return spread;
}
