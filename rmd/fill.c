/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fill.c - cores to the groups that gain most by them: maximise sum S_J(D_J).
 *
 * S_J(d) = sum W / max(W_i / S_i(d_i)) is the speed-up of group J on d cores when its members
 * finish together.  As a function of a real d it is concave and piecewise linear: at the
 * common speed v = 1 / time each member needs c_i(v) cores, a convex function, so v(d) is the
 * inverse of a sum of convex ones.  Its kinks are where a member passes a kink of its own graph, or
 * begins to need more than its least.  For a group of one, S_J = S_i.
 *
 * Greedy by marginal gain (papers/invasive-compute-balancing.txt 5.3.3, equations 5 and 6) is then
 * the optimum.  All cores of a segment gain alike, so a heap of segments instead of one of cores
 * does: O((n + segments) log n), however many cores.  Where the last cores meet several segments
 * that rise alike, these share in proportion to `weight`, as whole cores by largest remainders.
 */
#include "apportion.h"
#include "heap.h"
#include "level.h"
#include "rank.h"

#include <math.h>

/* Less than this of a core is none. */
static const double crumb = 1e-7;

/* Where a group is on its way from its least to its most. */
struct way {
    double at;            /* cores so far, whole ones */
    double v;             /* speed at the end of the segment */
    double rate;          /* cores for each unit of v */
    double length, slope; /* of the segment that begins here */
    bool done;            /* more speed cannot be had */
    bool tied;            /* the last cores are shared with others */
};

/* Where a process is on its own graph. */
struct member {
    int segment; /* -1: it still has its least */
    double rate; /* cores for each unit of the group's v */
};

struct filling {
    const struct rmd_ranks *ranks;
    const struct rmd_filling *how;
    struct way *way;            /* by group */
    struct rmd_heap_item *kink; /* of the group's members, from its `first` on: key -v */
    struct member *member;      /* by process */
    struct rmd_heap_item *best; /* groups by the slope of their next segment */
    unsigned nbest;
    unsigned *tie, nties;
    bool on_top;         /* the only tied one is still on top of the heap */
    struct taken *taken; /* segments in the order in which they were taken; NULL: not noted */
    unsigned ntaken;
    double left;  /* cores */
    double speed; /* sum S_J so far */
};

/* Room for segments: a member has a kink for each segment of its graph and where it begins to need
 * more; up to each kink lead whole cores, and one across it. */
enum { TAKEN_EACH = 2 * (RMD_SEGMENTS + 2) };

/* A segment that was taken, with others that rise alike from the first of them on. */
struct taken {
    unsigned group : 31, first : 1;
    unsigned length;
    double slope; /* of all that rise alike */
};

static double speed_of(const struct rmd_rank *r, double cores)
{
    return rmd_curve_at(&r->curve, cores) / r->work;
}

/* The member on top of the heap enters its next segment.  If it has none that makes it faster,
 * the group will not be faster. */
static void pass_kink(struct filling *f, const struct rmd_group *g, struct way *w)
{
    struct rmd_heap_item *top = &f->kink[g->first];
    const struct rmd_rank *r = &f->ranks->rank[top->who];
    const struct rmd_curve *c = &r->curve;
    struct member *m = &f->member[top->who];
    unsigned k = (unsigned)(m->segment + 1);
    if (m->segment < 0) {
        k = rmd_curve_segment(c, r->lo);
    } else {
        w->rate -= m->rate;
        w->done = k == c->segments || c->at[k].cores >= r->hi;
    }
    w->done = w->done || r->lo == r->hi || c->at[k].slope <= 0;
    if (w->done)
        return;
    const struct rmd_segment *s = &c->at[k];
    m->segment = (int)k;
    m->rate = r->work / s->slope;
    w->rate = g->count == 1 ? m->rate : w->rate + m->rate; /* one: nothing that rounding left */
    bool whole = k + 1 < c->segments && s[1].cores <= r->hi;
    top->key = -(whole ? s[1].speed : s->speed + s->slope * (r->hi - s->cores)) / r->work;
    rmd_heap_sink(top, g->count, 0);
}

/* One more core, which leads past kinks, or to the end: what it brings.  v is then that speed. */
static double cross_kinks(struct filling *f, const struct rmd_group *g, struct way *w)
{
    double gain = 0;
    for (double core = 1; core > crumb && !w->done;) {
        double v = -f->kink[g->first].key, length = (v - w->v) * w->rate;
        if (w->rate <= 0 || length <= core) {
            double step = w->rate > 0 ? rmd_most(length, 0) : 0;
            gain += rmd_most(v - w->v, 0) * g->work;
            core -= step;
            w->v = rmd_most(w->v, v);
            pass_kink(f, g, w);
        } else {
            gain += core / w->rate * g->work;
            w->v += core / w->rate;
            core = 0;
        }
    }
    return gain;
}

/*
 * Length and slope of the segment that begins where the group is now; v becomes the speed at its
 * end.  It is as many whole cores as rise alike, or one in which there is a kink: what is
 * given out in the end are whole cores.
 */
static void look_ahead(struct filling *f, unsigned group)
{
    const struct rmd_group *g = &f->ranks->group[group];
    struct way *w = &f->way[group];
    unsigned cap = g->known ? g->hi : f->how->cap[group];
    w->slope = 0;
    w->length = g->hi - w->at;
    if (w->at >= cap)
        w->done = true;
    while (!w->done && (w->rate <= 0 || w->v * (1 + 1e-12) >= -f->kink[g->first].key))
        pass_kink(f, g, w); /* it is here */
    if (w->done)
        return;
    /* a conversion, not a call of floor: it is positive */
    double whole = (double)(unsigned long)((-f->kink[g->first].key - w->v) * w->rate + crumb);
    if (whole < 1) {
        w->slope = cross_kinks(f, g, w);
        w->length = 1;
    } else {
        w->length = rmd_least(whole, cap - w->at);
        w->slope = g->work / w->rate;
        w->v += w->length / w->rate;
    }
}

static void begin(struct filling *f, unsigned group)
{
    const struct rmd_group *g = &f->ranks->group[group];
    struct way *w = &f->way[group];
    *w = (struct way){.at = g->lo, .v = HUGE_VAL};
    for (unsigned k = 0; k < g->count; k++) {
        unsigned i = f->ranks->member[g->first + k];
        double v = speed_of(&f->ranks->rank[i], f->ranks->rank[i].lo);
        f->member[i] = (struct member){.segment = -1};
        f->kink[g->first + k] = (struct rmd_heap_item){.key = -v, .who = i};
        w->v = rmd_least(w->v, v);
    }
    rmd_heap_make(&f->kink[g->first], g->count);
    f->left -= g->lo;
    f->speed += g->work * w->v;
    look_ahead(f, group);
    if (w->length > 0)
        f->best[f->nbest++] = (struct rmd_heap_item){.key = w->slope, .who = group};
}

/* Is the top of the heap alone as steep as it is? */
static bool steepest_alone(const struct filling *f)
{
    double next = -HUGE_VAL;
    for (unsigned child = 1; child <= 2 && child < f->nbest; child++)
        next = rmd_most(next, f->best[child].key);
    return next < f->best[0].key - RMD_ALIKE;
}

/* All groups whose next segment rises as steeply as any, taken from the heap unless it is only one,
 * which stays on top.  Returns the cores they could take. */
static double find_ties(struct filling *f, double *slope)
{
    double space = 0;
    *slope = f->best[0].key;
    f->nties = 0;
    f->on_top = steepest_alone(f);
    if (f->on_top) {
        f->tie[f->nties++] = f->best[0].who;
        return f->way[f->best[0].who].length;
    }
    do {
        unsigned group = rmd_heap_pop(f->best, &f->nbest).who;
        f->tie[f->nties++] = group;
        space += f->way[group].length;
    } while (f->nbest && f->best[0].key >= *slope - RMD_ALIKE);
    return space;
}

/* The group's next segment into the heap, or none. */
static void queue(struct filling *f, unsigned group)
{
    const struct way *w = &f->way[group];
    bool more = w->at < f->ranks->group[group].hi;
    if (more)
        look_ahead(f, group);
    more = more && w->length > 0;
    const struct rmd_heap_item item = {.key = w->slope, .who = group};
    if (more && f->on_top) {
        f->best[0] = item;
        rmd_heap_sink(f->best, f->nbest, 0);
    } else if (more) {
        rmd_heap_push(f->best, &f->nbest, item);
    } else if (f->on_top) {
        rmd_heap_pop(f->best, &f->nbest);
    }
}

static void take_whole_segments(struct filling *f)
{
    for (unsigned t = 0; t < f->nties; t++) {
        struct way *w = &f->way[f->tie[t]];
        f->left -= w->length;
        f->speed += w->length * w->slope;
        w->at += w->length;
        if (f->taken)
            f->taken[f->ntaken++] = (struct taken){.group = f->tie[t], .first = t == 0,
                                                   .length = (unsigned)w->length,
                                                   .slope = w->slope};
        queue(f, f->tie[t]);
    }
}

static void tie(struct filling *f, bool tied)
{
    for (unsigned t = 0; t < f->nties; t++)
        f->way[f->tie[t]].tied = tied;
}

/* Go on until no core is left.  Returns the cores that the tied groups share. */
static double climb(struct filling *f)
{
    while (f->nbest && f->left > crumb) {
        double slope, space = find_ties(f, &slope);
        if (space > f->left + crumb) {
            tie(f, true);
            return f->left;
        }
        take_whole_segments(f);
    }
    f->nties = 0;
    return 0;
}

/* The segments that were taken last, which rose alike, are the tied ones now, and not taken. */
static void untake(struct filling *f)
{
    tie(f, false);
    f->nties = 0;
    for (bool first = false; !first;) {
        const struct taken *last = &f->taken[--f->ntaken];
        struct way *w = &f->way[last->group];
        w->at -= last->length;
        w->length = last->length;
        w->slope = last->slope;
        f->speed -= last->length * last->slope;
        f->tie[f->nties++] = last->group;
        first = last->first;
    }
    tie(f, true);
}

/* Down from the best to the speed `goal`.  Returns the cores that the tied groups share: as many
 * as `shared`, or as it takes. */
static double descend(struct filling *f, double shared, double goal)
{
    while (f->ntaken && f->speed >= goal) {
        untake(f);
        shared = HUGE_VAL;
    }
    double slope = f->nties ? f->way[f->tie[0]].slope : 0;
    if (f->speed >= goal || slope <= 0) {
        tie(f, false);
        return 0;
    }
    return rmd_least(shared, (goal - f->speed) / slope);
}

static void start(struct filling *f)
{
    f->nbest = 0;
    f->left = f->how->cores;
    f->speed = 0;
    for (unsigned j = 0; j < f->ranks->ngroups; j++)
        begin(f, j);
    rmd_heap_make(f->best, f->nbest);
}

/* Whole cores: `shared` ones are for the tied groups, the others keep what they have taken. */
static void round_off(const struct filling *f, double shared, unsigned *share,
                      struct rmd_arena arena)
{
    unsigned n = f->ranks->ngroups;
    struct rmd_part *part = rmd_arena_alloc(&arena, n, sizeof *part);
    double sum = shared;
    for (unsigned j = 0; j < n; j++) {
        const struct way *w = &f->way[j];
        part[j] = (struct rmd_part){.weight = rmd_most(f->how->weight[j], 1e-9),
                                    .lo = w->at,
                                    .hi = w->at + (w->tied ? w->length : 0),
                                    .owned = f->ranks->group[j].owned};
        sum += w->at;
    }
    rmd_apportion(part, n, (unsigned)ceil(sum - 1e-4), share, arena);
}

void rmd_fill(const struct rmd_ranks *ranks, const struct rmd_filling *how, unsigned *share,
              struct rmd_arena arena)
{
    unsigned groups = ranks->ngroups;
    struct filling f = {.ranks = ranks, .how = how};
    f.way = rmd_arena_alloc(&arena, groups, sizeof *f.way);
    f.kink = rmd_arena_alloc(&arena, ranks->nranks, sizeof *f.kink);
    f.member = rmd_arena_alloc(&arena, ranks->nranks, sizeof *f.member);
    f.best = rmd_arena_alloc(&arena, groups, sizeof *f.best);
    f.tie = rmd_arena_alloc(&arena, groups, sizeof *f.tie);
    if (how->give_away > 0)
        f.taken = rmd_arena_alloc(&arena, (size_t)TAKEN_EACH * ranks->nranks, sizeof *f.taken);
    start(&f);
    double shared = climb(&f);
    if (how->give_away > 0) {
        double slope = f.nties ? f.way[f.tie[0]].slope : 0;
        shared = descend(&f, shared, (1 - how->give_away) * (f.speed + shared * slope));
    }
    round_off(&f, shared, share, arena);
}
