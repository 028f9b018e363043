// SPDX-License-Identifier: GPL-3.0-or-later
// orientation.cc - the table, read off one triangle of each orientation.
#include "orientation.h"

namespace swe {

OrientationTable::OrientationTable()
{
    for (int o = 0; o < ORIENTATIONS; o++) {
        Triangle t = example(o);
        child[o] = {static_cast<std::uint8_t>(orientation(t.first())),
                    static_cast<std::uint8_t>(orientation(t.second()))};
        for (int side = 0; side < SIDES; side++) {
            Lattice a = side_begin(t, side), b = side_end(t, side);
            direction[o][side] = static_cast<std::uint8_t>(swe::direction(a, b));
            is_left[o][side] = swe::is_left(a, b, opposite(t, side));
            outward[o][side] =
                static_cast<std::uint8_t>(direction[o][side] + (is_left[o][side] ? 0 : DIRECTIONS));
        }
    }
}

const OrientationTable ORIENTATION;

} // namespace swe
