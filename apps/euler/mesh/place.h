// SPDX-License-Identifier: GPL-3.0-or-later
// place.h - the place of a cell in a tripartitioned spacetree, and Peano's curve through all cells.
//
// The curve (Peano 1890; digits as in Sagan, Space-Filling Curves, 1994, 3.2): a digit of a
// coordinate is reversed, 2 - digit, where the sum of the other axes' digits before it is odd.
#ifndef EULER_PLACE_H
#define EULER_PLACE_H

#include <array>
#include <cstdint>

namespace euler {

constexpr int DEEPEST = 12; // level; three times as many ternary digits fit into 64 bits

// 3^n, n from 0 to 40.
constexpr std::uint64_t power_of_3(int n)
{
    std::uint64_t result = 1;
    while (n-- > 0)
        result *= 3;
    return result;
}

// A cell of level l is one of 3^l along each axis, x of them are before it.
template <int D> struct Place {
    int level = 0;
    std::array<std::int32_t, D> x{};

    bool operator==(const Place &other) const { return level == other.level && x == other.x; }

    Place parent() const
    {
        Place up = *this;
        up.level--;
        for (auto &coordinate : up.x)
            coordinate /= 3;
        return up;
    }

    // Number of a child: its third along each axis, the first axis innermost.
    int number_in_parent() const
    {
        int number = 0;
        for (int axis = D - 1; axis >= 0; axis--)
            number = 3 * number + x[axis] % 3;
        return number;
    }

    Place child(int number) const
    {
        Place down = *this;
        down.level++;
        for (auto &coordinate : down.x) {
            coordinate = 3 * coordinate + number % 3;
            number /= 3;
        }
        return down;
    }

    // Different for different places.
    std::uint64_t key() const
    {
        std::uint64_t key = static_cast<std::uint64_t>(level);
        for (auto coordinate : x)
            key = key << 20 | static_cast<std::uint64_t>(coordinate);
        return key;
    }
};

// Where the curve comes to the cell, in cells of level DEEPEST.  It stays there for
// 3^(D * (DEEPEST - level)) of them.
template <int D> std::uint64_t peano(const Place<D> &place)
{
    std::uint64_t index = 0;
    std::array<int, D> sum{}; // of the digits so far, along each axis
    int all = 0;
    for (int level = 1; level <= place.level; level++) {
        const auto scale = static_cast<std::int64_t>(power_of_3(place.level - level));
        for (int axis = 0; axis < D; axis++) {
            const int digit = static_cast<int>(place.x[axis] / scale % 3);
            const bool is_reversed = (all - sum[axis]) % 2;
            index = 3 * index + static_cast<std::uint64_t>(is_reversed ? 2 - digit : digit);
            sum[axis] += digit;
            all += digit;
        }
    }
    return index * power_of_3(D * (DEEPEST - place.level));
}

} // namespace euler
#endif
