// SPDX-License-Identifier: GPL-3.0-or-later
// edge.h - what a flux gets and gives at an edge between two cells.
//
// A flux sees its own cell, the other cell, and the unit normal (nx, ny) that points to the other.
// It must be antisymmetric to the last bit: with the cells exchanged and the normal reversed,
// it gives the same numbers with the opposite sign, and lost and gained exchanged.  Then it does
// not matter which of the two cells, or of two clusters, computes it; and mirrored scenarios stay
// mirrored.
//
// Of the momentum, the pressure g h^2 / 2 of a cell's own state is left out on that cell's side:
// over the three edges of a cell it adds up to nothing, and without it there is nothing to be
// lost to rounding in a lake at rest.
#ifndef SWE_SOLVER_EDGE_H
#define SWE_SOLVER_EDGE_H

#include "vectors/lanes.h"

namespace swe {

template <class Value> struct CellState {
    Value h;    // water height, m
    Value u, v; // velocity, m/s; 0 in a dry cell
    Value c;    // sqrt(g h), m/s
    Value bed;  // m
};

// Per metre of the edge and second.
template <class Value> struct EdgeFlux {
    Value mass;           // leaves the own cell and enters the other
    Value lost_x, lost_y; // momentum that the own cell loses
    Value gained_x,
        gained_y; // momentum that the other cell gains: they differ by the force of the bed
};

} // namespace swe
#endif
