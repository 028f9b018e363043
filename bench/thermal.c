/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * thermal.c - two simulated chips that rmd's thermal loop (rmd/power/thermal.h) keeps below a
 * threshold.
 *
 *   thermal THRESHOLD SECONDS STEP
 *
 * A chip warms up towards 40 degrees and a part by the cube of its speed, with a time constant of
 * SECONDS: at full speed to 100 degrees for the first chip, to 85 for the second one.  The sensors
 * tell multiples of STEP degrees.  LOOKS seconds from cold chips on, of which the second half counts
 * for time.  Work is divided among the chips by their speed, so time is the inverse of the sum of
 * their speeds.
 *
 * Prints `time`, over that of the best constant speed of each chip that stays below the threshold;
 * `together`, the same with one speed for both chips, that of the hotter one; `above`, the part of the
 * time for which a chip was above the threshold, in per cent; `excess`, by how many degrees at most.
 */
#include "rmd/power/thermal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOKS = 600, STEPS_A_LOOK = 10, CHIPS = 2 };

static const double COLD = 30, IDLE = 40;

struct chip {
    double full;                /* degrees by which full speed warms it, over IDLE */
    double degrees, seen, part; /* now; by its sensor at the last look; of the highest speed */
};

struct result {
    double speeds, slowest; /* sums over the looks that count: of all chips, of the slower one */
    unsigned above;         /* steps */
    double excess;
};

static double threshold, seconds, step; /* of the command line */

static double read_sensor(const struct chip *c)
{
    return step > 0 ? floor(c->degrees / step) * step : c->degrees;
}

static void look(struct chip *c, bool first)
{
    double now = read_sensor(c);
    c->part = rmd_thermal_next(c->part, now, first ? now : c->seen, threshold);
    c->seen = now;
}

static void warm_up(struct chip *c, struct result *r)
{
    double goal = IDLE + c->full * pow(c->part, 3);
    for (int i = 0; i < STEPS_A_LOOK; i++) {
        c->degrees += (goal - c->degrees) / STEPS_A_LOOK / seconds;
        r->above += c->degrees > threshold;
        r->excess = fmax(r->excess, c->degrees - threshold);
    }
}

static double best_part(const struct chip *c)
{
    return fmin(1, cbrt(fmax(0, threshold - IDLE) / c->full));
}

static void simulate(struct chip chip[CHIPS], struct result *r)
{
    for (int n = 0; n < LOOKS; n++) {
        for (int i = 0; i < CHIPS; i++) {
            look(&chip[i], n == 0);
            warm_up(&chip[i], r);
        }
        if (n < LOOKS / 2)
            continue;
        r->speeds += chip[0].part + chip[1].part;
        r->slowest += CHIPS * fmin(chip[0].part, chip[1].part);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 64;
    threshold = atof(argv[1]);
    seconds = atof(argv[2]);
    step = atof(argv[3]);
    struct chip chip[CHIPS] = {{60, COLD, 0, 1}, {45, COLD, 0, 1}};
    struct result r = {.excess = -INFINITY};
    simulate(chip, &r);
    double best = (best_part(&chip[0]) + best_part(&chip[1])) * LOOKS / 2;
    printf("time %.4f\ntogether %.4f\nabove %.4f\nexcess %.3f\n", best / r.speeds, best / r.slowest,
           100.0 * r.above / (LOOKS * STEPS_A_LOOK * CHIPS), r.excess);
    return 0;
}
