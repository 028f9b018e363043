// SPDX-License-Identifier: GPL-3.0-or-later
// simulation.cc - the time loop.
#include "simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include "../lib/announce.h"
#include "scenario/scenario.h"
#include "solver/criterion.h"
#include "solver/schedule.h"

namespace euler {

using namespace apps;

namespace {

template <int D> Tree<D> base_tree(const Config &c)
{
    return Tree<D>({c.grid.min_level, c.grid.max_level, c.domain.border == Border::PERIODIC});
}

// The one that is no number, if there is one.
double greater(double a, double b) { return a != a || b <= a ? a : b; }

} // namespace

template <int D>
Simulation<D>::Simulation(const Config &config, const Element &element, MPI_Comm comm)
    : config_(config), element_(element), comm_(comm), pool_(element.sizes().scratch),
      agreement_(comm)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    refine_at_start();
}

template <int D> std::unique_ptr<Mesh<D>> Simulation<D>::make_mesh(Tree<D> tree) const
{
    return std::make_unique<Mesh<D>>(std::move(tree), cut_, rank_);
}

template <int D> Grid<D> Simulation<D>::grid_of(std::unique_ptr<Mesh<D>> mesh) const
{
    Grid<D> grid;
    grid.mesh = std::move(mesh);
    grid.cells.resize(grid.mesh->size());
    grid.halo = std::make_shared<Halo>(grid.mesh->peers(), grid.mesh->ghosts(),
                                       element_.sizes().trace, comm_);
    return grid;
}

// The scenario's gas at time 0.
template <int D> void Simulation<D>::fill(Cell &cell, const Place<D> &place) const
{
    const Sizes &sizes = element_.sizes();
    const double side = config_.domain.side / static_cast<double>(power_of_3(place.level));
    const std::size_t points = sizes.state / static_cast<std::size_t>(sizes.unknowns);
    for (std::size_t k = 0; k < points; k++) {
        double where[MOST_DIMENSIONS], unknowns[MOST_DIMENSIONS + 2];
        element_.place(k, where);
        for (int axis = 0; axis < D; axis++)
            where[axis] = (place.x[axis] + where[axis]) * side;
        gas_at(config_, where, 0, unknowns);
        for (int i = 0; i < sizes.unknowns; i++)
            cell.state[static_cast<std::size_t>(i) * points + k] = unknowns[i];
    }
}

// Level by level; each time the ranks have equal parts of the leaves that there are.
template <int D> void Simulation<D>::refine_at_start()
{
    Tree<D> tree = base_tree<D>(config_);
    for (;;) {
        cut_ = cut_evenly(tree, ranks_);
        grid_ = grid_of(make_mesh(tree));
        known_.clear();
        speed_ = 0;
        for (int i = 0; i < grid_.mesh->size(); i++) {
            auto cell = std::make_shared<Cell>(element_.sizes());
            fill(*cell, grid_.mesh->place(i));
            const Look look = element_.look(cell->state.data());
            cell->speed = look.speed;
            speed_ = greater(speed_, look.speed);
            cell->mark = mark_of(config_, grid_.mesh->place(i), look, 0);
            known_.push_back(std::max(cell->mark, Mark::KEEP)); // joined cells would be cut again
            grid_.cells[i] = std::move(cell);
        }
        agreement_.begin(grid_.mesh->begins(), known_, speed_);
        agreement_.finish(config_.emulate.look_us);
        Change<D> changed = change(tree, agreement_.marks());
        if (!changed.is_any || config_.grid.max_level == tree.limits().min_level)
            return;
        tree = std::move(changed.tree);
    }
}

template <int D> bool Simulation<D>::at_end() const
{
    return (!config_.is_emulated() && time_ >= config_.time.end * (1 - 1e-12)) ||
           (config_.time.steps >= 0 && account_.steps >= config_.time.steps);
}

// The longest stable step of the finest cell, by the fastest wave of which all ranks know; it is
// that of two steps before.
template <int D> double Simulation<D>::step_of(const Tree<D> &tree, bool is_last) const
{
    if (is_last)
        return 0;
    const double side = config_.domain.side / static_cast<double>(power_of_3(tree.finest()));
    const double dt = config_.solver.cfl * element_.courant() * side / agreement_.speed();
    return config_.is_emulated() ? dt : std::min(dt, config_.time.end - time_);
}

// Own numbers of what a part has before and after.
template <int D>
void Simulation<D>::keep(const Part &part, Grid<D> &next, typename Traversal<D>::Plan &plan)
{
    Part own = part;
    own.before -= grid_.mesh->first();
    own.after -= next.mesh->first();
    if (part.before_count != part.after_count) {
        plan.changed.push_back(own);
        return;
    }
    next.cells[own.after] = grid_.cells[own.before];
    plan.origin[own.after] = own.before;
}

// By the marks that all ranks know.
template <int D> Grid<D> Simulation<D>::next_grid(typename Traversal<D>::Plan &plan)
{
    const double start = seconds_now();
    Change<D> changed = change(grid_.mesh->tree(), agreement_.marks());
    Grid<D> next = grid_;
    if (changed.is_any) {
        next = grid_of(make_mesh(std::move(changed.tree)));
        plan.origin.assign(next.mesh->size(), -1);
        const int first = grid_.mesh->first(), last = first + grid_.mesh->size();
        for (const Part &part : changed.parts)
            if (part.before >= first && part.before < last)
                keep(part, next, plan);
        account_.changes++;
    } else {
        plan.origin.resize(next.mesh->size());
        std::iota(plan.origin.begin(), plan.origin.end(), 0);
    }
    account_.meshing += seconds_now() - start;
    return next;
}

// Before a traversal: what is known of its cells from the step before.
template <int D>
void Simulation<D>::note_marks(const Grid<D> &next, const std::vector<int> &origin)
{
    known_.assign(origin.size(), Mark::KEEP);
    speed_ = 0;
    for (std::size_t i = 0; i < origin.size(); i++)
        if (origin[i] >= 0)
            known_[i] = next.cells[i]->mark;
    for (const CellPointer &cell : grid_.cells)
        speed_ = greater(speed_, cell->speed);
}

// Cells between levels, which are all at hand, give their new marks.  For the others those of the
// step before must do: a rank with other borders would know other ones of them.
template <int D> void Simulation<D>::agree(const Grid<D> &next)
{
    for (int i = 0; i < next.mesh->size(); i++)
        if (next.mesh->is_at_transition(i))
            known_[i] = next.cells[i]->mark;
    agreement_.begin(next.mesh->begins(), known_, speed_);
}

template <int D> void Simulation<D>::receive()
{
    const double start = seconds_now();
    if (has_begun_) {
        agreement_.finish(config_.emulate.look_us);
        grid_.halo->wait(config_.emulate.look_us);
    }
    account_.waiting += seconds_now() - start;
    if (!std::isfinite(agreement_.speed())) {
        char text[200];
        std::snprintf(text, sizeof text,
                      ": after step %ld, at time %.6g, the gas is no number any more: lower "
                      "solver.cfl, now %g, or cut cells more, where a shock is",
                      account_.steps, time_, config_.solver.cfl);
        throw CommonError(config_.file + text);
    }
}

template <int D> void Simulation<D>::count(const Mesh<D> &mesh)
{
    account_.cell_steps += mesh.size();
    for (int i = 0; i < mesh.size(); i++)
        account_.skeleton_steps += mesh.zone(i) != Zone::ENCLAVE;
}

template <int D> void Simulation<D>::advance()
{
    receive();
    typename Traversal<D>::Plan plan{account_.steps, 0, has_begun_, {}, {}};
    if (has_begun_) {
        account_.steps = ++plan.step;
        time_ += last_dt_ = dt_;
    }
    has_begun_ = true;
    Grid<D> next = next_grid(plan);
    const bool is_last = at_end();
    dt_ = plan.dt = step_of(next.mesh->tree(), is_last);
    note_marks(next, plan.origin);
    const int parity = static_cast<int>(plan.step % 2);
    if (!is_last)
        next.halo->receive(parity);
    Traversal<D> traversal(config_, element_, pool_, grid_, next, std::move(plan));
    Messages messages{[&] {
                          next.halo->send(parity, [&](Source s) { return traversal.trace(s); });
                      },
                      [&] { agree(next); }};
    if (is_last)
        messages = {[] {}, [] {}};
    euler::run(config_.run.variant, traversal, messages);
    count(*next.mesh);
    grid_ = std::move(next);
}

template <int D> void Simulation<D>::watch()
{
    const double start = seconds_now();
    for (auto &watcher : watchers_)
        watcher(*this);
    account_.watching += seconds_now() - start;
}

template <int D> void Simulation<D>::announce() const
{
    if (config_.run.announce)
        announce_workload(mesh().size());
}

template <int D> void Simulation<D>::run()
{
    const double start = seconds_now();
    announce();
    bool is_last = at_end();
    if (!is_last)
        advance(); // predictors only
    watch();
    while (!is_last) {
        const long changes = account_.changes;
        advance();
        if (account_.changes != changes)
            announce();
        watch();
        is_last = at_end();
    }
    account_.kernels = pool_.sum();
    account_.total = seconds_now() - start;
}

template class Simulation<2>;
template class Simulation<3>;

} // namespace euler
