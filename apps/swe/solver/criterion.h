// SPDX-License-Identifier: GPL-3.0-or-later
// criterion.h - where the grid is to be finer: by the displacement of the surface from rest
// (papers/invasive-compute-balancing.txt §6.3), and along shores.
#ifndef SWE_SOLVER_CRITERION_H
#define SWE_SOLVER_CRITERION_H

#include <cmath>
#include "../config.h"
#include "../grid/cluster.h"

namespace swe {

// marks: +1 finer, 0, -1 coarser, for each cell.  Ghosts must be filled.
template <class Real>
void mark_by_displacement(const Cluster<Real> &c, const Real *h, const Real *bed, const Config &config,
                          double rest, std::int8_t *marks)
{
    auto refine = static_cast<Real>(config.grid.refine), coarsen = static_cast<Real>(config.grid.coarsen);
    auto dry = static_cast<Real>(config.solver.dry_tolerance), level = static_cast<Real>(rest);
    for (std::int32_t i = 0; i < c.cells(); i++) {
        Real displacement = h[i] > dry ? std::abs(h[i] + bed[i] - level) : 0;
        marks[i] = static_cast<std::int8_t>((displacement > refine) - (displacement < coarsen));
    }
    if (!config.grid.shore)
        return;
    for (std::size_t e = 0; e < c.topology.left.size(); e++) {
        std::int32_t l = c.topology.left[e], r = c.topology.right[e];
        if ((h[l] > dry) == (h[r] > dry))
            continue;
        for (std::int32_t i : {l, r})
            if (i < c.cells())
                marks[i] = 1;
    }
}

} // namespace swe
#endif
