// SPDX-License-Identifier: GPL-3.0-or-later
// snapshot.h - what the writers of files get of a rank's part of the simulation: plain arrays.
#ifndef SWE_OUTPUT_SNAPSHOT_H
#define SWE_OUTPUT_SNAPSHOT_H

#include <cstdint>
#include <string>
#include <vector>

namespace swe {

// All cells of this rank in the order of the curve.  Lengths in m, times in s.
struct Snapshot {
    double time = 0;
    long step = 0;
    int rank = 0, ranks = 1;
    double dry = 1e-6;           // less water is none: such a cell has no surface
    std::vector<double> corners; // 6 a cell: x, y of entry, exit, apex
    std::vector<double> h, hu, hv, bed;
    std::vector<std::int32_t> depth, cluster;
};

// One cluster as a checkpoint has it: a subtree of root `root`, found by taking the second child
// where a bit of `path` is set (the highest of `levels` bits first).
struct ClusterState {
    std::int32_t root = 0;
    std::uint64_t path = 0;
    std::int32_t levels = 0;
    std::vector<std::uint8_t> depth; // a cell each
    std::vector<double> values;      // value v of cell c is values[v * cells + c]; without the bed
};

// All that a rank needs to go on.  Numbers are doubles also when the solver has floats.
struct RankState {
    double time = 0;
    long step = 0;
    long shortest_steps = 0; // see Account
    int rank = 0, ranks = 1;
    int root_depth = 0;        // of the roots that the clusters are below
    std::int32_t values = 3;   // a cell: 3 for order 0, 9 for order 1
    std::string configuration; // what must be the same to go on, as text (config.h)
    std::string gauges;        // where they are, as text (scenario/gauges.h)
    std::vector<ClusterState> clusters;
};

} // namespace swe
#endif
