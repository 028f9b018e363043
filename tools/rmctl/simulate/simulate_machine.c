/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_machine.c - parses a machine in hwloc's words for synthetic ones.  So the machine may
 * have more cores than a core table, and rmctl needs no hwloc.  The distance of two neighbouring
 * cores is the level of the innermost group that has only one of them, as in
 * libinvasive/table/topology.c.
 */
#define _GNU_SOURCE
#include "tools/rmctl/simulate/simulate.h"
#include "libinvasive/table/speeds.h"
#include "libinvasive/table/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEVELS = 12, MOST_CORES = 1 << 20, L2 = -2 };

/* How far apart two cores in different objects of these kinds are (placement.h). */
static const struct {
    const char *name;
    int apart; /* -1: says nothing; L2: a cache where there is no l3 */
} kinds[] = {
    {"package", 4}, {"socket", 4}, {"numanode", 3}, {"numa", 3}, {"node", 3}, {"l3cache", 2},
    {"l3", 2},      {"core", 1},   {"pu", 0},         {"l2cache", L2},  {"l2", L2},
    {"group", -1},  {"die", -1},   {"l1cache", -1},   {"l1", -1},       {NULL, 0}};

struct level {
    int apart;
    unsigned count;
};

static bool find_kind(const char *word, size_t length, int *apart)
{
    for (unsigned k = 0; kinds[k].name; k++)
        if (strlen(kinds[k].name) == length && !strncasecmp(kinds[k].name, word, length)) {
            *apart = kinds[k].apart;
            return true;
        }
    return false;
}

/* "KIND:COUNT"; *text is moved behind it. */
static bool parse_level(const char **text, struct level *level, char why[200])
{
    const char *word = *text, *colon = strchr(word, ':');
    size_t length = strcspn(word, " ");
    if (!colon || colon > word + length ||
        !find_kind(word, (size_t)(colon - word), &level->apart)) {
        snprintf(why, 200,
                 "'%.*s' is not KIND:COUNT with package, numa, l3, core or pu as KIND",
                 (int)(length < 60 ? length : 60), word);
        return false;
    }
    char *end;
    unsigned long count = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || (*end && *end != ' ') || !count || count > MOST_CORES) {
        snprintf(why, 200, "'%.*s': a count is a number from 1 to %d",
                 (int)(length < 60 ? length : 60), word, MOST_CORES);
        return false;
    }
    level->count = (unsigned)count;
    *text = end + strspn(end, " ");
    return true;
}

/* Only the largest caches count; if there are no cores, the PUs count as cores. */
static void settle_kinds(struct level *level, unsigned nlevels)
{
    bool l3 = false, core = false;
    for (unsigned l = 0; l < nlevels; l++) {
        l3 |= level[l].apart == 2;
        core |= level[l].apart == 1;
    }
    for (unsigned l = 0; l < nlevels; l++)
        if (level[l].apart == L2)
            level[l].apart = l3 ? -1 : 2;
        else if (level[l].apart == 0 && !core)
            level[l].apart = 1;
}

static unsigned char *make_distances(const struct level *level, unsigned nlevels, unsigned ncores)
{
    unsigned char *apart = sim_allocate(ncores, 1);
    unsigned inside = ncores; /* cores in one group of the level */
    for (unsigned l = 0; l < nlevels; l++) {
        inside /= level[l].count;
        for (unsigned c = 0; level[l].apart >= 0 && c < ncores; c += inside)
            if (apart[c] < level[l].apart)
                apart[c] = (unsigned char)level[l].apart;
    }
    apart[0] = RMD_LEVELS;
    return apart;
}

bool sim_machine_parse(const char *text, struct rmd_machine *machine, char why[200])
{
    struct level level[LEVELS + 1];
    unsigned nlevels = 0;
    unsigned long ncores = 1;
    text += strspn(text, " ");
    if (*text >= '0' && *text <= '9') { /* so many cores, all in one cache; maybe with speeds */
        ncores = inv_speeds_parse(text, MOST_CORES, NULL);
        level[nlevels++] = (struct level){1, (unsigned)ncores};
        if (!ncores) {
            snprintf(why, 200, "'%.60s' is not a number of cores from 1 to %d, nor numbers with speeds from "
                     "0.01 to 1, such as 4x1.0,4x0.6", text, MOST_CORES);
            return false;
        }
    } else {
        while (*text && nlevels < LEVELS && ncores <= MOST_CORES) {
            if (!parse_level(&text, &level[nlevels], why))
                return false;
            ncores *= level[nlevels++].count;
        }
        if (*text || !nlevels || ncores > MOST_CORES) {
            snprintf(why, 200, "a machine has 1 to %d cores in at most %d levels", MOST_CORES,
                     LEVELS);
            return false;
        }
        if (level[nlevels - 1].apart != 0 && level[nlevels - 1].apart != 1) {
            snprintf(why, 200, "the last level must be core or pu");
            return false;
        }
        settle_kinds(level, nlevels);
    }
    *machine =
        (struct rmd_machine){(unsigned)ncores, make_distances(level, nlevels, (unsigned)ncores)};
    return true;
}

unsigned short *sim_machine_speeds(const char *text, unsigned ncores)
{
    text += strspn(text, " ");
    if (!strchr(text, 'x') || *text < '0' || *text > '9')
        return NULL;
    unsigned short *speed = sim_allocate(ncores, sizeof *speed);
    inv_speeds_parse(text, ncores, speed);
    return speed;
}

double sim_speed_of(const struct sim_world *w, unsigned first, unsigned count)
{
    double sum = 0;
    for (unsigned c = first; w->speed && c < first + count; c++)
        sum += w->speed[c];
    return w->speed && count ? sum / INV_WHOLE_SPEED / count : 1;
}
