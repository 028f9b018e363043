/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* clock.c - see clock.h. */
#include "mpi-shim/measure/clock.h"

struct shim_clock shim_clock = {.us = 1000};

void shim_clock_start(void)
{
    shim_clock.begin_ticks = shim_ticks();
    shim_clock.begin_ns = inv_now_ns();
}

void shim_clock_measure(void)
{
    uint64_t ns = inv_now_ns() - shim_clock.begin_ns;
    uint64_t ticks = shim_ticks() - shim_clock.begin_ticks;
    if (ns > 1000000)
        shim_clock.us = (uint64_t)((double)ticks * 1000.0 / (double)ns + 0.5);
    if (shim_clock.us == 0)
        shim_clock.us = 1;
}
