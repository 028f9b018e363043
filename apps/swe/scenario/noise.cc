// SPDX-License-Identifier: GPL-3.0-or-later
// noise.cc - see noise.h.
#include "noise.h"

#include <cmath>

namespace swe {
namespace {

// Finaliser of splitmix64: Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195.
std::uint64_t mixed(std::uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// From 0 to 1 with first and second derivatives 0 at both ends.
double ease(double t) { return t * t * t * (t * (t * 6 - 15) + 10); }

} // namespace

double Noise::at(std::int64_t i, std::int64_t j) const
{
    std::uint64_t z =
        mixed(mixed(seed_ ^ mixed(static_cast<std::uint64_t>(i))) + static_cast<std::uint64_t>(j));
    return static_cast<double>(z >> 11) * (1.0 / (1ull << 52)) - 1;
}

double Noise::operator()(double x, double y) const
{
    double x0 = std::floor(x), y0 = std::floor(y);
    auto i = static_cast<std::int64_t>(x0), j = static_cast<std::int64_t>(y0);
    double s = ease(x - x0), t = ease(y - y0);
    double south = at(i, j) + s * (at(i + 1, j) - at(i, j));
    double north = at(i, j + 1) + s * (at(i + 1, j + 1) - at(i, j + 1));
    return south + t * (north - south);
}

double Noise::rough(double x, double y, int octaves) const
{
    double sum = 0, part = 1;
    for (int k = 0; k < octaves; k++) {
        sum += part * Noise(seed_ + static_cast<std::uint64_t>(k))(x, y);
        // Not the same points again: their flat spots would show.
        x = 2 * x + 17.25;
        y = 2 * y - 5.75;
        part /= 2;
    }
    return sum;
}

} // namespace swe
