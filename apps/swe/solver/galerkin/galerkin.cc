// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin.cc - a stage of a step of the discontinuous Galerkin method; see galerkin.h,
// galerkin.md.
//
// Two sweeps.  dg_residual() goes over the edges, in chunks that are gathered, computed as vectors
// and scattered, and then over the cells for what is inside of them.  dg_update() goes over the
// cells alone: new values, then friction and the limiters, for which the edges have left bounds.
// Cells are taken as vectors too, each function a template on how many there are at once
// (galerkin_vectors.h), as GCC finds no vectors in loops with as much in them.

// Vectors are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"

#include "galerkin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include "../flux/augmented.h"
#include "../edge.h"
#include "galerkin_line.h"
#include "galerkin_vectors.h"
#include "../flux/rusanov.h"
#include "../vectors/vector_bytes.h"

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
template <class Value, class Real> SWE_INLINE void
means(const Beside<Real> &own, const Beside<Real> &other, Real dry, int count, Gain<Real> &gain)
{
    const Value tolerance = all<Value>(dry);
    for (int i = 0; i < count; i += lanes_of<Value>()) {
        const Value depth = load<Value>(&other.dof[DEPTH][i]);
        const auto of_wet = [&](int v) {
            return if_less(tolerance, depth, load<Value>(&other.dof[v][i]),
                           load<Value>(&own.dof[v][i]));
        };
        const Value h = of_wet(DEPTH), over = 1 / maximum(tolerance, h);
        store(&gain.mean[0][i], Value(h + of_wet(BED)));
        store(&gain.mean[1][i], Value(over * of_wet(HU)));
        store(&gain.mean[2][i], Value(over * of_wet(HV)));
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
            means<Value>(left, right, dry, count, to_left);
            means<Value>(right, left, dry, count, to_right);
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

// The cells from c on, as many as Value has lanes.  Turns what the edges gave, integrals against 1,
// x, y, into rates of the mean and the slopes, and adds the inside: flow, and the pressure and the
// bed as g h grad(h + bed), which needs no quadrature.
template <class Value, class Real>
SWE_INLINE void finish_rates(const DgPatch<Real> &patch, const Metric<Real> &metric,
                             const Rules<Real> &rules, Real *const *rate, std::int32_t c)
{
    const std::uint8_t *orientation = patch.orientation + c, *depth = patch.depth + c;
    const Value leg = look_up<Value>(metric.length + 1, depth);
    const Value over_area = look_up<Value>(metric.over_area, depth);
    const Corners<Value> at = corners_of<Value, Real>(orientation, leg);
    Value q[DOFS], sum[EVOLVED], inverse[3]; // of the moments: xx, xy, yy
    for (int v = 0; v < DOFS; v++)
        q[v] = load<Value>(patch.dof[v] + c);
    for (int v = 0; v < EVOLVED; v++)
        sum[v] = load<Value>(rate[v] + c) * over_area;
    const Convection<Value> flow = convection(q, at, rules.dry);
    sum[1] += q[HU], sum[2] += q[HV];
    sum[4] += flow.uu, sum[5] += flow.uv;
    sum[7] += flow.uv, sum[8] += flow.vv;
    const Value full = is_less(load<Value>(patch.full + c), q[DEPTH]), scale = full / (leg * leg);
    shape_row<Value, Real>(orientation, 2, inverse);
    const Value xx = scale * inverse[0], xy = scale * inverse[1], yy = scale * inverse[2];
    const Value h_x = q[SURFACE_X] - q[BED_X], h_y = q[SURFACE_Y] - q[BED_Y];
    const Value push_x = full * rules.gravity * q[SURFACE_X];
    const Value push_y = full * rules.gravity * q[SURFACE_Y];
    store(rate[DEPTH] + c, sum[0]);
    store(rate[SURFACE_X] + c, Value(xx * sum[1] + xy * sum[2]));
    store(rate[SURFACE_Y] + c, Value(xy * sum[1] + yy * sum[2]));
    store(rate[HU] + c, Value(sum[3] - push_x * q[DEPTH]));
    store(rate[HU_X] + c, Value(xx * sum[4] + xy * sum[5] - push_x * h_x));
    store(rate[HU_Y] + c, Value(xy * sum[4] + yy * sum[5] - push_x * h_y));
    store(rate[HV] + c, Value(sum[6] - push_y * q[DEPTH]));
    store(rate[HV_X] + c, Value(xx * sum[7] + xy * sum[8] - push_y * h_x));
    store(rate[HV_Y] + c, Value(xy * sum[7] + yy * sum[8] - push_y * h_y));
}

template <class Value, class Real>
SWE_INLINE void sweep_cells(const DgPatch<Real> &patch, const Metric<Real> &metric,
                            const DgOptions<Real> &options, const DgScratch<Real> &scratch)
{
    const Rules<Real> rules(options, 0);
    std::int32_t c = 0;
    for (; c <= patch.cells - lanes_of<Value>(); c += lanes_of<Value>())
        finish_rates<Value>(patch, metric, rules, scratch.rate, c);
    for (; c < patch.cells; c++)
        finish_rates<Real>(patch, metric, rules, scratch.rate, c);
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
    sweep_cells<Value>(stage.patch, stage.metric, stage.options, stage.scratch);
}

// Of the cells that were renewed: the least inradius / speed, and the fastest wave before any were
// held back; infinite if one is no number.
template <class Value> struct Outcome {
    Value least, waves;
};

// New values of the cells from c on, as many as Value has lanes.
template <bool ROUGH, class Value, class Real> SWE_INLINE void
renew(const Stage<Real> &stage, const Rules<Real> &rules, std::int32_t c, Outcome<Value> &outcome)
{
    const DgPatch<Real> &patch = stage.patch;
    const Value leg = look_up<Value>(stage.metric.length + 1, patch.depth + c);
    const Value inradius = look_up<Value>(stage.metric.inradius, patch.depth + c);
    const Corners<Value> at = corners_of<Value, Real>(patch.orientation + c, leg);
    Value q[DOFS];
    Bounds<Value> bounds;
    for (int v = 0; v < DOFS; v++)
        q[v] = load<Value>(patch.dof[v] + c);
    for (int v = 0; v < EVOLVED; v++)
        q[v] += stage.dt * load<Value>(stage.scratch.rate[v] + c);
    if constexpr (ROUGH) {
        const Value slow = friction(q, rules);
        for (int v = HU; v <= HV_Y; v++)
            q[v] *= slow;
    }
    if (stage.start)
        for (int v = 0; v < EVOLVED; v++)
            q[v] = Real(0.5) * (load<Value>(stage.start[v] + c) + q[v]);
    for (int v = 0; v < 3; v++) {
        bounds.low[v] = load<Value>(stage.scratch.low[v] + c);
        bounds.high[v] = load<Value>(stage.scratch.high[v] + c);
    }
    const Value tilt = settle(q, load<Value>(patch.full + c), at, leg, bounds, rules);
    const Value waves = fastest(q, tilt, at, rules);
    const Value speed = hold_back(q, waves, Value(Real(0.4) * inradius / stage.dt));
    for (int v = 0; v < EVOLVED; v++)
        store(patch.dof[v] + c, q[v]);
    outcome.least = minimum(Value(inradius / speed), outcome.least);
    const Value infinite = all<Value>(std::numeric_limits<Real>::infinity());
    outcome.waves = maximum(minimum(waves, infinite), outcome.waves);
}

// Returns the least inradius / speed, or 0 if a speed is no number.
template <bool ROUGH, class Value, class Real>
SWE_INLINE Real sweep_states(const Stage<Real> &stage)
{
    constexpr int LANES = lanes_of<Value>();
    const Rules<Real> rules(stage.options, stage.dt);
    const Real most = std::numeric_limits<Real>::max();
    Outcome<Value> vectors = {all<Value>(most), Value{}};
    Outcome<Real> rest = {most, 0};
    std::int32_t c = 0;
    for (; c <= stage.patch.cells - LANES; c += LANES)
        renew<ROUGH>(stage, rules, c, vectors);
    for (; c < stage.patch.cells; c++)
        renew<ROUGH>(stage, rules, c, rest);
    for (int lane = 0; lane < LANES; lane++) {
        rest.least = std::min(rest.least, vectors.least[lane]);
        rest.waves = std::max(rest.waves, vectors.waves[lane]);
    }
    return std::isfinite(rest.waves) ? rest.least : 0;
}

enum class Task { RATES, UPDATE };

template <class Real, int BYTES> SWE_INLINE Real perform(Task task, const Stage<Real> &stage)
{
    using Value = Lanes<Real, BYTES>;
    if (task == Task::UPDATE)
        return stage.options.manning > 0 ? sweep_states<true, Value>(stage)
                                         : sweep_states<false, Value>(stage);
    sweep_rates<Value>(stage);
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
    // Where water was held back, to dt / 0.4, its speed is that but for rounding; a later
    // call must get the same answer.
    return least > Real(2.6) * dt || least == 0 ? step_of(least)
                                                : dg_stable_step(patch, metric, options);
}

template <class Real> Real dg_stable_step(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                          const DgOptions<Real> &options)
{
    const Rules<Real> rules(options, 0);
    Real least = std::numeric_limits<Real>::max();
    for (std::int32_t c = 0; c < patch.cells; c++) {
        const int depth = patch.depth[c];
        const Corners<Real> at =
            corners_of<Real, Real>(patch.orientation + c, metric.length[depth + 1]);
        Real q[DOFS];
        for (int v = 0; v < DOFS; v++)
            q[v] = patch.dof[v][c];
        const Real speed = fastest(q, is_less(patch.full[c], q[DEPTH]), at, rules);
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
