// SPDX-License-Identifier: GPL-3.0-or-later
// orientation.h - what follows from a triangle's orientation (triangle.h), as tables.
//
// What kernels ask about a cell's edges depends on nothing else, and the children's orientations
// depend on the parent's, so walks over the tree carry a number instead of points.
#ifndef SWE_GRID_ORIENTATION_H
#define SWE_GRID_ORIENTATION_H

#include <array>
#include "triangle.h"

namespace swe {

struct OrientationTable {
    std::array<std::array<std::uint8_t, 2>, ORIENTATIONS> child;         // first, second
    std::array<std::array<std::uint8_t, SIDES>, ORIENTATIONS> direction; // of each side
    std::array<std::array<bool, SIDES>, ORIENTATIONS> is_left; // is the cell, of that side
    std::array<std::array<std::uint8_t, SIDES>, ORIENTATIONS>
        outward; // direction, plus DIRECTIONS if not left

    OrientationTable();
};

// Immutable, made before main.
extern const OrientationTable ORIENTATION;

} // namespace swe
#endif
