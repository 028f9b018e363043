// SPDX-License-Identifier: GPL-3.0-or-later
// finite_volumes.h - the shallow water equations in finite volumes of order 0, over a patch.
//
// The Sierpinski curve goes from a cell to the next through an edge, so two of a cell's
// three neighbours are the cells before and behind it in memory, and only the third has to be
// looked up.  A step goes over the cells twice: first velocities and wave speeds of all cells
// and ghosts, into scratch memory that stays in the cache; then, with the cells in vectors,
// the flux to the next cell, the flux through the third edge (which both of its cells compute, to
// the same bits, see edge.h), and the new state in place.  Fluxes are added as legs first,
// hypotenuse last: results depend neither on the clusters nor on the position of a cell in them.
#ifndef SWE_SOLVER_FINITE_VOLUMES_H
#define SWE_SOLVER_FINITE_VOLUMES_H

#include <cstdint>
#include <vector>
#include "../config.h"
#include "../../lib/aligned.h"
#include "../grid/patch.h"

namespace swe {

using namespace apps;

// The neighbours of each cell in a patch, as a step needs them: 5 bytes a cell.
struct FvLinks {
    std::int32_t cells = 0, ghosts = 0;
    std::int32_t first_ghost_at = 0; // in scratch arrays: behind cells and what fills up a vector
    std::int32_t before = 0,
                 behind = 0;     // scratch index of the first cell's and last cell's neighbour
    std::uint8_t before_way = 0; // outward direction of the first cell's edge to `before`
    AlignedVector<std::int32_t> third;    // [cells] scratch index of the third neighbour
    AlignedVector<std::uint8_t> shape;    // [cells] directions, SHAPE_ in finite_volume_links.h
    std::vector<std::int32_t> ghost_cell; // [ghosts] the cell at the ghost's edge
    std::vector<std::uint8_t> ghost_way;  // [ghosts] outward direction of that edge: of NORMAL_X,
                                          // NORMAL_Y, plus DIRECTIONS if against it
};

template <class Real> struct FvOptions {
    Real gravity = Real(9.81);       // m/s2
    Real dry_tolerance = Real(1e-6); // m; of less water the momentum is 0.  The water stays.
    Real manning = 0;                // s/m^(1/3)
};

// Memory for a step; any patch may use it next, after fv_step.  One a thread is enough.
template <class Real> struct FvScratch {
    AlignedVector<Real> h, u, v, c, bed;          // of cells and ghosts before the step
    AlignedVector<Real> rows;                     // h, u, v, c again, of one cell side by side
    AlignedVector<Real> rate_h, rate_hu, rate_hv; // [cells] of fv_residual
};

// A state of the cells of a patch that a step starts from or goes back to.
template <class Real> struct FvState {
    const Real *h, *hu, *hv;
};

// Finds the links of a patch.  To be called when its grid has changed.
// Throws std::logic_error if two cells in succession have no common edge.
template <class Real> void fv_link(const Patch<Real> &patch, FvLinks &links);

// One step of Euler's method, in place: q + dt r(q); or, with `start`, the second one of SSP-RK2,
// (start + q + dt r(q)) / 2.  Ghosts must be up to date.  With friction, if options.manning > 0.
// Returns inradius / (|u| + sqrt(g h)) of the new state, the smallest of all cells: the stable step
// for cfl = 1, in s; infinity if there is no water, 0 if the water of a cell has no finite number.
// Water stays >= 0 if dt <= 0.5 of what was returned for the state that is stepped from (by all
// patches); cfl = 0.45 has room for SSP-RK2's second step.  `next`, if known, is the patch that this
// core is likely to step next: its memory is read ahead.
// Metric: lengths must be halved, to the bit, with two bisections.
template <class Real>
Real fv_step(const Patch<Real> &patch, const FvLinks &links, const Metric<Real> &metric, Flux flux,
             const FvOptions<Real> &options, Real dt, FvScratch<Real> &scratch,
             const FvState<Real> *start = nullptr, const Patch<Real> *next = nullptr);

// The rates dq/dt alone, without friction, into scratch.rate_*.
template <class Real> void fv_residual(const Patch<Real> &patch, const FvLinks &links,
                                       const Metric<Real> &metric, Flux flux,
                                       const FvOptions<Real> &options, FvScratch<Real> &scratch);

// What fv_step does behind the fluxes, with the rates in scratch.  Returns as fv_step.
template <class Real>
Real fv_update(const Patch<Real> &patch, const Metric<Real> &metric, const FvOptions<Real> &options,
               Real dt, FvScratch<Real> &scratch, const FvState<Real> *start = nullptr);

// The stable step of the present state, as fv_step returns it.
template <class Real> Real fv_stable_step(const Patch<Real> &patch, const Metric<Real> &metric,
                                          const FvOptions<Real> &options);

} // namespace swe
#endif
