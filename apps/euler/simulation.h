// SPDX-License-Identifier: GPL-3.0-or-later
// simulation.h - the time loop of a rank.
//
// In each step: what the ranks have agreed on is waited for, and the traces of other ranks; the
// tree changes by the marks of the step before (of cells between levels; of others those of two
// steps before, see agree()); and a traversal brings all cells to the next time (solver/).
#ifndef EULER_SIMULATION_H
#define EULER_SIMULATION_H

#include <functional>
#include <memory>
#include <vector>
#include "config.h"
#include "parallel/agreement.h"
#include "solver/traversal.h"

namespace euler {

// What was done, and where the time of a rank has gone, in seconds.
struct Account {
    double total = 0, waiting = 0, meshing = 0, watching = 0;
    std::int64_t cell_steps = 0, skeleton_steps = 0; // those of them at borders or between levels
    long steps = 0, changes = 0;                     // steps in which the tree changed
    Scratch kernels;                                 // their numbers and seconds, of all threads
};

template <int D> class Simulation {
public:
    // Before the first step and after each one; collective.
    using Watcher = std::function<void(Simulation &)>;

    // Collective.  The grid is refined until it fits the scenario.  Configuration and element must
    // outlive it.
    Simulation(const Config &config, const Element &element, MPI_Comm comm);

    void add(Watcher watcher) { watchers_.push_back(std::move(watcher)); }
    // Throws apps::CommonError if the gas has got no number.
    void run();

    const Config &config() const { return config_; }
    const Element &element() const { return element_; }
    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    double time() const { return time_; }
    double last_step() const { return last_dt_; }
    bool at_end() const;
    const Account &account() const { return account_; }

    // Of this rank; and of all ranks the number of leaves.
    const Mesh<D> &mesh() const { return *grid_.mesh; }
    const Cell &cell(int number) const { return *grid_.cells[number]; }
    int leaves() const { return mesh().tree().size(); }

private:
    const Config &config_;
    const Element &element_;
    MPI_Comm comm_;
    int rank_ = 0, ranks_ = 1;
    ScratchPool pool_;
    Cut cut_;
    Grid<D> grid_;
    Agreement agreement_;
    std::vector<Watcher> watchers_;
    Account account_;
    double time_ = 0, dt_ = 0, last_dt_ = 0;
    bool has_begun_ = false; // there was a traversal
    std::vector<Mark> known_; // marks of the step before, of the cells after a traversal
    double speed_ = 0;        // fastest wave of this rank's cells before a traversal

    std::unique_ptr<Mesh<D>> make_mesh(Tree<D> tree) const;
    void refine_at_start();
    void fill(Cell &cell, const Place<D> &place) const;
    Grid<D> grid_of(std::unique_ptr<Mesh<D>> mesh) const;
    Grid<D> next_grid(typename Traversal<D>::Plan &plan);
    void keep(const Part &part, Grid<D> &next, typename Traversal<D>::Plan &plan);
    double step_of(const Tree<D> &tree, bool is_last) const;
    void advance();
    void note_marks(const Grid<D> &next, const std::vector<int> &origin);
    void agree(const Grid<D> &next);
    void receive();
    void count(const Mesh<D> &mesh);
    void watch();
    void announce() const;
};

} // namespace euler
#endif
