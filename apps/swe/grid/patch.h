// SPDX-License-Identifier: GPL-3.0-or-later
// patch.h - the cells and edges of one cluster as the solver's kernels see them: plain arrays.
//
// Cells 0 .. cells-1 are the cluster's, in the order of the Sierpinski curve; cells ..
// cells+ghosts-1 are copies of what is on the other side of its boundary, one an edge of the
// boundary.  Edges are sorted into runs of one direction and one length.  A cell's three edges have
// three directions; so within a run no cell occurs twice, and a kernel may scatter to both
// cells of an edge without a conflict.  The order of a cell's edges by runs is by length, then
// direction: it depends on the geometry alone, and so do results, to the last bit.
#ifndef SWE_GRID_PATCH_H
#define SWE_GRID_PATCH_H

#include <cstdint>
#include "triangle.h"

namespace swe {

// Depth d of a cell: bisections since the base square's quarter, whose hypotenuse is a side of the
// square.  Its hypotenuse has size d, its legs d + 1.
constexpr int DEPTHS = 2 * LATTICE_BITS;

struct EdgeRun {
    std::int32_t first, last; // edges first .. last-1
    std::uint8_t direction;   // of NORMAL_X, NORMAL_Y
    std::uint8_t size;        // length is Metric::length[size]
};

// Lengths in metres.
template <class Real> struct Metric {
    Real length[DEPTHS + 1]; // of an edge, by its size
    Real over_area[DEPTHS];  // 1 / area of a cell, by its depth
    Real inradius[DEPTHS];   // of a cell, by its depth; the time step is in terms of it
};

// Memory is the cluster's.  Arrays of cells begin at a multiple of 64 bytes.
template <class Real> struct Patch {
    std::int32_t cells, ghosts;
    Real *h, *hu, *hv;         // [cells + ghosts] water height in m, momenta in m2/s
    Real *bed;                 // [cells + ghosts] height of the bed in m, positive upwards
    const std::uint8_t *depth; // [cells]
    std::int32_t edges;
    const std::int32_t *left, *right; // [edges] cells; see triangle.h
    const EdgeRun *runs;
    std::int32_t run_count;
};

} // namespace swe
#endif
