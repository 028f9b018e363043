// SPDX-License-Identifier: GPL-3.0-or-later
//
// cells_tbb.cc - the kernel of cells.h with Threading Building Blocks, for bench/run study: each
// step a parallel_for over the cells.  Emulated, there are as many threads as emulated CPUs (an
// arena of that size; without one TBB has no more than the machine has CPUs).
#include "cells.h"

#include <memory>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

static void simulate(const cells_options &o)
{
    for (long t = 0; t < o.steps; t++) {
        const long cells = cells_of_step(&o, t);
        cells_serial(&o, t, cells);
        // The emulated machine has two chunks for each CPU, as OpenMP has implicit tasks.
        const long grain = o.machine ? (cells + 2 * o.cpus - 1) / (2 * o.cpus) : 1;
        tbb::parallel_for(tbb::blocked_range<long>(0, cells, static_cast<size_t>(grain)),
                          [&](const tbb::blocked_range<long> &r) {
                              cells_compute(&o, t, r.begin(), r.end());
                          });
    }
}

int main(int argc, char **argv)
{
    const cells_options o = cells_parse(argc, argv);
    const double start = machine_now();
    std::unique_ptr<tbb::global_control> threads;
    if (o.machine) {
        machine_open(o.machine);
        threads = std::make_unique<tbb::global_control>(
            tbb::global_control::max_allowed_parallelism, o.cpus);
    }
    cells_fill(o.cells);
    if (o.machine)
        tbb::task_arena(o.cpus).execute([&] { simulate(o); });
    else
        simulate(o);
    std::printf("seconds %.6f\nchecksum %016llx\n", machine_now() - start,
                static_cast<unsigned long long>(cells_checksum(o.cells)));
    return 0;
}
