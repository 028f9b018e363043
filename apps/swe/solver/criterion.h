// SPDX-License-Identifier: GPL-3.0-or-later
// criterion.h - where the grid is to be finer: by the displacement of the surface from rest
// (Schreiber et al., 6.3), and along shores.
#ifndef SWE_SOLVER_CRITERION_H
#define SWE_SOLVER_CRITERION_H

#include <algorithm>
#include <cmath>
#include "../config.h"
#include "../grid/cluster.h"

namespace swe {

// A cell that is next to a cell of a greater wish has that one's: what moves from cell to cell
// finds finer cells before it, as far as it comes in the time that it takes to cross a cell.
inline void widen(const Topology &t, const std::int8_t *wishes, std::int8_t *marks)
{
    // Read once: a mark may, for all that the compiler knows, be written over them.
    const std::int32_t *mate = t.mate.data();
    const std::int32_t cells = t.cells;
    for (std::int32_t cell = 0; cell < cells; cell++) {
        std::int8_t greatest = wishes[cell];
        if (greatest < 1)
            for (std::int32_t s = SIDES * cell; s < SIDES * (cell + 1); s++)
                greatest =
                    std::max(greatest, wishes[mate[s] < 0 ? cells + ~mate[s] : mate[s] / SIDES]);
        marks[cell] = greatest;
    }
}

// Cells on both sides of a shore are to be as fine as can be.
template <class Real>
void mark_shores(const Topology &t, const Real *h, Real dry, std::int8_t *marks)
{
    auto is_wet = [=](Real of) { return of > dry; };
    const Real *end = h + t.cells + t.ghosts;
    if (std::all_of(h, end, is_wet) || std::none_of(h, end, is_wet))
        return;
    for (std::int32_t s = 0; s < SIDES * t.cells; s++)
        if (is_wet(h[s / SIDES]) != is_wet(h[t.across(s)]))
            marks[s / SIDES] = 1;
}

// marks: +1 finer, 0, -1 coarser, for each cell.  Ghosts must be filled.
template <class Real> void mark_by_displacement(const Cluster<Real> &c, const Real *h,
                                                const Real *bed, const Config &config, double rest,
                                                std::int8_t *marks)
{
    auto refine = static_cast<Real>(config.grid.refine);
    auto coarsen = static_cast<Real>(config.grid.coarsen);
    auto dry = static_cast<Real>(config.solver.dry_tolerance), level = static_cast<Real>(rest);
    std::int32_t n = c.cells() + c.ghosts();
    std::vector<std::int8_t> wishes(n);
    int least = 1, greatest = -1;
    for (std::int32_t i = 0; i < n; i++) {
        Real surface = h[i] + bed[i] - level, displacement = h[i] > dry ? std::abs(surface) : 0;
        int wish = (displacement > refine) - (displacement < coarsen);
        least = std::min(least, wish);
        greatest = std::max(greatest, wish);
        wishes[i] = static_cast<std::int8_t>(wish);
    }
    if (least == greatest)
        std::copy_n(wishes.begin(), c.cells(), marks);
    else
        widen(c.topology, wishes.data(), marks);
    if (config.grid.shore)
        mark_shores(c.topology, h, static_cast<Real>(config.grid.dry), marks);
}

} // namespace swe
#endif
