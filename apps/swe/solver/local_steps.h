// SPDX-License-Identifier: GPL-3.0-or-later
// local_steps.h - a step of its own for each cluster: a power of two of the shortest one.
//
// Coarse cells and shallow water are stable with longer steps.  In a round, the longest step of
// all, a cluster of level k makes a step at the end of every 2^k of the shortest ones, after the
// clusters of lower levels.  No round is longer than what waves have left until the grid follows
// them, which it does after grid.every of the shortest steps.  At an edge between two clusters the
// faster one computes what passes, with the slower one as it was, and adds it up.  The slower one
// takes the sum for what passed in its step.  So nothing is lost or made.  (Osher and Sanders
// 1983, doi:10.1090/S0025-5718-1983-0717689-8;
// Schreiber et al., section 4)
//
// No cell gives more than it has.  Of a slower cluster the faster one takes no more than that has
// for its own step (Scheme::spare).  Water that gets faster in a round moves its cluster to a lower
// level; and the shortest steps get shorter where the lowest level needs it.
#ifndef SWE_SOLVER_LOCAL_STEPS_H
#define SWE_SOLVER_LOCAL_STEPS_H

#include <atomic>
#include <vector>
#include "../grid/grid.h"

namespace swe {

// What one was.
struct Round {
    double length_s = 0;    // of the simulation
    int steps = 0;          // of the shortest ones
    std::int64_t cells = 0; // that were advanced, as often as they were
    double agreeing_s = 0;  // of this rank, for what all ranks must know
};

template <class Real> class LocalSteps {
public:
    LocalSteps(Grid<Real> &grid_, const Scheme<Real> &scheme_, MPI_Comm comm_)
        : grid(grid_), scheme(scheme_), comm(comm_)
    {
    }

    // One round; collective.  shortest_s: the shortest stable step of all ranks times cfl.  Not
    // longer than most_s, nor than most_steps of the shortest steps: the grid stays as it is in a
    // round.  It ends early where water has become no number: stable_step of some cluster is 0 then.
    Round round(double shortest_s, double cfl, double most_s, int most_steps);

private:
    static constexpr int LEVELS = 6;
    static constexpr double MARGIN = 0.9; // the water goes on changing in a round

    Grid<Real> &grid;
    const Scheme<Real> &scheme;
    MPI_Comm comm;
    int present[LEVELS] = {};  // are there clusters of the level, on any rank?
    double longest_s = 0;      // of the round's shortest steps
    double agreeing_s = 0;     // in the round
    std::vector<double> times; // when the round's shortest steps begin and end, s
    // Threads add to it in a phase; round() reads it after the phase, whose end orders them.
    std::atomic<std::int64_t> done{0}; // cells

    int set_levels(double shortest_s, double cfl, int most_steps);
    void agree(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op operation);
    double agree_on_substep(double cfl);
    void advance(Cluster<Real> &c, int substep, Scratch &scratch);
    void lower_level(Cluster<Real> &c) const;
};

} // namespace swe
#endif
