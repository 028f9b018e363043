/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* clock.c - see clock.h. */
#include "mpi-shim/measure/clock.h"

uint64_t shim_us = 1000;
/* Written by shim_clock_start, read by shim_clock_measure: in MPI_Init, or where the first session
 * opens, by its thread. */
static struct {
    uint64_t ticks, ns;
} begin;

void shim_clock_start(void)
{
    begin.ticks = shim_ticks();
    begin.ns = inv_now_ns();
}

void shim_clock_measure(void)
{
    uint64_t ns = inv_now_ns() - begin.ns;
    uint64_t ticks = shim_ticks() - begin.ticks;
    if (ns > 1000000)
        shim_us = (uint64_t)((double)ticks * 1000.0 / (double)ns + 0.5);
    if (shim_us == 0)
        shim_us = 1;
}
