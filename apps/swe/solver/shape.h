// SPDX-License-Identifier: GPL-3.0-or-later
// shape.h - geometry of the cells for methods that have more than a mean: constants by orientation.
//
// Bisection makes triangles of one form in 16 orientations (triangle.h); all that a method of
// order 1 asks of a cell is in these tables for a leg of length 1, and is scaled by the leg.
// An edge of a run (patch.h) sees the cell beside it in one of three places: the edge is the cell's
// hypotenuse, or a leg with the right angle at the edge's lesser or its greater end.
#ifndef SWE_SOLVER_SHAPE_H
#define SWE_SOLVER_SHAPE_H

#include <cstdint>
#include "../grid/triangle.h"

namespace swe {

// What an edge is in a cell.  "Lesser" and "greater" are of operator< of Lattice.
enum Place : std::uint8_t {
    PLACE_HYPOTENUSE = 0,
    PLACE_LESSER = 1,  // a leg; the right angle is at the lesser end
    PLACE_GREATER = 2, // a leg; the right angle is at the greater end
    PLACE_GHOST = 3,   // the cell is a ghost: it has values at the edge's points, and no inside
    PLACES = 4
};

constexpr Place place(const Triangle &t, int side)
{
    if (side == HYPOTENUSE)
        return PLACE_HYPOTENUSE;
    Lattice other = side == ENTRY_LEG ? t.entry : t.exit;
    return t.apex < other ? PLACE_LESSER : PLACE_GREATER;
}

// Indexed by orientation last, so that a kernel gathers from one row.
template <class Real> struct ShapeTable {
    // Entry, exit, apex, from the centroid.  The middle of the opposite edge is at -1/2 of it.
    Real corner_x[3][ORIENTATIONS], corner_y[3][ORIENTATIONS];
    // Gradient of the linear function that is 1 in the corner and 0 in the others.
    Real gradient_x[3][ORIENTATIONS], gradient_y[3][ORIENTATIONS];
    // Means of x*x, x*y, y*y over the cell, from the centroid; and the inverse of that matrix.
    Real moment_xx[ORIENTATIONS], moment_xy[ORIENTATIONS], moment_yy[ORIENTATIONS];
    Real inverse_xx[ORIENTATIONS], inverse_xy[ORIENTATIONS], inverse_yy[ORIENTATIONS];
    std::uint8_t direction[SIDES][ORIENTATIONS]; // of the edge
    std::uint8_t place[SIDES][ORIENTATIONS];     // of the edge in the cell
    bool left[SIDES][ORIENTATIONS];              // is the cell the edge's left one?
};

template <class Real> constexpr void fill_shape(ShapeTable<Real> &table, int o)
{
    const Triangle t = example(o);
    const Lattice corner[3] = {t.entry, t.exit, t.apex};
    const double leg = o % 2 ? 4 : 2 * 1.41421356237309504880, sign = o < 8 ? 1 : -1;
    double x[3] = {}, y[3] = {}, xx = 0, xy = 0, yy = 0;
    for (int i = 0; i < 3; i++) {
        x[i] = (3 * corner[i].x - t.entry.x - t.exit.x - t.apex.x) / (3 * leg);
        y[i] = (3 * corner[i].y - t.entry.y - t.exit.y - t.apex.y) / (3 * leg);
        xx += x[i] * x[i] / 12, xy += x[i] * y[i] / 12, yy += y[i] * y[i] / 12;
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        table.corner_x[i][o] = Real(x[i]), table.corner_y[i][o] = Real(y[i]);
        table.gradient_x[i][o] = Real(sign * (y[j] - y[k]));
        table.gradient_y[i][o] = Real(sign * (x[k] - x[j]));
    }
    const double det = xx * yy - xy * xy;
    table.moment_xx[o] = Real(xx), table.moment_xy[o] = Real(xy), table.moment_yy[o] = Real(yy);
    table.inverse_xx[o] = Real(yy / det), table.inverse_xy[o] = Real(-xy / det);
    table.inverse_yy[o] = Real(xx / det);
    for (int side = 0; side < SIDES; side++) {
        const Lattice a = side_begin(t, side), b = side_end(t, side);
        table.direction[side][o] = std::uint8_t(direction(a, b));
        table.place[side][o] = place(t, side);
        table.left[side][o] = is_left(a, b, opposite(t, side));
    }
}

template <class Real> constexpr ShapeTable<Real> make_shapes()
{
    ShapeTable<Real> table = {};
    for (int o = 0; o < ORIENTATIONS; o++)
        fill_shape(table, o);
    return table;
}

template <class Real> inline constexpr ShapeTable<Real> SHAPES = make_shapes<Real>();

} // namespace swe
#endif
