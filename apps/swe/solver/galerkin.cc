// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin.cc - a stage of a step of the discontinuous Galerkin method; see galerkin.h,
// galerkin.md.
//
// Two sweeps.  dg_residual() goes over the edges, in chunks that are gathered, computed as vectors
// and scattered, and then over the cells for what is inside of them.  dg_update() goes over the
// cells alone: new values, then friction and the limiters, for which the edges have left bounds.

// Vectors are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"

#include "galerkin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include "augmented.h"
#include "edge.h"
#include "galerkin_line.h"
#include "rusanov.h"
#include "vector_bytes.h"

namespace swe {
namespace {

// The fluxes as functions of one form.
template <class Real> struct RusanovFlux {
    Real gravity;
    template <class Value> SWE_INLINE EdgeFlux<Value>
    operator()(const CellState<Value> &own, const CellState<Value> &other, Value nx, Value ny) const
    {
        return rusanov(own, other, nx, ny, gravity);
    }
};

template <class Real> struct AugmentedFlux {
    Real gravity, dry;
    template <class Value> SWE_INLINE EdgeFlux<Value>
    operator()(const CellState<Value> &own, const CellState<Value> &other, Value nx, Value ny) const
    {
        return augmented(own, other, nx, ny, gravity, dry);
    }
};

constexpr int CHUNK = 32; // edges

// One side of a chunk of edges: its cells' values, and where in the cells the points are.
template <class Real> struct Beside {
    Real dof[DOFS][CHUNK] = {}, full[CHUNK] = {};
    Real weight[CHUNK] = {}, x[2][CHUNK] = {}, y[2][CHUNK] = {};
};

// What an edge adds to a cell: for h, hu, hv at the two points, and the neighbour's means.
template <class Real> struct Gain {
    Real flux[2][3][CHUNK];
    Real mean[3][CHUNK];
};

template <class Real> SWE_INLINE void gather(const DgPatch<Real> &patch, const std::int32_t *cell,
                                             const std::uint8_t *place,
                                             const EdgePoints<Real> points[PLACES], int count,
                                             Beside<Real> &side)
{
    for (int v = 0; v < DOFS; v++)
        for (int i = 0; i < count; i++)
            side.dof[v][i] = patch.dof[v][cell[i]];
    for (int i = 0; i < count; i++) {
        const EdgePoints<Real> &at = points[place[i]];
        side.full[i] = patch.full[cell[i]];
        side.weight[i] = at.weight;
        side.x[0][i] = at.x[0], side.y[0][i] = at.y[0];
        side.x[1][i] = at.x[1], side.y[1][i] = at.y[1];
    }
}

// States at point p of the edges i, i + 1 .. of the chunk.
template <class Value, class Real>
SWE_INLINE CellState<Value> states(const Beside<Real> &side, int i, int p, Real gravity, Real dry)
{
    Value dof[DOFS];
    for (int v = 0; v < DOFS; v++)
        dof[v] = load<Value>(&side.dof[v][i]);
    const PointState<Value> at =
        at_point(dof, load<Value>(&side.full[i]), load<Value>(&side.weight[i]),
                 load<Value>(&side.x[p][i]), load<Value>(&side.y[p][i]));
    const Value tolerance = all<Value>(dry), zero{};
    const Value over = at.h > tolerance ? Real(1) / maximum(at.h, tolerance) : zero;
    return {at.h, at.hu * over, at.hv * over, root(Value(gravity * at.h)), at.bed};
}

template <class Value, class Real, class Solver>
SWE_INLINE void fluxes(const Solver &solver, Real dry, int direction, Real share, int count,
                       const Beside<Real> &left, const Beside<Real> &right, Gain<Real> &to_left,
                       Gain<Real> &to_right)
{
    constexpr int LANES = sizeof(Value) / sizeof(Real);
    const Value nx = all<Value>(Real(NORMAL_X[direction])),
                ny = all<Value>(Real(NORMAL_Y[direction]));
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < count; i += LANES) { // what is behind the last edge goes nowhere
            const EdgeFlux<Value> f =
                solver(states<Value>(left, i, p, solver.gravity, dry),
                       states<Value>(right, i, p, solver.gravity, dry), nx, ny);
            store(&to_left.flux[p][0][i], Value(-share * f.mass));
            store(&to_left.flux[p][1][i], Value(-share * f.lost_x));
            store(&to_left.flux[p][2][i], Value(-share * f.lost_y));
            store(&to_right.flux[p][0][i], Value(share * f.mass));
            store(&to_right.flux[p][1][i], Value(share * f.gained_x));
            store(&to_right.flux[p][2][i], Value(share * f.gained_y));
        }
}

// The neighbour's surface and velocity, bounds for the limiter.  A dry neighbour's surface is its
// bed: it says nothing of the water, and the cell's own stands in.
template <class Real> SWE_INLINE void means(const Beside<Real> &own, const Beside<Real> &other,
                                            Real dry, int count, Gain<Real> &gain)
{
#pragma omp simd
    for (int i = 0; i < count; i++) {
        const bool wet = other.dof[DEPTH][i] > dry;
        const Real h = wet ? other.dof[DEPTH][i] : own.dof[DEPTH][i];
        const Real over = 1 / std::max(h, dry);
        gain.mean[0][i] = h + (wet ? other.dof[BED][i] : own.dof[BED][i]);
        gain.mean[1][i] = over * (wet ? other.dof[HU][i] : own.dof[HU][i]);
        gain.mean[2][i] = over * (wet ? other.dof[HV][i] : own.dof[HV][i]);
    }
}

// No cell is twice in a run, so the chunk's cells are independent.
template <class Real> SWE_INLINE void scatter(const DgScratch<Real> &scratch,
                                              const std::int32_t *cell, const Beside<Real> &side,
                                              const Gain<Real> &gain, int count)
{
    for (int v = 0; v < 3; v++) {
        Real *rate = scratch.rate[3 * v], *rate_x = scratch.rate[3 * v + 1];
        Real *rate_y = scratch.rate[3 * v + 2], *low = scratch.low[v], *high = scratch.high[v];
        for (int i = 0; i < count; i++) {
            const std::int32_t c = cell[i];
            const Real one = gain.flux[0][v][i], two = gain.flux[1][v][i], mean = gain.mean[v][i];
            rate[c] += one + two;
            rate_x[c] += one * side.x[0][i] + two * side.x[1][i];
            rate_y[c] += one * side.y[0][i] + two * side.y[1][i];
            low[c] = std::min(low[c], mean);
            high[c] = std::max(high[c], mean);
        }
    }
}

template <class Value, class Real, class Solver>
SWE_INLINE void sweep_edges(const DgPatch<Real> &patch, const Metric<Real> &metric,
                            const Solver &solver, Real dry, const DgScratch<Real> &scratch)
{
    Beside<Real> left, right;
    Gain<Real> to_left, to_right;
    for (int r = 0; r < patch.run_count; r++) {
        const EdgeRun &run = patch.runs[r];
        const Real length = metric.length[run.size];
        EdgePoints<Real> at_left[PLACES], at_right[PLACES];
        for (int place = 0; place < PLACES; place++) {
            at_left[place] = edge_points(run.direction, true, place, length);
            at_right[place] = edge_points(run.direction, false, place, length);
        }
        for (std::int32_t e = run.first; e < run.last; e += CHUNK) {
            const int count = std::min(CHUNK, int(run.last - e));
            gather(patch, patch.left + e, patch.left_place + e, at_left, count, left);
            gather(patch, patch.right + e, patch.right_place + e, at_right, count, right);
            fluxes<Value>(solver, dry, run.direction, length / 2, count, left, right, to_left,
                          to_right);
            means(left, right, dry, count, to_left);
            means(right, left, dry, count, to_right);
            scatter(scratch, patch.left + e, left, to_left, count);
            scatter(scratch, patch.right + e, right, to_right, count);
        }
    }
}

template <class Real>
SWE_INLINE void clear(const DgPatch<Real> &patch, Real dry, const DgScratch<Real> &scratch)
{
    const std::int32_t all = patch.cells + patch.ghosts;
    for (int v = 0; v < EVOLVED; v++)
        std::fill(scratch.rate[v], scratch.rate[v] + all, Real(0));
    for (std::int32_t c = 0; c < all; c++) {
        const Real h = patch.dof[DEPTH][c], over = 1 / std::max(h, dry);
        scratch.low[0][c] = scratch.high[0][c] = h + patch.dof[BED][c];
        scratch.low[1][c] = scratch.high[1][c] = over * patch.dof[HU][c];
        scratch.low[2][c] = scratch.high[2][c] = over * patch.dof[HV][c];
    }
}

// Flux of momentum by the flow, integrated over the cell's inside by the rule of its edges'
// middles, against the slope in x or y; per area.
template <class Real> struct Convection {
    Real uu, uv, vv;
};

template <class Real>
SWE_INLINE Convection<Real> convection(const Real *q, int o, Real leg, Real dry)
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    Convection<Real> sum = {0, 0, 0};
    const Real h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
    for (int i = 0; i < 3; i++) {
        const Real x = Real(-0.5) * leg * shape.corner_x[i][o];
        const Real y = Real(-0.5) * leg * shape.corner_y[i][o];
        const Real h = q[DEPTH] + h_x * x + h_y * y;
        const Real hu = q[HU] + q[HU_X] * x + q[HU_Y] * y;
        const Real hv = q[HV] + q[HV_X] * x + q[HV_Y] * y;
        const Real over = h > dry ? 1 / (3 * h) : Real(0);
        sum.uu += hu * hu * over, sum.uv += hu * hv * over, sum.vv += hv * hv * over;
    }
    return sum;
}

// Turns what the edges gave, integrals against 1, x, y, into rates of the mean and the slopes, and
// adds the inside: flow, and the pressure and the bed as g h grad(h + bed), which needs no
// quadrature.
template <class Real>
SWE_INLINE void sweep_cells(const DgPatch<Real> &patch, const Metric<Real> &metric,
                            const DgOptions<Real> &options, const DgScratch<Real> &scratch)
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    const Real g = options.gravity;
    Real *const *rate = scratch.rate;
#pragma omp simd
    for (std::int32_t c = 0; c < patch.cells; c++) {
        const int o = patch.orientation[c], depth = patch.depth[c];
        const Real leg = metric.length[depth + 1], over_area = metric.over_area[depth];
        Real q[DOFS], sum[EVOLVED];
        for (int v = 0; v < DOFS; v++)
            q[v] = patch.dof[v][c];
        for (int v = 0; v < EVOLVED; v++)
            sum[v] = rate[v][c] * over_area;
        const Convection<Real> flow = convection(q, o, leg, options.dry_tolerance);
        const Real h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
        sum[1] += q[HU], sum[2] += q[HV];
        sum[4] += flow.uu, sum[5] += flow.uv;
        sum[7] += flow.uv, sum[8] += flow.vv;
        const Real full = q[DEPTH] > patch.full[c] ? Real(1) : Real(0), scale = full / (leg * leg);
        const Real xx = scale * shape.inverse_xx[o], xy = scale * shape.inverse_xy[o];
        const Real yy = scale * shape.inverse_yy[o];
        const Real push_x = full * g * q[SURFACE_X], push_y = full * g * q[SURFACE_Y];
        rate[DEPTH][c] = sum[0];
        rate[SURFACE_X][c] = xx * sum[1] + xy * sum[2];
        rate[SURFACE_Y][c] = xy * sum[1] + yy * sum[2];
        rate[HU][c] = sum[3] - push_x * q[DEPTH];
        rate[HU_X][c] = xx * sum[4] + xy * sum[5] - push_x * h_x;
        rate[HU_Y][c] = xy * sum[4] + yy * sum[5] - push_x * h_y;
        rate[HV][c] = sum[6] - push_y * q[DEPTH];
        rate[HV_X][c] = xx * sum[7] + xy * sum[8] - push_y * h_x;
        rate[HV_Y][c] = xy * sum[7] + yy * sum[8] - push_y * h_y;
    }
}

// The part of the slopes, 0 .. 1, that leaves the middles of the edges within low .. high (Barth
// and Jespersen 1989, doi 10.2514/6.1989-366), or a little beyond: the neighbours' centroids do not
// lie where the middles point to, and a linear function needs 5/4 of the range in some directions.
template <class Real>
SWE_INLINE Real bounded(Real mean, Real slope_x, Real slope_y, Real low, Real high, int o, Real leg)
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    const Real reach = Real(1.25);
    const Real up = reach * std::max(high - mean, Real(0));
    const Real down = reach * std::min(low - mean, Real(0));
    Real part = 1;
    for (int i = 0; i < 3; i++) {
        const Real rise =
            Real(-0.5) * leg * (slope_x * shape.corner_x[i][o] + slope_y * shape.corner_y[i][o]);
        part = rise > up ? std::min(part, up / rise) : part;
        part = rise < down ? std::min(part, down / rise) : part;
    }
    return part;
}

// The part of the slopes that leaves a quarter of the mean depth in the corners, after Xing and
// Zhang 2013 (doi 10.1007/s10915-013-9695-y).  There is such a part as h > full.
template <class Real> SWE_INLINE Real positive(const Real *q, int o, Real leg)
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    Real part = 1;
    for (int i = 0; i < 3; i++) {
        const Real x = leg * shape.corner_x[i][o], y = leg * shape.corner_y[i][o];
        const Real room = Real(0.75) * q[DEPTH] - (q[BED_X] * x + q[BED_Y] * y);
        const Real fall = -(q[SURFACE_X] * x + q[SURFACE_Y] * y);
        part = fall > room ? std::min(part, std::max(room, Real(0)) / fall) : part;
    }
    return part;
}

// Friction of Manning on the whole of the momentum, implicit in its factor.
template <class Real>
SWE_INLINE Real friction(const Real *q, Real dt, const DgOptions<Real> &options)
{
    if (options.manning == 0 || q[DEPTH] <= options.dry_tolerance)
        return 1;
    const Real h = q[DEPTH], momentum = std::sqrt(q[HU] * q[HU] + q[HV] * q[HV]);
    const Real rough = options.gravity * options.manning * options.manning;
    return 1 / (1 + dt * rough * momentum / (h * h * std::cbrt(h)));
}

// Fastest wave in the corners.  The quotient of two linear functions is largest in a corner.
template <class Real>
SWE_INLINE Real fastest(const Real *q, bool full, int o, Real leg, const DgOptions<Real> &options)
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    const Real tilt = full ? Real(1) : Real(0);
    const Real h_x = tilt * (q[SURFACE_X] - q[BED_X]), h_y = tilt * (q[SURFACE_Y] - q[BED_Y]);
    Real speed = 0;
    for (int i = 0; i < 3; i++) {
        const Real x = leg * shape.corner_x[i][o], y = leg * shape.corner_y[i][o];
        const Real h = q[DEPTH] + h_x * x + h_y * y;
        const Real hu = q[HU] + q[HU_X] * x + q[HU_Y] * y;
        const Real hv = q[HV] + q[HV_X] * x + q[HV_Y] * y;
        const Real wet = std::max(h, options.dry_tolerance);
        const Real here = std::sqrt(hu * hu + hv * hv) / wet + std::sqrt(options.gravity * wet);
        speed = std::max(here, speed); // in this order, what is no number stays
    }
    return speed;
}

// Limits the slopes of a cell of order 1: of the surface, and of the velocity.  Momentum would not
// do: it has a crest where a rarefaction is critical, and flattening it there makes a jump that
// stays.
template <class Real> SWE_INLINE void limit(Real *q, int o, Real leg, const Real *low,
                                            const Real *high, const DgOptions<Real> &options)
{
    const Real h = q[DEPTH], slack = options.curvature * leg * leg;
    const Real swift = slack * std::sqrt(options.gravity * h);
    const Real room[3] = {slack * h, swift, swift};
    const Real h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
    Real part = bounded(h + q[BED], q[SURFACE_X], q[SURFACE_Y], low[0] - room[0], high[0] + room[0],
                        o, leg);
    q[SURFACE_X] *= part, q[SURFACE_Y] *= part;
    const Real kept = positive(q, o, leg);
    q[SURFACE_X] *= kept, q[SURFACE_Y] *= kept;
    for (int v = 1; v < 3; v++) {
        Real *m = q + 3 * v; // momentum: mean, slopes
        const Real u = m[0] / h, u_x = (m[1] - u * h_x) / h, u_y = (m[2] - u * h_y) / h;
        part = kept * bounded(u, u_x, u_y, low[v] - room[v], high[v] + room[v], o, leg);
        m[1] = part * h * u_x + u * (q[SURFACE_X] - q[BED_X]);
        m[2] = part * h * u_y + u * (q[SURFACE_Y] - q[BED_Y]);
    }
}

// What a new state must be: not negative, dry or of order 0 where water is short, else within
// bounds.
template <class Real> SWE_INLINE void settle(Real *q, Real full, int o, Real leg, const Real *low,
                                             const Real *high, const DgOptions<Real> &options)
{
    q[DEPTH] = std::max(q[DEPTH], Real(0)); // rounding only, see galerkin.md
    if (q[DEPTH] <= options.dry_tolerance)
        q[HU] = q[HV] = 0;
    if (q[DEPTH] > full) {
        limit(q, o, leg, low, high, options);
        return;
    }
    for (int v = 0; v < EVOLVED; v += 3)
        q[v + 1] = q[v + 2] = 0;
}

// All that a call is about.
template <class Real> struct Stage {
    const DgPatch<Real> &patch;
    const Metric<Real> &metric;
    const DgOptions<Real> &options;
    const DgScratch<Real> &scratch;
    Flux flux;
    Real dt;
    const Real *const *start;
};

template <class Value, class Real> SWE_INLINE void sweep_rates(const Stage<Real> &stage)
{
    const Real g = stage.options.gravity, dry = stage.options.dry_tolerance;
    clear(stage.patch, dry, stage.scratch);
    if (stage.flux == Flux::AUGMENTED)
        sweep_edges<Value>(stage.patch, stage.metric, AugmentedFlux<Real>{g, dry}, dry,
                           stage.scratch);
    else
        sweep_edges<Value>(stage.patch, stage.metric, RusanovFlux<Real>{g}, dry, stage.scratch);
    sweep_cells(stage.patch, stage.metric, stage.options, stage.scratch);
}

// A second stage of the same dt must not take more water than there is (galerkin.md).  Waves that
// would are 2.7 times the fastest when dt was chosen: films of water.
template <class Real> SWE_INLINE Real hold_back(Real *q, Real speed, Real limit)
{
    const Real part = speed > limit ? limit / speed : Real(1);
    for (int v = HU; v <= HV_Y; v++)
        q[v] *= part;
    return std::min(speed, limit);
}

// New values of the cells; returns the least inradius / speed.
template <bool ROUGH, class Real> SWE_INLINE Real sweep_states(const Stage<Real> &stage)
{
    const DgPatch<Real> &patch = stage.patch;
    const DgOptions<Real> &options = stage.options;
    Real least = std::numeric_limits<Real>::max(), sum = 0;
#pragma omp simd reduction(min : least) reduction(+ : sum)
    for (std::int32_t c = 0; c < patch.cells; c++) {
        const int o = patch.orientation[c], depth = patch.depth[c];
        const Real leg = stage.metric.length[depth + 1], inradius = stage.metric.inradius[depth];
        const Real full = patch.full[c];
        Real q[DOFS], low[3], high[3];
        for (int v = 0; v < DOFS; v++)
            q[v] = patch.dof[v][c];
        for (int v = 0; v < 3; v++)
            low[v] = stage.scratch.low[v][c], high[v] = stage.scratch.high[v][c];
        for (int v = 0; v < EVOLVED; v++)
            q[v] += stage.dt * stage.scratch.rate[v][c];
        const Real slow = ROUGH ? friction(q, stage.dt, options) : Real(1);
        for (int v = HU; v <= HV_Y; v++)
            q[v] *= slow;
        if (stage.start)
            for (int v = 0; v < EVOLVED; v++)
                q[v] = Real(0.5) * (stage.start[v][c] + q[v]);
        settle(q, full, o, leg, low, high, options);
        const Real waves = fastest(q, q[DEPTH] > full, o, leg, options);
        const Real speed = hold_back(q, waves, Real(0.4) * inradius / stage.dt);
        for (int v = 0; v < EVOLVED; v++)
            patch.dof[v][c] = q[v];
        least = std::min(least, inradius / speed);
        sum += waves;
    }
    return std::isfinite(sum) ? least : 0;
}

enum class Task { RATES, UPDATE };

template <class Real, int BYTES> SWE_INLINE Real perform(Task task, const Stage<Real> &stage)
{
    if (task == Task::UPDATE)
        return stage.options.manning > 0 ? sweep_states<true>(stage) : sweep_states<false>(stage);
    sweep_rates<Lanes<Real, BYTES>>(stage);
    return 0;
}

#ifdef __x86_64__
template <class Real> __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) Real
perform_v4(Task task, const Stage<Real> &stage)
{
    return perform<Real, 64>(task, stage);
}

template <class Real>
__attribute__((target("arch=x86-64-v3"))) Real perform_v3(Task task, const Stage<Real> &stage)
{
    return perform<Real, 32>(task, stage);
}
#endif

template <class Real> Real perform_any(Task task, const Stage<Real> &stage)
{
    return perform<Real, 16>(task, stage);
}

// For vectors as wide as this processor's.
template <class Real> Real dispatch(Task task, const Stage<Real> &stage)
{
#ifdef __x86_64__
    if (vector_bytes() == 64)
        return perform_v4(task, stage);
    if (vector_bytes() == 32)
        return perform_v3(task, stage);
#endif
    return perform_any(task, stage);
}

template <class Real> Real step_of(Real least)
{
    const Real none = std::numeric_limits<Real>::max();
    return least < none ? least / 3 : none;
}

} // namespace

template <class Real> void dg_residual(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                       Flux flux, const DgOptions<Real> &options,
                                       const DgScratch<Real> &scratch)
{
    dispatch(Task::RATES, Stage<Real>{patch, metric, options, scratch, flux, 0, nullptr});
}

template <class Real> Real dg_update(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                     const DgOptions<Real> &options, const DgScratch<Real> &scratch,
                                     Real dt, const Real *const start[EVOLVED])
{
    Real least =
        dispatch(Task::UPDATE, Stage<Real>{patch, metric, options, scratch, {}, dt, start});
    // Where water was held back, to dt / 0.4, its speed is that but for rounding; whoever asks
    // later must get the same answer.
    return least > Real(2.6) * dt || least == 0 ? step_of(least)
                                                : dg_stable_step(patch, metric, options);
}

template <class Real> Real dg_stable_step(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                          const DgOptions<Real> &options)
{
    Real least = std::numeric_limits<Real>::max();
    for (std::int32_t c = 0; c < patch.cells; c++) {
        const int o = patch.orientation[c], depth = patch.depth[c];
        Real q[DOFS];
        for (int v = 0; v < DOFS; v++)
            q[v] = patch.dof[v][c];
        const Real speed =
            fastest(q, q[DEPTH] > patch.full[c], o, metric.length[depth + 1], options);
        if (!std::isfinite(speed))
            return 0;
        least = std::min(least, metric.inradius[depth] / speed);
    }
    return step_of(least);
}

template <class Real> void dg_outgoing(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                       std::int32_t cell, int side, Real out[DG_EXCHANGE])
{
    const ShapeTable<Real> &shape = SHAPES<Real>;
    const int o = patch.orientation[cell], size = patch.depth[cell] + (side != HYPOTENUSE);
    const EdgePoints<Real> points = edge_points(shape.direction[side][o], shape.left[side][o],
                                                shape.place[side][o], metric.length[size]);
    Real q[DOFS];
    for (int v = 0; v < DOFS; v++)
        q[v] = patch.dof[v][cell];
    for (int p = 0; p < 2; p++) {
        const PointState<Real> at =
            at_point(q, patch.full[cell], points.weight, points.x[p], points.y[p]);
        out[4 * p] = at.h, out[4 * p + 1] = at.hu, out[4 * p + 2] = at.hv, out[4 * p + 3] = at.bed;
    }
    out[8] = q[DEPTH], out[9] = q[HU], out[10] = q[HV], out[11] = q[BED];
}

template <class Real>
void dg_incoming(const DgPatch<Real> &patch, std::int32_t ghost, const Real in[DG_EXCHANGE])
{
    const std::int32_t c = patch.cells + ghost;
    for (int v = 0; v < 4; v++) {
        patch.dof[3 * v][c] = in[8 + v];
        patch.dof[3 * v + 1][c] = in[v];
        patch.dof[3 * v + 2][c] = in[4 + v];
    }
    patch.full[c] = -1;
}

template <class Real> void dg_wall(Real values[DG_EXCHANGE], int direction)
{
    for (int v = direction == 0 ? 1 : 2; v < DG_EXCHANGE; v += 4)
        values[v] = -values[v];
}

#define INSTANTIATE(Real)                                                                         \
    template void dg_residual(const DgPatch<Real> &, const Metric<Real> &, Flux,                  \
                              const DgOptions<Real> &, const DgScratch<Real> &);                  \
    template Real dg_update(const DgPatch<Real> &, const Metric<Real> &, const DgOptions<Real> &, \
                            const DgScratch<Real> &, Real, const Real *const[EVOLVED]);           \
    template Real dg_stable_step(const DgPatch<Real> &, const Metric<Real> &,                     \
                                 const DgOptions<Real> &);                                        \
    template void dg_outgoing(const DgPatch<Real> &, const Metric<Real> &, std::int32_t, int,     \
                              Real[DG_EXCHANGE]);                                                 \
    template void dg_incoming(const DgPatch<Real> &, std::int32_t, const Real[DG_EXCHANGE]);      \
    template void dg_wall(Real[DG_EXCHANGE], int);

INSTANTIATE(float)
INSTANTIATE(double)

} // namespace swe
