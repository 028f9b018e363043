// SPDX-License-Identifier: GPL-3.0-or-later
// criterion.cc - see criterion.h.
#include "criterion.h"

#include <algorithm>
#include <cmath>

namespace euler {
namespace {

// Of the sphere, and of the circle that its centre goes along, in sides of the domain.
constexpr double RADIUS = 0.2, CIRCLE = 0.15;

struct Sphere {
    double centre[MOST_DIMENSIONS];
};

Sphere sphere_after(double wander, long step)
{
    const double angle = wander * static_cast<double>(step) / CIRCLE;
    return {{0.5 + CIRCLE * std::cos(angle), 0.5 + CIRCLE * std::sin(angle), 0.5}};
}

// Does the sphere's surface go through the cell?
template <int D> bool cuts(const Sphere &sphere, const Place<D> &place)
{
    const double side = 1 / static_cast<double>(power_of_3(place.level));
    double nearest = 0, farthest = 0;
    for (int axis = 0; axis < D; axis++) {
        const double low = place.x[axis] * side - sphere.centre[axis], high = low + side;
        const double near = low > 0 ? low : high < 0 ? -high : 0;
        const double far = std::max(std::fabs(low), std::fabs(high));
        nearest += near * near;
        farthest += far * far;
    }
    return nearest < RADIUS * RADIUS && farthest > RADIUS * RADIUS;
}

} // namespace

template <int D>
Mark mark_of(const Config &config, const Place<D> &place, const Look &look, long step)
{
    const auto &grid = config.grid;
    bool refine = look.variation > grid.refine, coarsen = look.variation < grid.coarsen;
    if (grid.wander > 0) {
        const Sphere sphere = sphere_after(grid.wander, step);
        refine = cuts(sphere, place);
        coarsen = place.level > 0 && !cuts(sphere, place.parent());
    }
    return refine ? Mark::REFINE : coarsen ? Mark::COARSEN : Mark::KEEP;
}

template Mark mark_of(const Config &, const Place<2> &, const Look &, long);
template Mark mark_of(const Config &, const Place<3> &, const Look &, long);

} // namespace euler
