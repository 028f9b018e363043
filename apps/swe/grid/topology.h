// SPDX-License-Identifier: GPL-3.0-or-later
// topology.h - which cells of a cluster share an edge, from the depths of its cells alone.
//
// The cells of a cluster are the leaves of a binary tree in the order of the curve, and the
// sequence of their depths determines the tree.  A walk over it hands up, for each triangle, the
// chains of cell sides along its hypotenuse and legs.  Two children are joined by closing the
// chains along the leg that they share, one of them backwards, link by link: in a conforming grid
// these are equally long.  What is left at the root is the cluster's boundary, in order along it.
// Each link is closed once, so the whole takes time in proportion to the cells.
#ifndef SWE_GRID_TOPOLOGY_H
#define SWE_GRID_TOPOLOGY_H

#include <cstdint>
#include <vector>
#include "../../lib/aligned.h"
#include "patch.h"
#include "unset.h"

namespace swe {

using namespace apps;

// Side s of cell c is number 3 * c + s.
struct Topology {
    std::int32_t cells = 0, ghosts = 0;
    std::int32_t side_edges[SIDES] = {};   // edges of the boundary on each side of the cluster
    std::vector<std::uint8_t> orientation; // [cells]
    UnsetVector<std::int32_t> mate;        // [3 * cells] the cell side across, or ~ghost
    std::vector<std::int32_t> boundary;    // [ghosts] the cell side that the ghost is across
    // If asked for, see patch.h.
    AlignedVector<std::int32_t> left, right; // [edges]
    std::vector<EdgeRun> runs;

    // The cell, or the number of cells plus the ghost's number, across a cell side.
    std::int32_t across(std::int32_t s) const
    {
        return mate[s] < 0 ? cells + ~mate[s] : mate[s] / SIDES;
    }

    // Number of the first ghost on a side of the cluster.
    std::int32_t side_first(int side) const
    {
        return side == HYPOTENUSE  ? 0
               : side == ENTRY_LEG ? side_edges[HYPOTENUSE]
                                   : side_edges[HYPOTENUSE] + side_edges[ENTRY_LEG];
    }
};

// Of the subtree whose root has this depth and orientation, without edges.  Depths must be those
// of all leaves of such a tree, in order, and the grid must be conforming: checked,
// std::logic_error otherwise.
Topology connect_cells(int root_depth, int root_orientation,
                       const std::vector<std::uint8_t> &depth);

// The edges, sorted into runs, of connected cells.
void add_edges(Topology &topology, const std::vector<std::uint8_t> &depth);

// Both.
Topology make_topology(int root_depth, int root_orientation,
                       const std::vector<std::uint8_t> &depth);

} // namespace swe
#endif
