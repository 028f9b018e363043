// SPDX-License-Identifier: GPL-3.0-or-later
// simulation.cc - the time loop.
#include "simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include "../lib/output/failure.h"
#include "../lib/announce.h"
#include "scenario/bed/tree_bed.h"

namespace swe {

using namespace apps;

template <class Real>
Simulation<Real>::Simulation(const Config &config, const Scenario &scenario, MPI_Comm comm)
    : rules(config), the_scenario(scenario), communicator(comm), schedule(config.run.parallel)
{
    int ranks, rank;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    forest = std::make_unique<Forest>(config, ranks);
    bed = std::make_unique<TreeBed>(*forest, scenario, config, rank);
    Setting setting{rules, *forest, scenario, *bed};
    the_scheme = config.solver.order == 0 ? make_finite_volumes<Real>(setting)
                                          : make_galerkin<Real>(setting);
    the_grid = std::make_unique<Grid<Real>>(setting, *the_scheme, schedule, comm);
    if (config.solver.local_steps)
        local_steps = std::make_unique<LocalSteps<Real>>(*the_grid, *the_scheme, comm);
}

template <class Real> Simulation<Real>::~Simulation() = default;

template <class Real> bool Simulation<Real>::at_end() const
{
    return now >= rules.time.end * (1 - 1e-12) ||
           (rules.time.steps >= 0 && account_.steps >= rules.time.steps);
}

template <class Real> void Simulation<Real>::run()
{
    double start = MPI_Wtime();
    announce();
    agree_on_step();
    watch();
    while (!at_end()) {
        advance();
        if (account_.shortest_steps % rules.grid.every == 0) {
            double before = MPI_Wtime(), shared = schedule.seconds();
            the_grid->adapt(account_.steps);
            double all = MPI_Wtime() - before;
            account_.adapting += all;
            account_.adapting_serial += all - (schedule.seconds() - shared);
            account_.adaptions++;
            announce();
        }
        agree_on_step(); // throws if the water is not a number, before a watcher sees it
        watch();
    }
    account_.total = MPI_Wtime() - start;
}

// Of all ranks; all of them throw if the water has got no number or is faster than any step.
template <class Real> void Simulation<Real>::agree_on_step()
{
    double mine = std::numeric_limits<double>::infinity(), all;
    for (const auto &c : the_grid->clusters())
        mine = std::min(mine, static_cast<double>(c->stable_step));
    double before = MPI_Wtime();
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MIN, communicator);
    account_.agreeing += MPI_Wtime() - before;
    stable_step = all * rules.solver.cfl;
    if (!(now + stable_step > now))
        all_together(communicator, [&] { refuse(all); });
}

// Throws if this rank has a cluster of such a step or none.
template <class Real> void Simulation<Real>::refuse(double step) const
{
    for (const auto &c : the_grid->clusters()) {
        if (static_cast<double>(c->stable_step) > step)
            continue;
        auto water = [&](int value, std::int32_t cell) {
            return static_cast<double>(c->field(the_scheme->means()[value])[cell]);
        };
        std::int32_t worst = 0;
        for (std::int32_t i = 1; i < c->cells(); i++)
            if (the_scheme->stable_step(*c, i) < the_scheme->stable_step(*c, worst))
                worst = i;
        Point at = forest->centroid(the_grid->site(*c, worst).where);
        char text[400];
        std::snprintf(text, sizeof text,
                      "after step %ld, at %.6g s, the water near x = %.6g, y = %.6g m is too fast, "
                      "or no number: h = %g m, hu = %g, hv = %g m2/s; lower solver.cfl, now %g, or "
                      "mend the bed or the water there",
                      account_.steps, now, at.x, at.y, water(0, worst), water(1, worst),
                      water(2, worst), rules.solver.cfl);
        throw std::runtime_error(rules.file + ": " + text);
    }
}

template <class Real> void Simulation<Real>::advance()
{
    dt = std::min(stable_step, rules.time.end - now);
    if (local_steps) {
        // Waves move by many of the shortest cells, and not beyond what the grid was made for.
        auto done = static_cast<int>(account_.shortest_steps % rules.grid.every);
        Round round =
            local_steps->round(dt, rules.solver.cfl, rules.time.end - now, rules.grid.every - done);
        dt = round.length_s;
        account_.shortest_steps += round.steps;
        account_.cell_steps += round.cells;
        account_.agreeing += round.agreeing_s;
    } else {
        advance_all();
        account_.shortest_steps++;
    }
    now += dt;
    account_.steps++;
}

// All clusters by the same step.  Where water has got so fast in the first stage that the second
// one would take more than there is, that is a step of Euler's.
template <class Real> void Simulation<Real>::advance_all()
{
    for (int stage = 0; stage < the_scheme->stages(); stage++) {
        if (stage > 0 && !the_scheme->later_stages_are_safe() && !is_safe()) {
            account_.euler_steps++;
            return;
        }
        the_grid->phase([&](Cluster<Real> &c, Scratch &scratch) {
            the_scheme->advance(c, static_cast<Real>(dt), stage, scratch);
        });
        account_.cell_steps += the_grid->cells();
    }
}

// Is dt, for the water as it is?
template <class Real> bool Simulation<Real>::is_safe()
{
    int mine = 1, all;
    for (const auto &c : the_grid->clusters())
        mine = mine && dt <= static_cast<double>(c->stable_step) * Scheme<Real>::SAFE;
    double before = MPI_Wtime();
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, communicator);
    account_.agreeing += MPI_Wtime() - before;
    return all;
}

template <class Real> void Simulation<Real>::watch()
{
    double before = MPI_Wtime();
    for (auto &watcher : watchers)
        watcher->look(*this);
    account_.watching += MPI_Wtime() - before;
}

template <class Real> void Simulation<Real>::announce()
{
    auto work = static_cast<double>(the_grid->cells());
    if (rules.run.announce && rules.run.blocking)
        announce_and_wait(work);
    else if (rules.run.announce)
        announce_workload(work);
}

template <class Real> std::int64_t Simulation<Real>::cells()
{
    std::int64_t mine = the_grid->cells(), all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, communicator);
    return all;
}

template <class Real> double Simulation<Real>::water()
{
    double mine = 0, all;
    for (const auto &c : the_grid->clusters()) {
        double sum = 0;
        for (std::int32_t i = 0; i < c->cells(); i++)
            sum += static_cast<double>(c->field(the_scheme->means()[0])[i]) *
                   forest->area(c->depth[i]);
        mine += sum;
    }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, communicator);
    return all;
}

template <class Real> void Simulation<Real>::restore(double time, long step, long shortest_steps,
                                                     std::vector<Cells<Real>> &&cells)
{
    now = time;
    account_.steps = step;
    account_.shortest_steps = shortest_steps;
    the_grid->restore(std::move(cells));
}

template class Simulation<float>;
template class Simulation<double>;

} // namespace swe
