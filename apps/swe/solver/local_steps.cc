// SPDX-License-Identifier: GPL-3.0-or-later
// local_steps.cc - levels, rounds, and what passes between clusters of different levels.
#include "local_steps.h"

#include <algorithm>

namespace swe {

// Returns the highest level of all ranks.
template <class Real> int LocalSteps<Real>::set_levels(double shortest_s, double cfl)
{
    int mine[LEVELS] = {};
    for (auto &c : grid.clusters()) {
        double stable = static_cast<double>(c->stable_step) * cfl * MARGIN;
        c->level = 0;
        while (c->level + 1 < LEVELS && stable >= 2 * shortest_s) {
            stable /= 2;
            c->level++;
        }
        mine[c->level] = 1;
    }
    MPI_Allreduce(mine, present, LEVELS, MPI_INT, MPI_LOR, comm);
    int highest = 0;
    for (int k = 0; k < LEVELS; k++)
        highest = present[k] ? k : highest;
    return highest;
}

template <class Real>
double LocalSteps<Real>::round(double shortest_s, double cfl, double most_s, std::int64_t &work)
{
    int highest = set_levels(shortest_s, cfl), substeps = 1 << highest;
    shortest_s = std::min(shortest_s, most_s / substeps);
    grid.publish_all(); // the levels
    for (int s = 0; s < substeps; s++)
        for (int k = 0; k <= highest; k++)
            if (present[k] && (s + 1) % (1 << k) == 0)
                grid.phase(
                    [&](Cluster<Real> &c, Scratch &scratch) { advance(c, s, shortest_s, scratch); },
                    k);
    for (const auto &c : grid.clusters())
        work += static_cast<std::int64_t>(c->cells()) << (highest - c->level);
    return shortest_s * substeps;
}

template <class Real>
void LocalSteps<Real>::advance(Cluster<Real> &c, int substep, double shortest_s, Scratch &scratch)
{
    std::int32_t ghosts = c.ghosts();
    int begin = substep + 1 - (1 << c.level);
    auto dt = static_cast<Real>(shortest_s * (1 << c.level));
    std::vector<Real> more(static_cast<std::size_t>(PASSED) * ghosts, 0);
    for (std::int32_t g = 0; g < ghosts; g++) {
        auto its_level = static_cast<int>(c.across[PASSED * ghosts + g]);
        if (its_level == c.level)
            continue;
        Real leaves[PASSED], enters[PASSED];
        scheme.flow(c, g, leaves, enters);
        for (int v = 0; v < PASSED; v++) {
            Real &sum = c.passed[v * ghosts + g];
            if (its_level > c.level)
                sum = (begin % (1 << its_level) == 0 ? 0 : sum) + enters[v] * dt;
            else
                more[v * ghosts + g] = c.across[v * ghosts + g] / dt + leaves[v];
        }
    }
    scheme.advance_with(c, dt, more.data(), scratch);
}

template class LocalSteps<float>;
template class LocalSteps<double>;

} // namespace swe
