// SPDX-License-Identifier: GPL-3.0-or-later
// basin.cc - see basin.h.
#include "basin.h"

#include <cmath>

namespace swe {
namespace {

struct Knot {
    double distance, height; // from the coast, eastwards, km; of the bed, m
};
constexpr Knot PROFILE[] = {{-400, 1500}, {-60, 300},   {-5, 15},     {0, 0},       {5, -25},
                            {40, -150},   {60, -450},   {140, -2500}, {225, -6200}, {240, -7500},
                            {255, -7500}, {275, -6200}, {320, -5400}, {420, -5600}};
constexpr int KNOTS = sizeof PROFILE / sizeof PROFILE[0];
constexpr double TRENCH = 247.5;             // km from the coast
constexpr double TRENCH_X = 65;              // km east of the centre
constexpr double TILT = 0.36397023426620234; // tangent of 20 degrees

double profile(double distance)
{
    if (distance <= PROFILE[0].distance)
        return PROFILE[0].height;
    for (int i = 1; i < KNOTS; i++)
        if (distance < PROFILE[i].distance) {
            const Knot &a = PROFILE[i - 1], &b = PROFILE[i];
            return a.height +
                   (b.height - a.height) * (distance - a.distance) / (b.distance - a.distance);
        }
    return PROFILE[KNOTS - 1].height;
}

} // namespace

double Basin::at(double x, double y) const
{
    double east = (x - x0_) / 1000, north = (y - y0_) / 1000; // km
    double distance = east - TRENCH_X - TILT * north + TRENCH;
    // Bays, and a shelf of changing width; not felt from the trench on.
    double off_trench = std::fmin(1, std::fmax(0, (TRENCH - 20 - distance) / 200));
    distance += 20 * off_trench * noise_.rough(east / 120, north / 120, 4);
    // Hills and seamounts, in parts of the height: sea stays sea, land stays land.
    return profile(distance) * (1 + 0.12 * noise_.rough(east / 70 + 0.5, north / 70, 4));
}

} // namespace swe
