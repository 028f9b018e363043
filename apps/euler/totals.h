// SPDX-License-Identifier: GPL-3.0-or-later
// totals.h - what a result comes to: conserved sums, a checksum, the error.  All are collective,
// and the same for any number of ranks, bit by bit.
#ifndef EULER_TOTALS_H
#define EULER_TOTALS_H

#include <array>
#include <cstdint>
#include "simulation.h"

namespace euler {

using Unknowns = std::array<double, MOST_DIMENSIONS + 2>;

// The integral of each unknown over the domain, of rank 0 only: leaves are added in the order of
// the curve, those of a base cell first.
template <int D> Unknowns totals(const Simulation<D> &simulation);

// Of all cells, their places and their states.
template <int D> std::uint64_t checksum(const Simulation<D> &simulation);

// Of the density, against the scenario's solution at the same time; on rank 0 only.
struct Errors {
    double l1, l2, max; // means over the domain, and the largest of any point
};
template <int D> Errors errors(const Simulation<D> &simulation);

} // namespace euler
#endif
