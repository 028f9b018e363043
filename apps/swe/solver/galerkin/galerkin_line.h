// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin_line.h - values of a cell's linear functions at the points of its edges (galerkin.h).
//
// One arithmetic for the kernel over edges and for what a patch tells its neighbours, so that both
// have the same bits.  A ghost has its values at the two points where a cell has slopes; weight 0
// and the offsets (1,0) and (0,1) make the cell's formula give just these values.
#ifndef SWE_SOLVER_GALERKIN_LINE_H
#define SWE_SOLVER_GALERKIN_LINE_H

#include "galerkin.h"
#include "../vectors/lanes.h"

namespace swe {

// From the centroid of the cell to the Gauss points of its edge.
template <class Real> struct EdgePoints {
    Real weight; // of the mean: 1, or 0 in a ghost
    Real x[2], y[2];
};

template <class Real>
inline EdgePoints<Real> edge_points(int direction, bool left, int place, Real length)
{
    if (place == PLACE_GHOST)
        return {0, {1, 0}, {0, 1}};
    const double gauss = 0.28867513459481288225; // 1 / (2 sqrt 3)
    const double nx = NORMAL_X[direction], ny = NORMAL_Y[direction];
    // From the lesser end to the greater: the normal turned by a quarter.
    const double turn = direction == 0 ? 1 : -1, tx = -turn * ny, ty = turn * nx;
    const double out = (left ? 1.0 : -1.0) / (place == PLACE_HYPOTENUSE ? 6 : 3);
    const double along = place == PLACE_HYPOTENUSE ? 0 : place == PLACE_LESSER ? 1.0 / 6 : -1.0 / 6;
    EdgePoints<Real> points = {};
    points.weight = 1;
    for (int p = 0; p < 2; p++) {
        const double t = along + (p == 0 ? -gauss : gauss);
        points.x[p] = Real((out * nx + t * tx) * double(length));
        points.y[p] = Real((out * ny + t * ty) * double(length));
    }
    return points;
}

template <class Value> struct PointState {
    Value h, hu, hv, bed;
};

// Values of the cell, or of a vector of them, at an edge's point x, y.  In shallow water the bed
// counts as its mean.
template <class Value> SWE_INLINE PointState<Value>
at_point(const Value *dof, const Value &full, const Value &weight, const Value &x, const Value &y)
{
    const Value zero{};
    const Value bed_x = dof[DEPTH] > full ? dof[BED_X] : zero;
    const Value bed_y = dof[DEPTH] > full ? dof[BED_Y] : zero;
    const Value h_x = dof[SURFACE_X] - weight * bed_x, h_y = dof[SURFACE_Y] - weight * bed_y;
    const Value h = weight * dof[DEPTH] + h_x * x + h_y * y;
    return {maximum(zero, h), // the limiter keeps it positive; this is for rounding
            weight * dof[HU] + dof[HU_X] * x + dof[HU_Y] * y,
            weight * dof[HV] + dof[HV_X] * x + dof[HV_Y] * y,
            weight * dof[BED] + bed_x * x + bed_y * y};
}

} // namespace swe
#endif
