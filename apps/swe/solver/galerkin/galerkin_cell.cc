// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin_cell.cc - single cells of the discontinuous Galerkin method: initial values, splitting,
// merging; see galerkin.h.
//
// A child's values are the parent's linear functions restricted to it, a parent's the projection of
// its children's in L2.  It is the surface that is restricted and projected; depth is what is
// between it and the bed.  Thereby a flat surface stays flat, and water is kept if the beds' means
// average to the parent's.  Where the water does not reach over the bed, the rule is: water seeks its level.

#include "galerkin.h"

#include <algorithm>
#include <cmath>

namespace swe {
namespace {

constexpr int OPPOSITE[SIDES] = {2, 1, 0}; // the corner that is not on the side

template <class Real> struct Offset {
    Real x, y;
};

// From the parent's centroid to the child's.
template <class Real> Offset<Real> child_offset(DgShape shape, bool second)
{
    const ShapeTable<double> &table = SHAPES<double>;
    const int o = shape.orientation, own = second ? 1 : 0;
    double x = 0, y = 0;
    for (int i = 0; i < 3; i++) { // corners: one end of the hypotenuse, the apex, the middle
        const double weight = i == 2 ? 1 : i == own ? 1.5 : 0.5;
        x += weight / 3 * table.corner_x[i][o], y += weight / 3 * table.corner_y[i][o];
    }
    return {Real(x * shape.leg), Real(y * shape.leg)};
}

template <class Real> bool is_full(DgShape shape, const DgCell<Real> &cell, Real dry_tolerance)
{
    return cell.dof[DEPTH] > dg_full(shape, cell.dof[BED_X], cell.dof[BED_Y], dry_tolerance);
}

// Takes the slopes away that would leave less than a quarter of the depth in a corner, or all.
template <class Real> void settle(DgShape shape, DgCell<Real> &cell, Real dry_tolerance)
{
    const ShapeTable<Real> &table = SHAPES<Real>;
    Real *q = cell.dof, part = 1;
    const bool full = is_full(shape, cell, dry_tolerance);
    for (int i = 0; i < 3 && full; i++) {
        const Real x = Real(shape.leg) * table.corner_x[i][shape.orientation];
        const Real y = Real(shape.leg) * table.corner_y[i][shape.orientation];
        const Real room = Real(0.75) * q[DEPTH] - (q[BED_X] * x + q[BED_Y] * y);
        const Real fall = -(q[SURFACE_X] * x + q[SURFACE_Y] * y);
        if (fall > room)
            part = std::min(part, std::max(room, Real(0)) / fall);
    }
    for (int v = 0; v < EVOLVED; v++)
        if (v % 3 != 0)
            q[v] *= full ? part : Real(0);
    if (q[DEPTH] <= dry_tolerance)
        q[HU] = q[HV] = 0;
}

// Depths of two children of one cell: a level surface over both, or all water in the lower one.
template <class Real>
void seek_level(Real water, Real first_bed, Real second_bed, Real &first, Real &second)
{
    const Real step = second_bed - first_bed;
    first = std::min(2 * water, std::max(Real(0), water + step / 2));
    second = 2 * water - first;
}

template <class Real>
void restrict_to(Offset<Real> at, const DgCell<Real> &parent, DgCell<Real> &child)
{
    const Real *p = parent.dof;
    Real *q = child.dof;
    for (int v = 0; v < EVOLVED; v += 3) {
        q[v] = p[v] + p[v + 1] * at.x + p[v + 2] * at.y;
        q[v + 1] = p[v + 1], q[v + 2] = p[v + 2];
    }
    q[DEPTH] += p[BED] - q[BED];
}

// The parent's momentum goes with the water.
template <class Real>
void share_out(const DgCell<Real> &parent, DgCell<Real> &first, DgCell<Real> &second)
{
    const Real *p = parent.dof;
    seek_level(p[DEPTH], first.dof[BED], second.dof[BED], first.dof[DEPTH], second.dof[DEPTH]);
    for (DgCell<Real> *child : {&first, &second}) {
        const Real share = p[DEPTH] > 0 ? child->dof[DEPTH] / p[DEPTH] : Real(0);
        child->dof[HU] = share * p[HU], child->dof[HV] = share * p[HV];
        for (int v = 0; v < EVOLVED; v++)
            if (v % 3 != 0)
                child->dof[v] = 0;
    }
}

// Slopes of the parent's best linear function, from its children's: `mean` and two slopes of each.
template <class Real>
void project(DgShape shape, const Real first[3], const Real second[3], Real slopes[2])
{
    const ShapeTable<Real> &table = SHAPES<Real>;
    const DgShape children[2] = {dg_first(shape), dg_second(shape)};
    const Real *line[2] = {first, second};
    Real sum_x = 0, sum_y = 0;
    for (int k = 0; k < 2; k++) {
        const Offset<Real> at = child_offset<Real>(shape, k == 1);
        const int o = children[k].orientation;
        const Real half_square = Real(children[k].leg * children[k].leg / 2);
        sum_x += at.x * line[k][0] / 2 +
                 half_square * (table.moment_xx[o] * line[k][1] + table.moment_xy[o] * line[k][2]);
        sum_y += at.y * line[k][0] / 2 +
                 half_square * (table.moment_xy[o] * line[k][1] + table.moment_yy[o] * line[k][2]);
    }
    const int o = shape.orientation;
    const Real over = Real(1 / (shape.leg * shape.leg));
    slopes[0] = over * (table.inverse_xx[o] * sum_x + table.inverse_xy[o] * sum_y);
    slopes[1] = over * (table.inverse_xy[o] * sum_x + table.inverse_yy[o] * sum_y);
}

} // namespace

DgShape dg_first(DgShape parent)
{
    return {orientation(example(parent.orientation).first()), parent.leg * std::sqrt(0.5)};
}

DgShape dg_second(DgShape parent)
{
    return {orientation(example(parent.orientation).second()), parent.leg * std::sqrt(0.5)};
}

template <class Real> void dg_fit(DgShape shape, const Real middles[SIDES], Real line[3])
{
    const ShapeTable<Real> &table = SHAPES<Real>;
    const int o = shape.orientation;
    const Real lowest = std::min({middles[0], middles[1], middles[2]});
    Real x = 0, y = 0, sum = 0;
    for (int side = 0; side < SIDES; side++) {
        const Real above = middles[side] - lowest; // equal values have just that mean, and no slope
        x -= 2 * above * table.gradient_x[OPPOSITE[side]][o];
        y -= 2 * above * table.gradient_y[OPPOSITE[side]][o];
        sum += above;
    }
    line[0] = lowest + sum / 3;
    line[1] = Real(x / shape.leg), line[2] = Real(y / shape.leg);
}

template <class Real> Real dg_middle(DgShape shape, const Real line[3], int side)
{
    const ShapeTable<Real> &table = SHAPES<Real>;
    const int o = shape.orientation, corner = OPPOSITE[side];
    return line[0] -
           Real(0.5) * Real(shape.leg) *
               (line[1] * table.corner_x[corner][o] + line[2] * table.corner_y[corner][o]);
}

template <class Real> Real dg_full(DgShape shape, Real bed_x, Real bed_y, Real dry_tolerance)
{
    const ShapeTable<Real> &table = SHAPES<Real>;
    Real rise = 0;
    for (int i = 0; i < 3; i++)
        rise = std::max(rise, Real(shape.leg) * (bed_x * table.corner_x[i][shape.orientation] +
                                                 bed_y * table.corner_y[i][shape.orientation]));
    return std::max(dry_tolerance, rise * Real(4) / 3);
}

template <class Real> DgCell<Real> dg_initial(DgShape shape, const Real bed[3],
                                              const Real surface[SIDES], const Real hu[SIDES],
                                              const Real hv[SIDES], const Real water[3],
                                              Real dry_tolerance)
{
    DgCell<Real> cell = {};
    Real *q = cell.dof;
    std::copy(bed, bed + 3, q + BED);
    dg_fit(shape, surface, q + DEPTH);
    dg_fit(shape, hu, q + HU);
    dg_fit(shape, hv, q + HV);
    q[DEPTH] -= q[BED];
    if (!is_full(shape, cell, dry_tolerance) || water[0] <= dry_tolerance) {
        std::fill(q, q + EVOLVED, Real(0));
        q[DEPTH] = water[0], q[HU] = water[1], q[HV] = water[2];
    }
    settle(shape, cell, dry_tolerance);
    return cell;
}

template <class Real> void dg_split(DgShape shape, const DgCell<Real> &parent, Real dry_tolerance,
                                    DgCell<Real> &first, DgCell<Real> &second)
{
    const DgShape one = dg_first(shape), two = dg_second(shape);
    bool full = is_full(shape, parent, dry_tolerance);
    if (full) {
        restrict_to(child_offset<Real>(shape, false), parent, first);
        restrict_to(child_offset<Real>(shape, true), parent, second);
        full = first.dof[DEPTH] > 0 && second.dof[DEPTH] > 0;
    }
    if (!full)
        share_out(parent, first, second);
    settle(one, first, dry_tolerance);
    settle(two, second, dry_tolerance);
}

template <class Real> void dg_merge(DgShape shape, const DgCell<Real> &first,
                                    const DgCell<Real> &second, Real dry_tolerance,
                                    DgCell<Real> &parent)
{
    Real *q = parent.dof;
    const Real *a = first.dof, *b = second.dof;
    const bool wet = a[DEPTH] > dry_tolerance && b[DEPTH] > dry_tolerance;
    for (int v = 0; v < EVOLVED; v += 3) {
        Real one[3] = {a[v], a[v + 1], a[v + 2]}, two[3] = {b[v], b[v + 1], b[v + 2]};
        q[v] = (one[0] + two[0]) / 2;
        if (v == DEPTH)
            one[0] += a[BED], two[0] += b[BED];
        two[0] -= one[0], one[0] = 0; // slopes ask for the difference alone
        q[v + 1] = q[v + 2] = 0;
        if (wet)
            project(shape, one, two, q + v + 1);
    }
    settle(shape, parent, dry_tolerance);
}

#define INSTANTIATE(Real)                                                                          \
    template void dg_fit(DgShape, const Real[SIDES], Real[3]);                                     \
    template Real dg_middle(DgShape, const Real[3], int);                                          \
    template Real dg_full(DgShape, Real, Real, Real);                                              \
    template DgCell<Real> dg_initial(DgShape, const Real[3], const Real[SIDES], const Real[SIDES], \
                                     const Real[SIDES], const Real[3], Real);                      \
    template void dg_split(DgShape, const DgCell<Real> &, Real, DgCell<Real> &, DgCell<Real> &);   \
    template void dg_merge(DgShape, const DgCell<Real> &, const DgCell<Real> &, Real,              \
                           DgCell<Real> &);

INSTANTIATE(float)
INSTANTIATE(double)

} // namespace swe
