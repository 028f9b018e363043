// SPDX-License-Identifier: GPL-3.0-or-later
// grid.cc - set-up, ghosts and interfaces; adapt.cc changes the grid.
#include "grid.h"

#include <algorithm>
#include "orientation.h"

namespace swe {

template <class Real>
Grid<Real>::Grid(const Setting &setting, Scheme<Real> &scheme_, Schedule &schedule_, MPI_Comm comm_)
    : set(setting), scheme(scheme_), schedule(schedule_), comm(comm_),
      values(comm_, setting.config.run.progress), marks(comm_, Progression::NONE)
{
    MPI_Comm_rank(comm, &rank);
    check_progress();
    start();
}

template <class Real> void Grid<Real>::check_progress() const
{
#ifdef SWE_TBB
    const bool can = false;
#else
    const bool can = Messages<Real>::can_trigger();
#endif
    if (set.config.run.progress == Progression::TRIGGER && !can)
        throw ConfigError(set.config.file +
                          ": run.progress = \"trigger\": not in this program, but in swe_trigger, "
                          "which has a library for it");
}

template <class Real> Site Grid<Real>::site_of(const Node &node) const
{
    return {node, set.forest.triangle(node.root, node.path, node.levels),
            set.forest.root_depth() + node.levels};
}

template <class Real> Site Grid<Real>::site(const Cluster<Real> &c, std::int32_t cell) const
{
    return site_in(c, {c.node.root, c.path[cell], c.depth[cell] - set.forest.root_depth()});
}

// Of a node at or below the cluster's.
template <class Real> Site Grid<Real>::site_in(const Cluster<Real> &c, const Node &node) const
{
    return {node, descendant(c.where, node.path, node.levels - c.node.levels),
            set.forest.root_depth() + node.levels};
}

template <class Real> std::int64_t Grid<Real>::cells() const
{
    std::int64_t sum = 0;
    for (const auto &c : all)
        sum += c->cells();
    return sum;
}

template <class Real> bool Grid<Real>::any(bool here)
{
    int mine = here, result = 0;
    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_LOR, comm);
    return result != 0;
}

// A root with all its cells at the same depth, without values.
template <class Real> static Cells<Real> uniform(int root, int levels, int depth, int fields)
{
    Cells<Real> cells;
    cells.node = {root, 0, 0};
    std::uint64_t n = std::uint64_t{1} << levels;
    cells.depth.assign(n, static_cast<std::uint8_t>(depth));
    for (std::uint64_t p = 0; p < n; p++)
        cells.path.push_back(p);
    cells.values.assign(fields, UnsetVector<Real>(n, 0));
    return cells;
}

template <class Real> void Grid<Real>::start()
{
    const Config &config = set.config;
    int levels = config.grid.min_depth - set.forest.root_depth();
    std::vector<Cells<Real>> cells;
    for (int r = 0; r < static_cast<int>(set.forest.roots().size()); r++)
        if (set.forest.roots()[r].rank == rank)
            cells.push_back(uniform<Real>(r, levels, config.grid.min_depth, scheme.fields()));
    replace(cells);
    fill_initial();
    starting = true;
    for (int i = config.grid.min_depth; i < 2 * config.grid.max_depth && adapt(); i++)
        fill_initial();
    starting = false;
}

template <class Real> void Grid<Real>::restore(std::vector<Cells<Real>> &&cells)
{
    values.finish();
    schedule.weigh({});
    schedule.each(static_cast<int>(cells.size()), [&](int i) { fill_beds(cells[i]); });
    all.clear();
    replace(cells);
    publish_all();
}

template <class Real> void Grid<Real>::fill_beds(Cells<Real> &cells) const
{
    for (std::int32_t i = 0; i < cells.size(); i++) {
        Site at =
            site_of({cells.node.root, cells.path[i], cells.depth[i] - set.forest.root_depth()});
        Values<Real> v;
        for (std::size_t f = 0; f < cells.values.size(); f++)
            v.field[f] = cells.values[f][i];
        scheme.fill_bed(at, v);
        for (std::size_t f = 0; f < cells.values.size(); f++)
            cells.values[f][i] = v.field[f];
    }
}

// Down the tree, half of the cluster's cells by half: a gauge asks in every step.
template <class Real>
std::pair<const Cluster<Real> *, std::int32_t> Grid<Real>::find(Lattice point) const
{
    int root_depth = set.forest.root_depth();
    for (const auto &c : all) {
        Site at = site_of(c->node);
        if (!contains(at.where, point))
            continue;
        std::int32_t first = 0, last = c->cells();
        while (last - first > 1) {
            std::int32_t half = second_half(*c, at.node, root_depth, first, last);
            bool second = contains(at.where.second(), point);
            (second ? first : last) = half;
            at = {at.node.child(second), second ? at.where.second() : at.where.first(),
                  at.depth + 1};
        }
        return {c.get(), first};
    }
    return {nullptr, 0};
}

template <class Real> void Grid<Real>::fill_initial()
{
    schedule.each(static_cast<int>(all.size()), [&](int i) {
        Cluster<Real> &c = *all[i];
        for (std::int32_t cell = 0; cell < c.cells(); cell++) {
            Values<Real> v = scheme.initial(site(c, cell), 0);
            for (int f = 0; f < c.fields; f++)
                c.field(f)[cell] = v.field[f];
        }
        c.stable_step = scheme.stable_step(c);
    });
    publish_all();
}

template <class Real> void Grid<Real>::fill_ghosts(Cluster<Real> &c)
{
    for (const Run &run : c.runs) {
        if (run.kind == Run::BORDER) {
            const auto &d = set.config.domain;
            const Side4 conditions[BORDERS] = {d.west, d.east, d.south, d.north};
            scheme.fill_border(c, run.first, run.count, conditions[run.partner]);
            if (!c.across.empty())
                std::fill_n(c.across.begin() + PASSED * c.ghosts() + run.first, run.count,
                            static_cast<Real>(c.level));
            continue;
        }
        for (int f = 0; f < told(); f++) {
            const Real *from;
            if (run.kind == Run::CLUSTER) {
                const Cluster<Real> &partner = *all[run.partner];
                from =
                    partner.interface[side].data() + static_cast<std::size_t>(f) * partner.ghosts();
            } else {
                from = values.incoming(run.partner, f);
            }
            Real *to = f < c.fields
                           ? c.field(f) + c.cells()
                           : c.across.data() + static_cast<std::size_t>(f - c.fields) * c.ghosts();
            to += run.first;
            if (run.reversed)
                std::reverse_copy(from + run.partner_first, from + run.partner_first + run.count,
                                  to);
            else
                std::copy_n(from + run.partner_first, run.count, to);
        }
    }
}

template <class Real> void Grid<Real>::publish(Cluster<Real> &c, int to_side)
{
    Real *to_interface = c.interface[to_side].data();
    scheme.publish(c, to_interface);
    if (!c.passed.empty()) {
        Real *more = std::copy(c.passed.begin(), c.passed.end(),
                               to_interface + static_cast<std::size_t>(c.fields) * c.ghosts());
        std::fill_n(more, c.ghosts(), static_cast<Real>(c.level));
    }
    for (const Run &run : c.runs) {
        if (run.kind != Run::RANK)
            continue;
        for (int f = 0; f < told(); f++) {
            const Real *from = to_interface + static_cast<std::size_t>(f) * c.ghosts() + run.first;
            Real *to = values.outgoing(run.partner, f) + run.partner_first;
            if (run.reversed)
                std::reverse_copy(from, from + run.count, to);
            else
                std::copy_n(from, run.count, to);
        }
        values.wrote(run.partner);
    }
}

// On both sides, since its neighbours may ask again; messages have it still.
template <class Real> void Grid<Real>::keep_published(Cluster<Real> &c)
{
    c.interface[side ^ 1] = c.interface[side];
    for (const Run &run : c.runs)
        if (run.kind == Run::RANK)
            values.wrote(run.partner);
}

template <class Real> void Grid<Real>::publish_all()
{
    values.finish();
    each_and_exchange([&](Cluster<Real> &c) { publish(c, side); });
}

// 0: other ranks wait for it; 1: the grid changes there, or did; else it is in an enclave.
template <class Real> int Grid<Real>::part_of(const Cluster<Real> &c) const
{
    auto waits = [](const Run &run) { return run.kind == Run::RANK; };
    auto differs = [&](const Run &run) {
        return run.kind == Run::CLUSTER && all[run.partner]->deepest != c.deepest;
    };
    if (std::any_of(c.runs.begin(), c.runs.end(), waits))
        return 0;
    bool changes = c.has_changed || c.shallowest != c.deepest ||
                   std::any_of(c.runs.begin(), c.runs.end(), differs);
    return changes ? 1 : Schedule::REST;
}

template <class Real> void Grid<Real>::list_readers()
{
    readers.assign(values.neighbours(), {});
    for (int i = 0; i < static_cast<int>(all.size()); i++)
        for (const Run &run : all[i]->runs)
            if (run.kind == Run::RANK &&
                (readers[run.partner].empty() || readers[run.partner].back() != i))
                readers[run.partner].push_back(i);
}

template <class Real> void Grid<Real>::connect()
{
    std::vector<Outline> outlines;
    std::vector<std::int64_t> work;
    for (const auto &c : all) {
        Outline outline{c->node, {}, {}};
        for (int s = 0; s < SIDES; s++) {
            outline.side_first[s] = c->topology.side_first(s);
            outline.side_edges[s] = c->topology.side_edges[s];
        }
        outlines.push_back(outline);
        work.push_back(c->cells());
    }
    Interfaces interfaces = make_interfaces(set.forest, rank, outlines);
    values.resize(interfaces, told());
    marks.resize(interfaces, 1);
    for (std::size_t i = 0; i < all.size(); i++)
        all[i]->runs = std::move(interfaces.runs[i]);
    list_readers();
    std::vector<int> parts;
    if (has_enclaves())
        for (const auto &c : all)
            parts.push_back(part_of(*c));
    schedule.weigh(work, parts);
    const std::vector<int> next = schedule.next_of(static_cast<int>(all.size()));
    for (std::size_t i = 0; i < all.size(); i++)
        all[i]->following = next[i] < 0 ? nullptr : all[next[i]].get();
}

template <class Real> std::unique_ptr<Scratch> Grid<Real>::get_scratch()
{
    {
        std::lock_guard<std::mutex> guard(scratch_lock);
        if (!scratch_free.empty()) {
            auto scratch = std::move(scratch_free.back());
            scratch_free.pop_back();
            return scratch;
        }
    }
    return scheme.make_scratch();
}

template <class Real> void Grid<Real>::put_scratch(std::unique_ptr<Scratch> scratch)
{
    std::lock_guard<std::mutex> guard(scratch_lock);
    scratch_free.push_back(std::move(scratch));
}

template class Grid<float>;
template class Grid<double>;

} // namespace swe
