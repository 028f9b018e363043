// SPDX-License-Identifier: GPL-3.0-or-later
// orientation.h - the sixteen ways in which a triangle of the grid can lie.
//
// The hypotenuse, from entry to exit, points into one of eight directions, and the apex is to its
// left or right.  What kernels ask about a cell's edges depends on nothing else, and the children's
// orientations depend on the parent's, so walks over the tree carry a number instead of points.
#ifndef SWE_GRID_ORIENTATION_H
#define SWE_GRID_ORIENTATION_H

#include <array>
#include "triangle.h"

namespace swe {

constexpr int ORIENTATIONS = 16;

// 0 .. 15: twice the number of eighths of a turn from east to the hypotenuse's direction, plus 1
// if the apex is to its left.
inline int orientation(const Triangle &t)
{
    std::int64_t dx = t.exit.x - t.entry.x, dy = t.exit.y - t.entry.y;
    int sx = (dx > 0) - (dx < 0), sy = (dy > 0) - (dy < 0);
    constexpr int eighth[3][3] = {{5, 4, 3}, {6, 0, 2}, {7, 0, 1}}; // [sx + 1][sy + 1]
    std::int64_t turn = dx * (t.apex.y - t.entry.y) - dy * (t.apex.x - t.entry.x);
    return 2 * eighth[sx + 1][sy + 1] + (turn > 0);
}

struct OrientationTable {
    std::array<std::array<std::uint8_t, 2>, ORIENTATIONS> child;          // first, second
    std::array<std::array<std::uint8_t, SIDES>, ORIENTATIONS> direction;  // of each side
    std::array<std::array<bool, SIDES>, ORIENTATIONS> is_left;            // is the cell, of that side

    OrientationTable();
};

// Immutable, made before main.
extern const OrientationTable ORIENTATION;

} // namespace swe
#endif
