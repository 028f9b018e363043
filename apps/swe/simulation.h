// SPDX-License-Identifier: GPL-3.0-or-later
// simulation.h - the time loop of a rank.
//
// In each time step: the longest stable step, agreed by all ranks; one phase a stage of the
// scheme; and now and then a change of the grid.  Output (files, gauges, progress) is by
// Watchers.
#ifndef SWE_SIMULATION_H
#define SWE_SIMULATION_H

#include <memory>
#include <mpi.h>
#include <vector>
#include "grid/grid.h"
#include "solver/local_steps.h"

namespace swe {

// Where the time of a rank has gone, in seconds, and what was done.
struct Account {
    double total = 0, adapting = 0, agreeing = 0, watching = 0;
    double adapting_serial = 0;  // of adapting, outside of loops that threads share
    std::int64_t cell_steps = 0; // cells times stages
    long steps = 0, adaptions = 0;
    long shortest_steps =
        0;                // of the fastest, smallest cells; with local time steps more than steps
    long euler_steps = 0; // of two stages that were left at one
};

template <class Real> class Simulation {
public:
    class Watcher {
    public:
        virtual ~Watcher() = default;
        // Before the first step and after each; collective.
        virtual void look(Simulation &simulation) = 0;
    };

    // Collective.  Throws what the parts throw.  Configuration and scenario must outlive it.
    Simulation(const Config &config, const Scenario &scenario, MPI_Comm comm);
    ~Simulation();

    void add(std::unique_ptr<Watcher> watcher) { watchers.push_back(std::move(watcher)); }
    // Throws CommonError (lib/output/failure.h) when there is no step that the water is stable
    // with.
    void run();

    const Config &config() const { return rules; }
    const Scenario &scenario() const { return the_scenario; }
    Grid<Real> &grid() { return *the_grid; }
    const Scheme<Real> &scheme() const { return *the_scheme; }
    double time() const { return now; }
    bool at_end() const;
    double last_step() const { return dt; }
    long step() const { return account_.steps; }
    const Account &account() const { return account_; }
    MPI_Comm comm() const { return communicator; }
    std::int64_t cells(); // of all ranks
    double water();       // m3, of all ranks

    // Goes on from here, so many steps after the beginning (see Account).
    void restore(double time, long step, long shortest_steps, std::vector<Cells<Real>> &&cells);

private:
    const Config &rules;
    const Scenario &the_scenario;
    MPI_Comm communicator;
    std::unique_ptr<Bed> bed;
    std::unique_ptr<Forest> forest;
    std::unique_ptr<Scheme<Real>> the_scheme;
    Schedule schedule;
    std::unique_ptr<Grid<Real>> the_grid;
    std::unique_ptr<LocalSteps<Real>> local_steps; // if the configuration says so
    std::vector<std::unique_ptr<Watcher>> watchers;
    Account account_;
    double now = 0, dt = 0, stable_step = 0;

    void agree_on_step();
    void refuse(double step) const;
    void advance();
    void advance_all();
    bool is_safe();
    void watch();
    void announce();
};

} // namespace swe
#endif
