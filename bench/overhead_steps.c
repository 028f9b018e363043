/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * overhead_steps.c - the kernel of apps/cells, always 128 cells, in blocks of steps that
 * bench/run overhead asks for: a request on standard input is a line
 *
 *   STEPS ROUNDS FORM...     FORM: off, nonblocking, blocking, nonblocking-changing, ...
 *
 * and the answer a line for each round: in each of the forms, microseconds a step, the mean and the
 * median; then how long a cache line took from one thread to the other and back, before and after.
 * The median is not changed by what else runs on the machine now and then.  Virtual cores may be
 * two threads of one core now and far apart the next second: only blocks with like lines can be
 * compared (see calls.c).  The first line that it prints says how long the first region took.
 *
 * Like apps/cells it knows the public interface, and does without where that is not there.
 */
#define _GNU_SOURCE
#include "../apps/cells/cells.h"
#include "bench/two.h"
#include "invasive.h"

#include <omp.h>

#pragma weak inv_reinvade

enum { CELLS = 128, FORMS = 8, LINE = 256, WARM_STEPS = 150, MOST_STEPS = 100000 };

static const struct cells_options options = {.cells = CELLS, .least = 1};

static void one_step(const char *form, long step)
{
    if (form[0] != 'o' && inv_reinvade) {
        struct inv_claim claim;
        struct inv_constraint need = {.workload = CELLS};
        if (strstr(form, "-changing"))
            need.workload += (double)(step % 2);
        inv_reinvade(&need, form[0] == 'b' ? INV_BLOCKING : INV_NONBLOCKING, &claim);
    }
#pragma omp parallel for schedule(static)
    for (long c = 0; c < CELLS; c++)
        cells_compute(&options, 0, c, c + 1);
}

struct block {
    double mean_us, median_us; /* of a step */
};

static struct block compute_block(const char *form, long steps)
{
    static double took[MOST_STEPS];
    double start = machine_now(), last = start, now = start;
    for (long t = 0; t < steps; t++, last = now) {
        one_step(form, t);
        now = machine_now();
        took[t] = now - last;
    }
    double median = two_quantile(took, (unsigned)steps, 0.5);
    return (struct block){(now - start) * 1e6 / (double)steps, median * 1e6};
}

/* A line's journey, the shortest of some means.  Zero when the threads do not run at the same time:
 * each gives up by itself.  release, acquire: as any flag; only the journey is of interest. */
static double line_us(void)
{
    enum { MEANS = 8, JOURNEYS = 16, PATIENCE = 20000 };
    static long line __attribute__((aligned(128)));
    double best = 0;
    line = 0;
#pragma omp parallel num_threads(2)
    {
        long me = omp_get_thread_num(), i = me, spins = 0;
        double start = machine_now();
        for (; i < 2L * MEANS * JOURNEYS && spins < PATIENCE; i += 2) {
            for (spins = 0; __atomic_load_n(&line, __ATOMIC_ACQUIRE) != i && spins < PATIENCE;)
                spins++;
            __atomic_store_n(&line, i + 1, __ATOMIC_RELEASE);
            if (me == 0 && i % (2L * JOURNEYS) == 0 && i > 0) {
                double now = machine_now(), mean = (now - start) * 1e6 / JOURNEYS;
                best = best == 0 || mean < best ? mean : best;
                start = now;
            }
        }
        if (spins >= PATIENCE && me == 0)
            best = 0;
    }
    return best;
}

static void answer(char *request)
{
    char *form[FORMS], *rest = request;
    long steps = strtol(rest, &rest, 10), rounds = strtol(rest, &rest, 10);
    int forms = 0;
    for (char *word = strtok(rest, " \n"); word && forms < FORMS; word = strtok(NULL, " \n"))
        form[forms++] = word;
    if (steps < 1 || steps > MOST_STEPS)
        exit(2);
    compute_block("off", WARM_STEPS);
    for (long r = 0; r < rounds; r++) {
        struct block done[FORMS] = {0};
        double before = line_us();
        for (int f = 0; f < forms; f++) /* each of them first in its turn */
            done[(f + r) % forms] = compute_block(form[(f + r) % forms], steps);
        double after = line_us();
        for (int f = 0; f < forms; f++)
            printf("%.4f %.4f ", done[f].mean_us, done[f].median_us);
        printf("%.4f %.4f\n", before, after);
    }
    fflush(stdout);
}

int main(void)
{
    char request[LINE];
    cells_fill(CELLS);
    double start = machine_now();
    one_step("off", 0);
    printf("%.2f\n", (machine_now() - start) * 1e6);
    fflush(stdout);
    while (fgets(request, sizeof request, stdin))
        answer(request);
    return 0;
}
