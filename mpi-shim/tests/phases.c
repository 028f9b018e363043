/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * phases.c - the pure parts of the shim on random input, for test_phases.py: phase.c on
 * the calls of random programs whose iterations are known, measure.c on noisy measurements
 * of known speed-ups, short_waits.c on iterations whose length depends on what it says.  Prints what does
 * not hold, with the seed; the last line is "N checks".
 */
#include "mpi-shim/measure/short_waits.h"
#include "mpi-shim/measure/measure.h"
#include "mpi-shim/measure/phase.h"
#include "libinvasive/table/scalability.h"
#include "libinvasive/base/steady.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long checks, failures, seed;
static const char *test;

#define CHECK(cond)                                                                           \
    do {                                                                                      \
        checks++;                                                                             \
        if (!(cond) && failures++ < 20)                                                       \
            printf("%s, seed %lu: not true: %s (line %d)\n", test, seed, #cond, __LINE__);    \
    } while (0)

static uint64_t state;

static uint32_t random32(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) ^ (uint32_t)(state >> 11);
}

/* low..high */
static unsigned among(unsigned low, unsigned high)
{
    return low + random32() % (high - low + 1);
}

static double uniform(void) { return random32() / 4294967296.0; }

/* --- programs: what they call, and what is found */

struct found {
    struct shim_phase phase;
    unsigned calls, begins, ends;
    unsigned first;     /* call at which the first iteration began */
    uint64_t last_hash; /* of the last one that ended */
    unsigned kinds;     /* different hashes among those since forget_kinds */
    uint64_t kind[64];
    unsigned of_kind[64];
};

static uint32_t base; /* call sites are at random addresses, the same within a program */

static void call(struct found *f, unsigned site)
{
    const void *address = (const void *)(uintptr_t)(base + site * 0x34u + 1);
    enum shim_phase_event event = shim_phase_call(&f->phase, shim_phase_key(address));
    f->calls++;
    if (event == SHIM_PHASE_BEGIN && f->begins++ == 0)
        f->first = f->calls;
    if (event != SHIM_PHASE_END)
        return;
    f->ends++;
    f->last_hash = shim_phase_hash(&f->phase.ended);
    unsigned k = 0;
    while (k < f->kinds && f->kind[k] != f->last_hash)
        k++;
    if (k == f->kinds && k < 64)
        f->kind[f->kinds++] = f->last_hash;
    if (k < 64)
        f->of_kind[k]++;
}

static void forget_kinds(struct found *f)
{
    f->kinds = f->ends = 0;
    memset(f->of_kind, 0, sizeof f->of_kind);
}

static void start(struct found *f, const char *name, unsigned long n)
{
    memset(f, 0, sizeof *f);
    test = name;
    seed = n;
    state = n * 7919 + 17;
    base = random32();
}

/* A body in which some site may recur; returns its length. */
static unsigned random_body(unsigned *body, unsigned most)
{
    unsigned n = among(1, most);
    for (unsigned i = 0; i < n; i++)
        body[i] = among(0, 3) ? i : among(0, i);
    return n;
}

static void prologue(struct found *f)
{
    for (unsigned n = among(0, 20), i = 0; i < n; i++)
        call(f, 100 + (among(0, 1) ? i : 0));
}

/* A loop with a fixed body, also one that comes to the same call twice: found, and kept. */
static void a_loop_is_found_after_any_prologue_and_kept(void)
{
    struct found f;
    unsigned body[60];
    start(&f, __func__, seed);
    unsigned iterations = among(20, 60), n = random_body(body, 60);
    prologue(&f);
    shim_phase_forget(&f.phase); /* it may have looked like a loop of its own */
    f.begins = f.ends = 0;
    for (unsigned it = 0; it < iterations; it++) {
        unsigned ends = f.ends;
        for (unsigned i = 0; i < n; i++)
            call(&f, body[i]);
        if (it >= 8)
            CHECK(f.ends > ends && f.ends - ends <= n);
    }
    CHECK(f.begins == 1);
}

/* Sites that are passed once in a body: then there is one end for each time round. */
static void a_loop_of_different_calls_has_one_end_a_round(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned n = among(1, SHIM_PHASE_PERIOD), iterations = among(10, 40);
    for (unsigned it = 0; it < iterations; it++)
        for (unsigned i = 0; i < n && i < 120; i++)
            call(&f, i);
    CHECK(f.begins == 1);
    CHECK(f.ends >= iterations - 9 && f.ends < iterations);
    CHECK(f.kinds == 1);
}

/* Every `often` steps something is written. */
static void a_step_with_output_is_another_class(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned n = among(1, 10), often = among(9, 20), outputs = 12;
    for (unsigned it = 0; it < often * outputs; it++) {
        for (unsigned i = 0; i < n; i++)
            call(&f, i);
        for (unsigned i = 0; i < 3 && it % often == often - 1; i++)
            call(&f, 50 + i);
        if (it == 2 * often)
            forget_kinds(&f);
    }
    CHECK(f.kinds == 2);
    CHECK(f.of_kind[0] + f.of_kind[1] == f.ends);
    CHECK(f.begins == 1);
    unsigned rare = f.of_kind[0] < f.of_kind[1] ? f.of_kind[0] : f.of_kind[1];
    CHECK(rare >= outputs - 4 && rare <= outputs);
}

/* A solver that takes a different number of inner steps each time. */
static void inner_loops_of_any_length_do_not_make_new_classes(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned n = among(1, 4);
    for (unsigned it = 0; it < 40; it++) {
        call(&f, 20);
        for (unsigned k = among(5, 60); k > 0; k--)
            for (unsigned i = 0; i < n; i++)
                call(&f, i);
        call(&f, 21);
        if (it == 4)
            forget_kinds(&f);
    }
    CHECK(f.begins == 1);
    CHECK(f.kinds == 2);
}

/* When the inner iterations are too short, each end is one of an outer iteration. */
static void longer_iterations_are_those_of_the_outer_loop(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned n = among(1, 4), outer = 0;
    for (unsigned it = 0; it < 60; it++) {
        call(&f, 20);
        for (unsigned k = among(5, 60); k > 0; k--)
            for (unsigned i = 0; i < n; i++)
                call(&f, i);
        call(&f, 21);
        if (it == 10)
            shim_phase_lengthen(&f.phase);
        if (it == 12)
            forget_kinds(&f);
        outer += it > 12;
    }
    CHECK(f.begins == 2);
    CHECK(f.ends == outer);
    CHECK(f.kinds == 1);
}

static void without_an_outer_loop_iterations_are_bundled(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned times = among(1, 8);
    for (unsigned i = 0; i < 10; i++)
        call(&f, 0);
    for (unsigned i = 0; i < times; i++)
        shim_phase_lengthen(&f.phase);
    for (unsigned i = 0; i < 1u << 9; i++)
        call(&f, 0);
    forget_kinds(&f);
    for (unsigned i = 0; i < 1u << 12; i++)
        call(&f, 0);
    CHECK(f.ends == 1u << (12 - times));
    for (unsigned i = 0; i < times; i++)
        shim_phase_shorten(&f.phase);
    call(&f, 0);
    forget_kinds(&f);
    for (unsigned i = 0; i < 100; i++)
        call(&f, 0);
    CHECK(f.ends == 100);
}

static void a_new_loop_is_found_when_the_old_one_is_forgotten(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned n = among(1, 30), m = among(1, 30);
    for (unsigned it = 0; it < 10; it++)
        for (unsigned i = 0; i < n; i++)
            call(&f, i);
    shim_phase_forget(&f.phase);
    forget_kinds(&f);
    for (unsigned it = 0; it < 10; it++)
        for (unsigned i = 0; i < m; i++)
            call(&f, 40 + i);
    CHECK(f.begins == 2);
    CHECK(f.ends >= 2 && f.ends <= 10);
    CHECK(f.kinds == 1);
}

/* What has no period has none: random calls at many sites. */
static void an_irregular_program_has_no_iterations(void)
{
    struct found f;
    start(&f, __func__, seed);
    for (unsigned i = 0; i < 5000; i++)
        call(&f, random32() % 50);
    CHECK(f.begins == 0 && f.ends == 0);
}

/* Whatever is called, and told: nothing out of bounds (sanitizers), ends only after a begin. */
static void nonsense_does_no_harm(void)
{
    struct found f;
    start(&f, __func__, seed);
    unsigned sites = among(1, 400);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned what = random32() % 1000;
        call(&f, random32() % sites / (what < 500 ? 40 : 1));
        if (what < 5)
            shim_phase_lengthen(&f.phase);
        else if (what < 10)
            shim_phase_shorten(&f.phase);
        else if (what < 12)
            shim_phase_forget(&f.phase);
        CHECK(f.begins > 0 || f.ends == 0);
        CHECK(f.phase.bundle <= SHIM_PHASE_BUNDLE && f.phase.left <= f.phase.bundle);
    }
}

/* --- scalability */

static double amdahl(double serial, double c) { return 1 / (serial + (1 - serial) / c); }

static void check_shape(const struct inv_scalability *g, unsigned ncores)
{
    CHECK(inv_scalability_valid(g));
    for (unsigned i = 0; i < INV_SCALABILITY_POINTS && g->point[i].cores; i++)
        CHECK(g->point[i].cores <= ncores);
}

static void a_graph_is_monotone_and_concave_whatever_is_measured(void)
{
    struct shim_scalability s = {0};
    struct inv_scalability g;
    test = __func__;
    state = seed + 5;
    unsigned ncores = among(1, 1024), n = among(1, 300);
    for (unsigned i = 0; i < n; i++) {
        double odd = uniform();
        shim_scalability_add(&s, odd < 0.02   ? NAN
                                 : odd < 0.04 ? -1
                                 : odd < 0.06 ? INFINITY
                                              : 1 + uniform() * ncores,
                             exp(10 * uniform() - 5));
    }
    if (shim_scalability_graph(&s, ncores, &g))
        check_shape(&g, ncores);
}

/* Amdahl's law with 3 % of noise comes out to 10 % where it was measured. */
static void a_graph_is_near_what_was_measured(void)
{
    struct shim_scalability s = {0};
    struct inv_scalability g;
    test = __func__;
    state = seed + 5;
    double serial = uniform() * 0.5, unit = exp(20 * uniform() - 10);
    unsigned ncores = among(2, 64);
    for (unsigned k = 0; k < 20; k++)
        for (unsigned c = 1; c <= ncores; c = c < 4 ? c + 1 : c + c / 4)
            shim_scalability_add(&s, c, unit * amdahl(serial, c) * (0.97 + 0.06 * uniform()));
    CHECK(shim_scalability_graph(&s, ncores, &g));
    check_shape(&g, ncores);
    for (unsigned i = 0; i < INV_SCALABILITY_POINTS && g.point[i].cores; i++) {
        double law = amdahl(serial, g.point[i].cores);
        CHECK(fabs(g.point[i].speedup - law) < 0.10 * law);
    }
    CHECK(g.point[0].cores == 1 && fabsf(g.point[0].speedup - 1) < 1e-5f);
}

static void a_graph_forgets_what_was_measured_long_ago(void)
{
    struct shim_scalability s = {0};
    struct inv_scalability g;
    test = __func__;
    for (int i = 0; i < 20; i++)
        shim_scalability_add(&s, 8, 100); /* the work was small then */
    for (int i = 0; i < 1000; i++)
        shim_scalability_add(&s, 1 + i % 2, 1 + 0.5 * (i % 2));
    CHECK(shim_scalability_graph(&s, 16, &g));
    CHECK(g.point[0].cores == 1 && g.point[1].cores == 2 && !g.point[2].cores);
    CHECK(fabsf(g.point[1].speedup - 1.5f) < 1e-5f);
}

static void nothing_measured_is_no_graph(void)
{
    struct shim_scalability s = {0};
    struct inv_scalability g;
    test = __func__;
    CHECK(!shim_scalability_graph(&s, 8, &g) && !g.point[0].cores);
    shim_scalability_add(&s, 2, 1);
    CHECK(!shim_scalability_graph(&s, 8, &g)); /* once is never */
}

/* --- what persists */

static unsigned told(struct inv_steady *s, const double *values, unsigned period, unsigned n)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++)
        count += inv_steady_add(s, values[i % period]);
    return count;
}

static void what_alternates_is_told_a_few_times(void)
{
    struct inv_steady s = {0};
    double values[3], mean = 0;
    test = __func__;
    state = seed + 5;
    unsigned period = among(1, 3);
    for (unsigned i = 0; i < period; i++)
        mean += (values[i] = 0.1 + uniform()) / period;
    /* the first two may not be like the rest; the mean of a block puts that right */
    CHECK(told(&s, values, period, 2000) <= 3);
    CHECK(fabs(s.told - mean) < 0.1 * mean);
}

static void what_persists_is_told_after_four(void)
{
    struct inv_steady s = {0};
    double before = 0, after = 0;
    test = __func__;
    state = seed + 5;
    before = 0.1 + uniform();
    after = before * (among(0, 1) ? 1.2 + uniform() : 0.8 - 0.6 * uniform());
    told(&s, &before, 1, 1 + among(1, 100));
    CHECK(s.told == before);
    CHECK(told(&s, &after, 1, INV_STEADY_RUN - 1) == 0);
    CHECK(told(&s, &after, 1, 1) == 1);
    CHECK(fabs(s.told - after) < 1e-9);
    CHECK(told(&s, &after, 1, 100) == 0);
}

static void the_end_of_a_block_does_not_cut_a_run(void)
{
    struct inv_steady s = {0};
    double before = 1, after = 4;
    test = __func__;
    CHECK(told(&s, &before, 1, INV_STEADY_FIRST + INV_STEADY_BLOCK - 2) == 1);
    CHECK(told(&s, &after, 1, INV_STEADY_RUN - 1) == 0); /* the mean of the block is off by then */
    CHECK(told(&s, &after, 1, 1) == 1 && s.told == after);
}

static void noise_is_told_seldom(void)
{
    struct inv_steady s = {0};
    unsigned count = 0;
    test = __func__;
    state = seed + 5;
    for (int i = 0; i < 2000; i++)
        count += inv_steady_add(&s, 1 + 0.08 * (uniform() - 0.5));
    CHECK(count <= 4);
}

/* --- holding cores in short waits */

enum { MS = 1000000 };

/* Iterations of so many ns, one in 300 of which is interrupted for as long as a time slice, for so long.
 * Returns in which part of the last second waits held. */
static double held_part(struct shim_short_waits *h, uint64_t *now, double lends_ns, double holds_ns,
                        uint64_t duration_ns)
{
    uint64_t end = *now + duration_ns, held = 0, last = end - 1000 * (uint64_t)MS;
    while (*now < end) {
        enum shim_short_wait_mode mode = shim_short_waits_mode(h->word, *now);
        double ns = (mode == SHIM_HOLDS ? holds_ns : lends_ns) * (0.9 + 0.2 * uniform());
        ns += among(1, 300) == 1 ? 4.0 * MS : 0;
        held += *now > last && mode == SHIM_HOLDS ? (uint64_t)ns : 0;
        *now += (uint64_t)ns;
        shim_short_waits_add_iteration(h, *now);
    }
    return (double)held / (1000.0 * MS);
}

static void what_is_better_is_done(void)
{
    struct shim_short_waits h = {0};
    test = __func__;
    state = seed + 6;
    uint64_t now = (uint64_t)random32() * 1000;
    double ns = among(100, 3000) * 1000.0;
    CHECK(held_part(&h, &now, 1.4 * ns, ns, 4000 * (uint64_t)MS) > 0.9);
    CHECK(held_part(&h, &now, ns, 1.4 * ns, 30000 * (uint64_t)MS) < 0.1); /* the program has changed */
    struct shim_short_waits other = {0};
    CHECK(held_part(&other, &now, ns, 1.4 * ns, 4000 * (uint64_t)MS) < 0.1);
}

static void long_iterations_lend(void)
{
    struct shim_short_waits h = {0};
    test = __func__;
    state = seed + 7;
    uint64_t now = (uint64_t)random32() * 1000;
    CHECK(held_part(&h, &now, 20.0 * MS, 10.0 * MS, 4000 * (uint64_t)MS) < 0.01);
    held_part(&h, &now, 2.0 * MS, 1.0 * MS, 2000 * (uint64_t)MS);
    CHECK(h.word != 0);
    for (int i = 0; i < 4; i++)
        shim_short_waits_no_iteration(&h);
    CHECK(h.word == 0 && shim_short_waits_mode(h.word, now) == SHIM_LENDS);
}

/* Whatever a rank is told, it does the same as another one that is told the same. */
static void any_word_is_understood(void)
{
    test = __func__;
    state = seed + 8;
    enum shim_short_wait_mode mode = shim_short_waits_mode(random32(), (uint64_t)random32() << 20);
    CHECK(mode == SHIM_LENDS || mode == SHIM_HOLDS);
}

static void (*const tests[])(void) = {
    what_is_better_is_done,
    long_iterations_lend,
    any_word_is_understood,
    a_loop_is_found_after_any_prologue_and_kept,
    a_loop_of_different_calls_has_one_end_a_round,
    a_step_with_output_is_another_class,
    inner_loops_of_any_length_do_not_make_new_classes,
    longer_iterations_are_those_of_the_outer_loop,
    without_an_outer_loop_iterations_are_bundled,
    a_new_loop_is_found_when_the_old_one_is_forgotten,
    an_irregular_program_has_no_iterations,
    nonsense_does_no_harm,
    a_graph_is_monotone_and_concave_whatever_is_measured,
    a_graph_is_near_what_was_measured,
    a_graph_forgets_what_was_measured_long_ago,
    nothing_measured_is_no_graph,
    what_alternates_is_told_a_few_times,
    what_persists_is_told_after_four,
    the_end_of_a_block_does_not_cut_a_run,
    noise_is_told_seldom,
};

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++)
        for (seed = 1; seed <= rounds; seed++)
            tests[t]();
    printf("%lu checks, %lu failures\n", checks, failures);
    return failures != 0;
}
