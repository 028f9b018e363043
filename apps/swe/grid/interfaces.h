// SPDX-License-Identifier: GPL-3.0-or-later
// interfaces.h - the partner across each stretch of each cluster's boundary.
//
// The same closing of chains as inside a cluster (topology.h), one scale up: a link is now a
// stretch of a cluster's side, with a length.  Stretches that meet are cut to the shorter one, and
// each piece becomes a run in both clusters.  What is left at a root is closed with the root
// across, goes to the message for the rank that owns it, or is the domain's border.  No edge is
// looked at: the time is in proportion to the clusters.
#ifndef SWE_GRID_INTERFACES_H
#define SWE_GRID_INTERFACES_H

#include <array>
#include <cstdint>
#include <vector>
#include "cluster.h"
#include "forest.h"

namespace swe {

// What the closing needs to know of a cluster.
struct Outline {
    Node node;
    std::int32_t side_first[SIDES], side_edges[SIDES];
};

struct Interfaces {
    std::vector<std::vector<Run>> runs; // [clusters], by first ghost
    // Ranks that own a root across one of ours, and how many edges are shared with each.  Messages
    // have shared sides in the order of their lattice points, and edges of a side likewise.
    std::vector<int> neighbours;
    std::vector<std::int32_t> shared_edges;
};

// Clusters in the order of the curve; all of the rank's roots must be covered.
Interfaces make_interfaces(const Forest &forest, int rank, const std::vector<Outline> &clusters);

} // namespace swe
#endif
