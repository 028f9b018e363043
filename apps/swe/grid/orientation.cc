// SPDX-License-Identifier: GPL-3.0-or-later
// orientation.cc - the table, read off one triangle of each orientation.
#include "orientation.h"

namespace swe {

static Triangle example(int number)
{
    constexpr Lattice east[8] = {{1, 0},  {1, 1},   {0, 1},  {-1, 1},
                                 {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};
    constexpr std::int64_t size = 16; // so that children's corners are on the lattice
    Lattice along = east[number % 8];
    bool left = number < 8;
    Lattice across = left ? Lattice{-along.y, along.x} : Lattice{along.y, -along.x};
    Lattice entry{0, 0}, exit{2 * size * along.x, 2 * size * along.y};
    return {entry, exit, {size * (along.x + across.x), size * (along.y + across.y)}};
}

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
