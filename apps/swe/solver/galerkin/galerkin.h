// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin.h - discontinuous Galerkin method of order 1 for the shallow water equations.
//
// In a cell every quantity is a linear function: its mean and its slopes in x and y, from the
// centroid.  The slopes kept for the water are the *surface's*, h + bed: a lake at rest has none,
// and stays at rest whatever the bed.  Where the water is shallow against the bed's rise in the
// cell, the method drops to order 0: no slopes, and the bed counts as its mean.  Equations,
// limiters and sources: galerkin.md.
//
// A stage of a step is: fill the ghosts (dg_outgoing of the neighbours), dg_residual, dg_update.
// One exchange a stage: the limiter's bounds are the neighbours' means at the stage's beginning.
// All functions may run at the same time for different patches.  Compile with -ffp-contract=off:
// two patches compute the same flux for the edge that they share, to the last bit.
#ifndef SWE_SOLVER_GALERKIN_H
#define SWE_SOLVER_GALERKIN_H

#include <cstdint>
#include "../../config.h"
#include "../../grid/patch.h"
#include "../shape.h"

namespace swe {

// What is kept of a cell.  Means in m and m2/s, slopes in 1 and m/s.
enum Dof : int {
    DEPTH = 0,
    SURFACE_X = 1,
    SURFACE_Y = 2,
    HU = 3,
    HU_X = 4,
    HU_Y = 5,
    HV = 6,
    HV_X = 7,
    HV_Y = 8,
    EVOLVED = 9, // so many change in time
    BED = 9,
    BED_X = 10,
    BED_Y = 11,
    DOFS = 12
};

// What the two sides of an edge tell each other: depth, hu, hv, bed at the first point, the same
// at the second, and the cell's means of them.  Points are in the order of the edge's ends.
constexpr int DG_EXCHANGE = 12;

// Memory is the cluster's.  A ghost's DEPTH, HU, HV, BED are the neighbour's means; its SURFACE_X,
// HU_X, HV_X, BED_X are the *values* of h, hu, hv, bed at the edge's first point, and the .._Y
// those at the second; its `full` is negative.  dg_incoming() writes all that.
template <class Real> struct DgPatch {
    std::int32_t cells, ghosts;
    Real *dof[DOFS];                 // [cells + ghosts] each
    Real *full;                      // [cells + ghosts] m: with less water the cell is of order 0
    const std::uint8_t *depth;       // [cells]
    const std::uint8_t *orientation; // [cells] orientation(triangle)
    std::int32_t edges;
    const std::int32_t *left, *right;             // [edges] cells, as in Patch
    const std::uint8_t *left_place, *right_place; // [edges] Place: place(triangle, side)
    const EdgeRun *runs;
    std::int32_t run_count;
};

template <class Real> struct DgOptions {
    Real gravity = Real(9.81);
    Real dry_tolerance = Real(1e-6); // m
    Real manning = 0;                // s/m^(1/3)
    // The limiter lets a smooth crest be: it tolerates curvature * depth * leg^2 beyond the
    // neighbours' means.  In 1/m2; 10 / (extent of the domain)^2 is a good choice; 0 is the strict
    // limiter.
    Real curvature = 0;
};

// Rates and bounds between dg_residual() and dg_update(); memory is the caller's.
template <class Real> struct DgScratch {
    Real *rate[EVOLVED]; // [cells + ghosts] of dof.  In a ghost: what passed its edge, per s: the
                         // first of three is the sum, the others the shares of the points (m3/s,
                         // m4/s2)
    Real *low[3], *high[3]; // [cells + ghosts] bounds of surface, u, v
};

// Sets rates and bounds from dof.  Ghosts must be filled.
template <class Real> void dg_residual(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                       Flux flux, const DgOptions<Real> &options,
                                       const DgScratch<Real> &scratch);

// Explicit Euler, dof += dt * rate; and with `start`, the dofs at the step's beginning, the second
// stage of SSP-RK2 (Shu and Osher 1988, doi 10.1016/0021-9991(88)90177-5):
// dof = (start + dof + dt * rate) / 2.  Then friction and the limiters.
// Returns dg_stable_step() of the new state.
template <class Real> Real dg_update(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                     const DgOptions<Real> &options, const DgScratch<Real> &scratch,
                                     Real dt, const Real *const start[EVOLVED] = nullptr);

// Largest step in s, to be multiplied by the CFL number: the least of
// inradius / (|velocity| + sqrt(gravity * depth)) / 3 over the cells' corners; 0 if one is no number.
template <class Real> Real dg_stable_step(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                          const DgOptions<Real> &options);

// What the cell tells its neighbour beyond the side (Side) of its triangle.
template <class Real> void dg_outgoing(const DgPatch<Real> &patch, const Metric<Real> &metric,
                                       std::int32_t cell, int side, Real out[DG_EXCHANGE]);

// Writes to ghost `ghost` (0 .. ghosts-1) what its neighbour told.
template <class Real>
void dg_incoming(const DgPatch<Real> &patch, std::int32_t ghost, const Real in[DG_EXCHANGE]);

// What is beyond a wall along an edge of the direction 0 or 2, from what the cell before it tells.
// Beyond an open boundary is what the cell tells, unchanged.
template <class Real> void dg_wall(Real values[DG_EXCHANGE], int direction);

// --- one cell: initial values, and changes of the grid

template <class Real> struct DgCell {
    Real dof[DOFS];
};

// A cell without its values.
struct DgShape {
    int orientation;
    double leg; // m
};

// The linear function with the given values in the middles of HYPOTENUSE, ENTRY_LEG, EXIT_LEG:
// mean, slope x, slope y.  (The projection in L2 under the rule of the edges' middles.)
template <class Real> void dg_fit(DgShape shape, const Real middles[SIDES], Real line[3]);

// The linear function's value in the middle of a side.  The cell's own bed there, not the
// scenario's, is what to ask the scenario's water for: a lake over a rough bed begins at rest then.
template <class Real> Real dg_middle(DgShape shape, const Real line[3], int side);

// Depth below which the cell is of order 0.  Belongs into DgPatch::full whenever the bed is set.
template <class Real> Real dg_full(DgShape shape, Real bed_x, Real bed_y, Real dry_tolerance);

// Cell over the given bed (mean, slopes) from values of h + bed, hu, hv in the middles of the
// sides; and from water h, hu, hv at the bed's mean if there is too little of it for order 1.
template <class Real> DgCell<Real> dg_initial(DgShape shape, const Real bed[3],
                                              const Real surface[SIDES], const Real hu[SIDES],
                                              const Real hv[SIDES], const Real water[3],
                                              Real dry_tolerance);

// Splits a cell.  BED .. BED_Y of the children are in, the rest is out.  The surface is the
// parent's; the mass is, to rounding, if the children's mean beds average to the parent's, as those
// of a Bed do (grid/bed.h).
template <class Real> void dg_split(DgShape shape, const DgCell<Real> &parent, Real dry_tolerance,
                                    DgCell<Real> &first, DgCell<Real> &second);

// Joins the two children of a cell of the given shape.  BED .. BED_Y of the parent are in (the mean
// is the average of the children's), the rest is out.  Masses and momenta are kept, slopes
// projected in L2.
template <class Real> void dg_merge(DgShape shape, const DgCell<Real> &first,
                                    const DgCell<Real> &second, Real dry_tolerance,
                                    DgCell<Real> &parent);

// Shapes of the children.
DgShape dg_first(DgShape parent);
DgShape dg_second(DgShape parent);

} // namespace swe
#endif
