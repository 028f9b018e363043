// SPDX-License-Identifier: GPL-3.0-or-later
// local_steps.cc - levels, rounds, and what passes between clusters of different levels.
#include "local_steps.h"

#include <algorithm>

namespace swe {

template <class Real> void LocalSteps<Real>::agree(const void *mine, void *all, int count,
                                                   MPI_Datatype type, MPI_Op operation)
{
    double before = MPI_Wtime();
    MPI_Allreduce(mine, all, count, type, operation, comm);
    agreeing_s += MPI_Wtime() - before;
}

// Returns the highest level of all ranks.
template <class Real>
int LocalSteps<Real>::set_levels(double shortest_s, double cfl, int most_steps)
{
    int mine[LEVELS] = {1}; // which all clusters may come to
    for (auto &c : grid.clusters()) {
        double stable = static_cast<double>(c->stable_step) * cfl * MARGIN;
        c->level = 0;
        while (c->level + 1 < LEVELS && 2 << c->level <= most_steps && stable >= 2 * shortest_s) {
            stable /= 2;
            c->level++;
        }
        mine[c->level] = 1;
    }
    agree(mine, present, LEVELS, MPI_INT, MPI_LOR);
    int highest = 0;
    for (int k = 0; k < LEVELS; k++)
        highest = present[k] ? k : highest;
    return highest;
}

template <class Real>
Round LocalSteps<Real>::round(double shortest_s, double cfl, double most_s, int most_steps)
{
    agreeing_s = 0;
    int highest = set_levels(shortest_s, cfl, most_steps), substeps = 1 << highest;
    longest_s = std::min(shortest_s, most_s / substeps);
    times.assign(1, 0);
    done = 0;
    grid.publish_all(); // the levels
    for (int s = 0; s < substeps; s++) {
        double substep = s == 0 ? longest_s : agree_on_substep(cfl);
        if (!(substep > 0)) // sums over a time of 0 would spoil the water that is still good
            break;
        times.push_back(times[s] + substep);
        for (int k = 0; k <= highest; k++)
            if (present[k] && (s + 1) % (1 << k) == 0)
                grid.phase([&](Cluster<Real> &c, Scratch &scratch) { advance(c, s, scratch); }, k);
    }
    return {times.back(), static_cast<int>(times.size()) - 1, done, agreeing_s};
}

// The next one: shorter than planned if the lowest level's water has got too fast for that.
template <class Real> double LocalSteps<Real>::agree_on_substep(double cfl)
{
    double mine = longest_s, all;
    for (const auto &c : grid.clusters()) {
        auto stable = static_cast<double>(c->stable_step);
        if (c->level == 0 && stable * Scheme<Real>::SAFE < longest_s)
            mine = std::min(mine, stable * cfl);
    }
    agree(&mine, &all, 1, MPI_DOUBLE, MPI_MIN);
    return all;
}

// To one whose next step is safe for the water as it is now.  The cluster's step ends where steps
// of all lower levels end, so it may go on with any of them.
template <class Real> void LocalSteps<Real>::lower_level(Cluster<Real> &c) const
{
    double safe = static_cast<double>(c.stable_step) * Scheme<Real>::SAFE;
    while (c.level > 0 && (!present[c.level] || safe < longest_s * (1 << c.level)))
        c.level--;
}

template <class Real>
void LocalSteps<Real>::advance(Cluster<Real> &c, int substep, Scratch &scratch)
{
    std::int32_t ghosts = c.ghosts();
    int begin = substep + 1 - (1 << c.level);
    auto dt = static_cast<Real>(times[substep + 1] - times[begin]);
    std::vector<Real> more(static_cast<std::size_t>(PASSED) * ghosts, 0);
    for (std::int32_t g = 0; g < ghosts; g++) {
        auto its_level = static_cast<int>(c.across[PASSED * ghosts + g]);
        if (its_level == c.level)
            continue;
        Real leaves[PASSED], enters[PASSED], all[PASSED];
        scheme.flow(c, g, leaves, enters);
        std::copy_n(leaves, PASSED, all);
        if (its_level > c.level)
            scheme.spare(c, g, static_cast<Real>(longest_s * (1 << its_level)), leaves, enters);
        for (int v = 0; v < PASSED; v++) {
            Real &sum = c.passed[v * ghosts + g];
            if (its_level > c.level) {
                sum = (begin % (1 << its_level) == 0 ? 0 : sum) + enters[v] * dt;
                more[v * ghosts + g] = all[v] - leaves[v];
            } else {
                more[v * ghosts + g] = c.across[v * ghosts + g] / dt + leaves[v];
            }
        }
    }
    scheme.advance_with(c, dt, more.data(), scratch);
    done += c.cells();
    lower_level(c);
}

template class LocalSteps<float>;
template class LocalSteps<double>;

} // namespace swe
