/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * claim.c - a program that knows its needs and says so: invade, infect, reinvade, retreat.
 *
 *     cc -fopenmp claim.c -linvasive -lm -o claim
 *     ./claim                 no resource manager: runs on the cores that it has
 *     invade ./claim          the resource manager decides
 *
 * Each time step has its own amount of work.  The result does not depend on how many cores
 * computed it.
 */
#include <errno.h>
#include <invasive.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_claim(const char *when, struct inv_claim claim)
{
    printf("%-10s %s, owns %u, holds %u\n", when, claim.managed ? "managed" : "unmanaged",
           claim.owned_cores, claim.held_cores);
}

/* Infect: a parallel region computes on the cores of the claim. */
static double step(long cells)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < cells; i++)
        sum += floor(sqrt((double)i)); /* whole numbers: exact in any order */
    return sum;
}

int main(void)
{
    struct inv_claim claim;
    struct inv_constraint constraint = {.min_cores = 1, .workload = 1000};

    if (inv_invade(&constraint, INV_BLOCKING, &claim) != 0) {
        fprintf(stderr, "claim: cannot invade: %s\n", strerror(errno));
        return 1;
    }
    print_claim("invaded", claim);

    double sum = 0;
    for (int t = 1; t <= 4; t++) {
        constraint.workload = 1000.0 * t; /* cells; the same unit in all processes */
        inv_reinvade(&constraint, INV_NONBLOCKING, NULL);
        sum += step(1000L * t);
    }
    print_claim("computed", inv_claim_now());

    inv_retreat();
    printf("sum %.0f\n", sum);
    return 0;
}
