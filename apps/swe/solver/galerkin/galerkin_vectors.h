// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin_vectors.h - what galerkin.cc does to a cell alone, as templates on Value (lanes.h): a
// number, or a vector of cells that follow each other in memory.
//
// What applies to some cells only, as the limiter does to those of order 1, is computed for all and
// then chosen: a lane that it does not apply to may have no number on the way.  Vectors and numbers
// give the same bits, so that what is left behind the last full vector of a patch are numbers.
#ifndef SWE_SOLVER_GALERKIN_VECTORS_H
#define SWE_SOLVER_GALERKIN_VECTORS_H

#include <algorithm>
#include "../vectors/cell_vectors.h"
#include "../friction.h"
#include "galerkin.h"

namespace swe {

// One comparison, used once; see unknown().
template <class Value> SWE_INLINE Value if_less(Value a, Value b, Value yes, Value no)
{
    a = unknown(a);
    return a < b ? yes : no;
}

// The table's entry index[lane] in each lane.
template <class Value, class Real>
SWE_INLINE Value look_up(const Real *table, const std::uint8_t *index)
{
    if constexpr (is_number<Value>) {
        return table[*index];
    } else {
        Value result{};
        for (int lane = 0; lane < lanes_of<Value>(); lane++)
            result[lane] = table[index[lane]];
        return result;
    }
}

// Corners and inverse moments of ShapeTable by orientation, three rows each.
template <class Real> struct ShapeRows {
    static constexpr int ROWS = 3;
    alignas(64) Real row[ORIENTATIONS][ROWS][ROW];

    constexpr ShapeRows() : row{}
    {
        const ShapeTable<Real> &shape = SHAPES<Real>;
        for (int o = 0; o < ORIENTATIONS; o++) {
            for (int i = 0; i < 3; i++)
                row[o][0][i] = shape.corner_x[i][o], row[o][1][i] = shape.corner_y[i][o];
            row[o][2][0] = shape.inverse_xx[o], row[o][2][1] = shape.inverse_xy[o];
            row[o][2][2] = shape.inverse_yy[o];
        }
    }
};
template <class Real> constexpr ShapeRows<Real> SHAPE_ROWS;

// The first three numbers of the row `which` of each cell's orientation: as long as there are four
// lanes or more, whole rows are read and transposed.
template <class Value, class Real>
SWE_INLINE void shape_row(const std::uint8_t *orientation, int which, Value *columns)
{
    const Real *rows = &SHAPE_ROWS<Real>.row[0][0][0];
    constexpr int LANES = lanes_of<Value>(), ROWS = ShapeRows<Real>::ROWS;
    if constexpr (LANES >= ROW) {
        std::int32_t at[LANES];
        for (int lane = 0; lane < LANES; lane++)
            at[lane] = ROWS * orientation[lane] + which;
        Value all_columns[ROW];
        gather_rows(rows, at, all_columns);
        std::copy_n(all_columns, 3, columns);
    } else if constexpr (is_number<Value>) {
        std::copy_n(rows + ROW * (ROWS * *orientation + which), 3, columns);
    } else {
        for (int i = 0; i < 3; i++) {
            Value column{};
            for (int lane = 0; lane < LANES; lane++)
                column[lane] = rows[ROW * (ROWS * orientation[lane] + which) + i];
            columns[i] = column;
        }
    }
}

// Corners in m from the centroid; the middle of the opposite edge is at -1/2 of it.
template <class Value> struct Corners {
    Value x[3], y[3];
};

template <class Value, class Real>
SWE_INLINE Corners<Value> corners_of(const std::uint8_t *orientation, Value leg)
{
    Corners<Value> at;
    shape_row<Value, Real>(orientation, 0, at.x);
    shape_row<Value, Real>(orientation, 1, at.y);
    for (int i = 0; i < 3; i++)
        at.x[i] = leg * at.x[i], at.y[i] = leg * at.y[i];
    return at;
}

// The numbers that all cells share.
template <class Real> struct Rules {
    Real gravity, dry, curvature, friction; // friction: dt g n^2

    Rules(const DgOptions<Real> &options, Real dt)
        : gravity(options.gravity), dry(std::max(options.dry_tolerance, least_number<Real>)),
          curvature(options.curvature),
          friction(dt * options.gravity * options.manning * options.manning)
    {
    }
};

// Flux of momentum by the flow, integrated over the cell's inside by the rule of its edges'
// middles, against the slope in x or y; per area.
template <class Value> struct Convection {
    Value uu, uv, vv;
};

template <class Value, class Real>
SWE_INLINE Convection<Value> convection(const Value *q, const Corners<Value> &at, Real dry)
{
    const Value zero{};
    Convection<Value> sum = {zero, zero, zero};
    const Value h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
    for (int i = 0; i < 3; i++) {
        const Value x = Real(-0.5) * at.x[i], y = Real(-0.5) * at.y[i];
        const Value h = q[DEPTH] + h_x * x + h_y * y;
        const Value hu = q[HU] + q[HU_X] * x + q[HU_Y] * y;
        const Value hv = q[HV] + q[HV_X] * x + q[HV_Y] * y;
        const Value over = if_less(all<Value>(dry), h, Value(1 / (3 * h)), zero);
        sum.uu += hu * hu * over, sum.uv += hu * hv * over, sum.vv += hv * hv * over;
    }
    return sum;
}

// The part of the slopes, 0 .. 1, that leaves the middles of the edges within low .. high (Barth
// and Jespersen 1989, doi 10.2514/6.1989-366), or a little beyond: the neighbours' centroids do not
// lie where the middles point to, and a linear function needs 5/4 of the range in some directions.
template <class Value, class Real> SWE_INLINE Value bounded(Value mean, Value slope_x,
                                                            Value slope_y, Value low, Value high,
                                                            const Corners<Value> &at)
{
    const Real reach = Real(1.25);
    const Value zero{}, one = all<Value>(Real(1));
    const Value up = reach * maximum(Value(high - mean), zero);
    const Value down = reach * minimum(Value(low - mean), zero);
    Value highest{}, lowest{};
    for (int i = 0; i < 3; i++) {
        const Value rise = Real(-0.5) * (slope_x * at.x[i] + slope_y * at.y[i]);
        highest = maximum(rise, highest), lowest = minimum(rise, lowest);
    }
    return minimum(if_less(up, highest, Value(up / highest), one),
                   if_less(lowest, down, Value(down / lowest), one));
}

// The part of the slopes that leaves a quarter of the mean depth in the corners, after Xing and
// Zhang 2013 (doi 10.1007/s10915-013-9695-y).  There is such a part as h > full.
template <class Value, class Real>
SWE_INLINE Value positive(const Value *q, const Corners<Value> &at)
{
    const Value zero{};
    Value part = all<Value>(Real(1));
    for (int i = 0; i < 3; i++) {
        const Value x = at.x[i], y = at.y[i];
        const Value room = Real(0.75) * q[DEPTH] - (q[BED_X] * x + q[BED_Y] * y);
        const Value fall = -(q[SURFACE_X] * x + q[SURFACE_Y] * y);
        const Value wanted = minimum(Value(maximum(room, zero) / fall), part);
        part = if_less(room, fall, wanted, part);
    }
    return part;
}

// What Manning's friction multiplies momentum and its slopes by, implicit in its factor.
template <class Value, class Real>
SWE_INLINE Value friction(const Value *q, const Rules<Real> &rules)
{
    const Value dry = all<Value>(rules.dry), h = q[DEPTH];
    const Value slowed = slowed_by_friction(maximum(dry, h), q[HU], q[HV], rules.friction);
    return if_less(dry, h, slowed, all<Value>(Real(1)));
}

// Fastest wave in the corners; the quotient of two linear functions is largest in a corner.  `tilt`
// is 1 in a cell of order 1, and 0 in one of order 0.
template <class Value, class Real> SWE_INLINE Value fastest(const Value *q, Value tilt,
                                                            const Corners<Value> &at,
                                                            const Rules<Real> &rules)
{
    const Value h_x = tilt * (q[SURFACE_X] - q[BED_X]), h_y = tilt * (q[SURFACE_Y] - q[BED_Y]);
    Value speed{};
    for (int i = 0; i < 3; i++) {
        const Value h = q[DEPTH] + h_x * at.x[i] + h_y * at.y[i];
        const Value hu = q[HU] + q[HU_X] * at.x[i] + q[HU_Y] * at.y[i];
        const Value hv = q[HV] + q[HV_X] * at.x[i] + q[HV_Y] * at.y[i];
        const Value wet = maximum(all<Value>(rules.dry), h);
        const Value here = root(Value(hu * hu + hv * hv)) / wet + root(Value(rules.gravity * wet));
        speed = maximum(speed, here); // in this order, what is no number stays
    }
    return speed;
}

// Bounds of surface, u, v.
template <class Value> struct Bounds {
    Value low[3], high[3];
};

// Limits the slopes of a cell of order 1: of the surface, and of the velocity.  Momentum would not
// do: it has a crest where a rarefaction is critical, and flattening it there makes a jump that
// stays.
template <class Value, class Real> SWE_INLINE void limit(Value *q, const Corners<Value> &at,
                                                         Value leg, const Bounds<Value> &bounds,
                                                         const Rules<Real> &rules)
{
    const Value h = q[DEPTH], over_h = Real(1) / h, slack = rules.curvature * leg * leg;
    const Value swift = slack * root(Value(rules.gravity * h)), high = slack * h;
    const Value h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
    const Value part = bounded<Value, Real>(h + q[BED], q[SURFACE_X], q[SURFACE_Y],
                                            bounds.low[0] - high, bounds.high[0] + high, at);
    q[SURFACE_X] *= part, q[SURFACE_Y] *= part;
    const Value kept = positive<Value, Real>(q, at);
    q[SURFACE_X] *= kept, q[SURFACE_Y] *= kept;
    for (int v = 1; v < 3; v++) {
        Value *m = q + 3 * v; // momentum: mean, slopes
        const Value u = m[0] * over_h, u_x = (m[1] - u * h_x) * over_h;
        const Value u_y = (m[2] - u * h_y) * over_h;
        const Value rest = kept * bounded<Value, Real>(u, u_x, u_y, bounds.low[v] - swift,
                                                       bounds.high[v] + swift, at);
        m[1] = rest * h * u_x + u * (q[SURFACE_X] - q[BED_X]);
        m[2] = rest * h * u_y + u * (q[SURFACE_Y] - q[BED_Y]);
    }
}

// What a new state must be: not negative, dry or of order 0 where water is short, else within
// bounds.  Returns 1 where the cell is of order 1, else 0.
template <class Value, class Real>
SWE_INLINE Value settle(Value *q, Value full, const Corners<Value> &at, Value leg,
                        const Bounds<Value> &bounds, const Rules<Real> &rules)
{
    const Value zero{}, dry = all<Value>(rules.dry);
    q[DEPTH] = maximum(zero, q[DEPTH]); // rounding only, see galerkin.md
    q[HU] = if_less(dry, q[DEPTH], q[HU], zero);
    q[HV] = if_less(dry, q[DEPTH], q[HV], zero);
    limit(q, at, leg, bounds, rules);
    for (int v = 0; v < EVOLVED; v += 3)
        for (int slope = v + 1; slope < v + 3; slope++)
            q[slope] = if_less(full, q[DEPTH], q[slope], zero);
    return is_less(full, q[DEPTH]);
}

// A second stage of the same dt must not take more water than there is (galerkin.md).  Waves that
// would are 2.7 times the fastest when dt was chosen: films of water.  Returns the speed then.
template <class Value> SWE_INLINE Value hold_back(Value *q, Value speed, Value most)
{
    const Value part = if_less(most, speed, Value(most / speed), Value(Value{} + 1));
    for (int v = HU; v <= HV_Y; v++)
        q[v] *= part;
    return minimum(most, speed);
}

} // namespace swe
#endif
