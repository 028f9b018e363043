/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * greedy.c - greedy allocation of cores to the groups that gain most by them: maximises sum
 * S_J(D_J).
 *
 * S_J(d) = sum W / max(W_i / S_i(d_i)) is the speed-up of group J on d cores when its members
 * finish together.  As a function of a real d it is concave and piecewise linear: at the
 * common speed v = 1 / time each member needs c_i(v) cores, a convex function, so v(d) is the
 * inverse of a sum of convex ones.  Its kinks are where a member passes a kink of its own graph, or
 * begins to need more than its least.  For a group of one, S_J = S_i.
 *
 * Allocation by the largest marginal gain (Schreiber et al., 5.3.3, equations 5 and 6) is then the optimum.  All cores of a segment gain alike, so a heap of segments suffices
 * instead of one of cores: O((n + segments) log n), however many cores.  Tied groups, whose next
 * segments rise alike, share the last cores in proportion to `weight`, as whole cores by largest
 * remainders.
 */
#include "rmd/policy/apportion.h"
#include "rmd/policy/heap.h"
#include "rmd/policy/level.h"
#include "rmd/policy/rank.h"
#include "libinvasive/base/assertion.h"

#include <math.h>

/* Rounding errors: fewer cores than this are none. */
static const double epsilon_cores = 1e-7;

/* The position of a group between its least and its most cores. */
struct group_cursor {
    double at;            /* cores so far, a whole number */
    double v;             /* speed at the end of the next segment */
    double rate;          /* cores for each unit of v */
    double length, slope; /* of the next segment; length in cores */
    bool done;            /* more cores bring no more speed */
    bool tied;            /* shares the last cores with other groups */
};

/* The position of a process on its own graph. */
struct member {
    int segment; /* -1: it has its least cores */
    double rate; /* cores for each unit of the group's v */
};

struct greedy_state {
    const struct rmd_ranks *ranks;
    const struct rmd_greedy_options *how;
    struct group_cursor *cursor; /* by group */
    struct rmd_heap_item *kink;  /* of the group's members, from its `first` on: key -v */
    struct member *member;       /* by process */
    struct rmd_heap_item *best;  /* groups by the slope of their next segment */
    unsigned nbest;
    unsigned *tied, ntied;
    bool on_top; /* there is one tied group, which is still on top of the heap */
    struct taken_segment *taken; /* in the order in which they were taken; NULL: not needed */
    unsigned ntaken;
    double left;  /* cores */
    double speed; /* sum S_J so far */
};

/* The most segments of a member: it has a kink for each segment of its graph, and one where it
 * begins to need more.  One segment leads to each kink, and one core leads across it. */
enum { TAKEN_EACH = 2 * (RMD_SEGMENTS + 2) };

/* A segment that was taken.  Segments that rise alike follow each other, from one with `first`
 * on. */
struct taken_segment {
    unsigned group : 31, first : 1;
    unsigned length;
    double slope; /* of all that rise alike */
};

static double speed_of(const struct rmd_rank *r, double cores)
{
    return rmd_curve_at(&r->curve, cores) / r->work;
}

/* The member on top of the heap enters the next segment of its graph.  If no further segment makes
 * it faster, the group is done. */
static void enter_next_segment(struct greedy_state *f, const struct rmd_group *g,
                               struct group_cursor *cur)
{
    struct rmd_heap_item *top = &f->kink[g->first];
    const struct rmd_rank *r = &f->ranks->rank[top->number];
    const struct rmd_curve *c = &r->curve;
    inv_assert(g->count > 0 && top->number < f->ranks->nranks);
    struct member *m = &f->member[top->number];
    unsigned k = (unsigned)(m->segment + 1);
    if (m->segment < 0) {
        k = rmd_curve_segment(c, r->lo);
    } else {
        cur->rate -= m->rate;
        cur->done = k == c->segments || c->at[k].cores >= r->hi;
    }
    cur->done = cur->done || r->lo == r->hi || c->at[k].slope <= 0;
    if (cur->done)
        return;
    const struct rmd_segment *s = &c->at[k];
    m->segment = (int)k;
    m->rate = r->work / s->slope;
    cur->rate = g->count == 1 ? m->rate : cur->rate + m->rate; /* one member: no rounding error */
    bool whole = k + 1 < c->segments && s[1].cores <= r->hi;
    top->key = -(whole ? s[1].speed : s->speed + s->slope * (r->hi - s->cores)) / r->work;
    rmd_heap_sink(top, g->count, 0);
}

/* Takes one core that leads across kinks, or to the end.  Returns its gain; cur->v is the speed
 * then. */
static double take_one_core(struct greedy_state *f, const struct rmd_group *g,
                            struct group_cursor *cur)
{
    double gain = 0;
    for (double core = 1; core > epsilon_cores && !cur->done;) {
        double v = -f->kink[g->first].key, length = (v - cur->v) * cur->rate;
        if (cur->rate <= 0 || length <= core) {
            double step = cur->rate > 0 ? rmd_most(length, 0) : 0;
            gain += rmd_most(v - cur->v, 0) * g->work;
            core -= step;
            cur->v = rmd_most(cur->v, v);
            enter_next_segment(f, g, cur);
        } else {
            gain += core / cur->rate * g->work;
            cur->v += core / cur->rate;
            core = 0;
        }
    }
    return gain;
}

/*
 * Sets length and slope of the group's next segment, and v to the speed at its end.  The segment is
 * as many whole cores as rise alike, or one core with a kink in it, since only whole cores are
 * given out.
 */
static void find_next_segment(struct greedy_state *f, unsigned group)
{
    const struct rmd_group *g = &f->ranks->group[group];
    struct group_cursor *cur = &f->cursor[group];
    unsigned cap = g->known ? g->hi : f->how->cap[group];
    cur->slope = 0;
    cur->length = g->hi - cur->at;
    if (cur->at >= cap)
        cur->done = true;
    while (!cur->done && (cur->rate <= 0 || cur->v * (1 + 1e-12) >= -f->kink[g->first].key))
        enter_next_segment(f, g, cur); /* the group is at this kink */
    if (cur->done)
        return;
    /* floor of a positive number, without a call */
    double whole =
        (double)(unsigned long)((-f->kink[g->first].key - cur->v) * cur->rate + epsilon_cores);
    if (whole < 1) {
        cur->slope = take_one_core(f, g, cur);
        cur->length = 1;
    } else {
        cur->length = rmd_least(whole, cap - cur->at);
        cur->slope = g->work / cur->rate;
        cur->v += cur->length / cur->rate;
    }
}

static void begin_group(struct greedy_state *f, unsigned group)
{
    const struct rmd_group *g = &f->ranks->group[group];
    struct group_cursor *cur = &f->cursor[group];
    *cur = (struct group_cursor){.at = g->lo, .v = HUGE_VAL};
    for (unsigned k = 0; k < g->count; k++) {
        unsigned i = f->ranks->member[g->first + k];
        double v = speed_of(&f->ranks->rank[i], f->ranks->rank[i].lo);
        f->member[i] = (struct member){.segment = -1};
        f->kink[g->first + k] = (struct rmd_heap_item){.key = -v, .number = i};
        cur->v = rmd_least(cur->v, v);
    }
    rmd_heap_make(&f->kink[g->first], g->count);
    f->left -= g->lo;
    f->speed += g->work * cur->v;
    find_next_segment(f, group);
    if (cur->length > 0)
        f->best[f->nbest++] = (struct rmd_heap_item){.key = cur->slope, .number = group};
    inv_assert(f->nbest <= f->ranks->ngroups);
}

/* Is the top of the heap steeper than all others? */
static bool is_steepest_alone(const struct greedy_state *f)
{
    double next = -HUGE_VAL;
    for (unsigned child = 1; child <= 2 && child < f->nbest; child++)
        next = rmd_most(next, f->best[child].key);
    return next < f->best[0].key - RMD_ALIKE;
}

/* Finds the groups whose next segments are the steepest.  Removes them from the heap, but a single
 * one stays on top.  Returns the cores that they can take. */
static double find_tied_groups(struct greedy_state *f, double *slope)
{
    double space = 0;
    *slope = f->best[0].key;
    f->ntied = 0;
    f->on_top = is_steepest_alone(f);
    if (f->on_top) {
        f->tied[f->ntied++] = f->best[0].number;
        return f->cursor[f->best[0].number].length;
    }
    do {
        unsigned group = rmd_heap_pop(f->best, &f->nbest).number;
        f->tied[f->ntied++] = group;
        inv_assert(f->ntied <= f->ranks->ngroups);
        space += f->cursor[group].length;
    } while (f->nbest && f->best[0].key >= *slope - RMD_ALIKE);
    return space;
}

/* Puts the group's next segment into the heap, if it has one. */
static void queue_group(struct greedy_state *f, unsigned group)
{
    const struct group_cursor *cur = &f->cursor[group];
    bool more = cur->at < f->ranks->group[group].hi;
    if (more)
        find_next_segment(f, group);
    more = more && cur->length > 0;
    const struct rmd_heap_item item = {.key = cur->slope, .number = group};
    if (more && f->on_top) {
        f->best[0] = item;
        rmd_heap_sink(f->best, f->nbest, 0);
    } else if (more) {
        rmd_heap_push(f->best, &f->nbest, item);
    } else if (f->on_top) {
        rmd_heap_pop(f->best, &f->nbest);
    }
}

static void take_whole_segments(struct greedy_state *f)
{
    for (unsigned t = 0; t < f->ntied; t++) {
        struct group_cursor *cur = &f->cursor[f->tied[t]];
        f->left -= cur->length;
        f->speed += cur->length * cur->slope;
        cur->at += cur->length;
        if (f->taken)
            f->taken[f->ntaken++] = (struct taken_segment){.group = f->tied[t],
                                                           .first = t == 0,
                                                           .length = (unsigned)cur->length,
                                                           .slope = cur->slope};
        queue_group(f, f->tied[t]);
        inv_assert(f->nbest <= f->ranks->ngroups);
    }
}

static void mark_tied(struct greedy_state *f, bool tied)
{
    for (unsigned t = 0; t < f->ntied; t++)
        f->cursor[f->tied[t]].tied = tied;
}

/* Takes segments until no core is left.  Returns the cores that the tied groups share. */
static double take_until_used_up(struct greedy_state *f)
{
    while (f->nbest && f->left > epsilon_cores) {
        double slope, space = find_tied_groups(f, &slope);
        if (space > f->left + epsilon_cores) {
            mark_tied(f, true);
            return f->left;
        }
        take_whole_segments(f);
    }
    f->ntied = 0;
    return 0;
}

/* Gives the last segments that rise alike back.  Their groups are the tied ones then. */
static void undo_last_segments(struct greedy_state *f)
{
    mark_tied(f, false);
    f->ntied = 0;
    for (bool first = false; !first;) {
        inv_assert(f->ntaken > 0 && f->ntied < f->ranks->ngroups);
        const struct taken_segment *last = &f->taken[--f->ntaken];
        struct group_cursor *cur = &f->cursor[last->group];
        cur->at -= last->length;
        cur->length = last->length;
        cur->slope = last->slope;
        f->speed -= last->length * last->slope;
        f->tied[f->ntied++] = last->group;
        first = last->first;
    }
    mark_tied(f, true);
}

/* Gives segments back until the speed is below `goal`.  Returns the cores that the tied groups
 * share: as many as the goal needs, but at most `shared` if nothing was given back. */
static double undo_until(struct greedy_state *f, double shared, double goal)
{
    while (f->ntaken && f->speed >= goal) {
        undo_last_segments(f);
        shared = HUGE_VAL;
    }
    double slope = f->ntied ? f->cursor[f->tied[0]].slope : 0;
    if (f->speed >= goal || slope <= 0) {
        mark_tied(f, false);
        return 0;
    }
    return rmd_least(shared, (goal - f->speed) / slope);
}

static void begin_groups(struct greedy_state *f)
{
    f->nbest = 0;
    f->left = f->how->cores;
    f->speed = 0;
    for (unsigned j = 0; j < f->ranks->ngroups; j++)
        begin_group(f, j);
    rmd_heap_make(f->best, f->nbest);
}

/* Rounds to whole cores.  The tied groups share `shared` cores; the others have what they have
 * taken. */
static void round_shares(const struct greedy_state *f, double shared, unsigned *share,
                         struct rmd_arena arena)
{
    unsigned n = f->ranks->ngroups;
    struct rmd_part *part = rmd_arena_alloc(&arena, n, sizeof *part);
    double sum = shared;
    for (unsigned j = 0; j < n; j++) {
        const struct group_cursor *cur = &f->cursor[j];
        part[j] = (struct rmd_part){.weight = rmd_most(f->how->weight[j], 1e-9),
                                    .lo = cur->at,
                                    .hi = cur->at + (cur->tied ? cur->length : 0),
                                    .owned = f->ranks->group[j].owned};
        sum += cur->at;
    }
    rmd_apportion(part, n, (unsigned)ceil(sum - 1e-4), share, arena);
}

void rmd_greedy_allocate(const struct rmd_ranks *ranks, const struct rmd_greedy_options *how,
                         unsigned *share, struct rmd_arena arena)
{
    unsigned groups = ranks->ngroups;
    struct greedy_state f = {.ranks = ranks, .how = how};
    f.cursor = rmd_arena_alloc(&arena, groups, sizeof *f.cursor);
    f.kink = rmd_arena_alloc(&arena, ranks->nranks, sizeof *f.kink);
    f.member = rmd_arena_alloc(&arena, ranks->nranks, sizeof *f.member);
    f.best = rmd_arena_alloc(&arena, groups, sizeof *f.best);
    f.tied = rmd_arena_alloc(&arena, groups, sizeof *f.tied);
    if (how->give_away > 0)
        f.taken = rmd_arena_alloc(&arena, (size_t)TAKEN_EACH * ranks->nranks, sizeof *f.taken);
    begin_groups(&f);
    double shared = take_until_used_up(&f);
    if (how->give_away > 0) {
        double slope = f.ntied ? f.cursor[f.tied[0]].slope : 0;
        shared = undo_until(&f, shared, (1 - how->give_away) * (f.speed + shared * slope));
    }
    round_shares(&f, shared, share, arena);
}
