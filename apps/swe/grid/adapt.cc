// SPDX-License-Identifier: GPL-3.0-or-later
// adapt.cc - refinement and coarsening by newest-vertex bisection; clusters split and joined.
//
// Refinement: a cell that is bisected has its hypotenuse cut; the cell across must cut the same
// edge, and if that is a leg of it, its own hypotenuse before.  Cuts so travel to ever coarser
// cells, at most once through the depths of the grid.  Inside a cluster they are followed at once,
// and what reaches the boundary is seen by the neighbour in the next sweep: sweeps are bounded by
// the depths, too.  After each sweep all ranks agree whether there is another one; with run.enclaves
// they do less often (adapt_at_once.cc).
//
// Coarsening: two siblings become their parent if the two across the parent's hypotenuse agree, so
// that the vertex in the middle of it has no cell left.  One exchange of proposals settles that:
// a cell that sees the other one's proposal knows that the other one sees its own.
#include "grid.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include "orientation.h"

namespace swe {

namespace {

// Marks at the boundary.
constexpr std::uint8_t CUT = Plan::CUT, MERGE = Plan::MERGE;

constexpr unsigned bit_of(int side) { return 1u << side; }

} // namespace

// --- refinement

template <class Real> void Grid<Real>::mark_side_of(int i, std::int32_t cell, int side_of_cell)
{
    Plan &plan = plans[i];
    std::uint8_t &bits = plan.split[cell];
    if (!(bits & bit_of(HYPOTENUSE)))
        plan.work.push_back(cell);
    bits |= bit_of(side_of_cell) | bit_of(HYPOTENUSE);
    plan.splits = true;
}

template <class Real> void Grid<Real>::hand_on(int i)
{
    Plan &plan = plans[i];
    const Topology &t = all[i]->topology;
    while (!plan.work.empty()) {
        std::int32_t cell = plan.work.back();
        plan.work.pop_back();
        std::int32_t mate = t.mate[3 * cell + HYPOTENUSE];
        if (mate >= 0)
            mark_side_of(i, mate / 3, mate % 3);
    }
}

template <class Real> bool Grid<Real>::cuts(int i, std::int32_t cell_side) const
{
    return cell_side % SIDES == HYPOTENUSE && plans[i].split[cell_side / SIDES];
}

// Is the side half of the hypotenuse of a parent that was proposed?
template <class Real> bool Grid<Real>::would_merge(int i, std::int32_t cell_side) const
{
    const auto &merge = plans[i].merge;
    std::int32_t cell = cell_side / SIDES, side_of_cell = cell_side % SIDES;
    return (side_of_cell == ENTRY_LEG && merge[cell]) ||
           (side_of_cell == EXIT_LEG && cell > 0 && merge[cell - 1]);
}

// Tells the neighbours the marks of the cell sides at the boundary; returns how many are cut.
template <class Real> template <class Marks>
std::int32_t Grid<Real>::publish_marks(int i, Marks marks_of)
{
    Cluster<Real> &c = *all[i];
    std::uint8_t *out = c.marks[mark_side ^ 1].data();
    std::int32_t count = 0;
    for (const Run &run : c.runs) {
        if (run.kind == Run::BORDER)
            continue;
        for (std::int32_t g = run.first; g < run.first + run.count; g++) {
            out[g] = marks_of(c.topology.boundary[g]);
            count += (out[g] & CUT) != 0;
        }
        if (run.kind == Run::RANK)
            for (std::int32_t k = 0; k < run.count; k++)
                marks.outgoing(run.partner, 0)[run.partner_of(k)] = out[run.first + k];
    }
    return count;
}

template <class Real> void Grid<Real>::publish_cuts(int i)
{
    Plan &plan = plans[i];
    std::int32_t count = publish_marks(i, [&](std::int32_t s) { return cuts(i, s) ? CUT : 0; });
    plan.news[mark_side ^ 1] = count > plan.shown; // once cut, always cut
    plan.shown = count;
}

template <class Real> void Grid<Real>::take_marks(int i)
{
    const Cluster<Real> &c = *all[i];
    std::vector<std::uint8_t> &incoming = plans[i].incoming;
    incoming.assign(c.ghosts(), 0);
    for (const Run &run : c.runs)
        for (std::int32_t k = 0; k < run.count; k++) {
            if (run.kind == Run::CLUSTER)
                incoming[run.first + k] = all[run.partner]->marks[mark_side][run.partner_of(k)];
            else if (run.kind == Run::RANK && ranks_tell)
                incoming[run.first + k] = marks.incoming(run.partner, 0)[run.partner_of(k)];
        }
}

// A disc that takes one turn around the domain's middle in 240 steps.  A restart finds it where it
// was.
template <class Real> void Grid<Real>::mark_disc(const Cluster<Real> &c, std::int8_t *wish) const
{
    constexpr double turn_of_a_step = 0.0262;
    const auto &d = set.config.domain;
    double width = set.config.width(), height = set.config.height();
    double short_side = std::min(width, height), turn = turn_of_a_step * static_cast<double>(step);
    double x = d.x0 + width / 2 + 0.3 * short_side * std::cos(turn);
    double y = d.y0 + height / 2 + 0.3 * short_side * std::sin(turn);
    for (std::int32_t cell = 0; cell < c.cells(); cell++) {
        Point p = set.forest.centroid(site(c, cell).where);
        if (std::hypot(p.x - x, p.y - y) < 0.15 * short_side)
            wish[cell] = 1;
    }
}

// Islands and ponds within a coarse cell, of which the water does not know: bisected later, its
// water would have to run off islands and into ponds.  Later there are none: wet cells and dry
// ones are not joined.  Also where shores are not kept fine.
template <class Real>
void Grid<Real>::mark_hidden_shores(const Cluster<Real> &c, std::int8_t *wish) const
{
    double shore = set.scenario.rest() - set.config.solver.dry_tolerance;
    for (std::int32_t cell = 0; cell < c.cells(); cell++)
        if (wish[cell] <= 0 && set.bed.crosses(site(c, cell).node, shore))
            wish[cell] = 1;
}

// Is the surface displaced in any of the triangles of this depth within the site?
template <class Real> bool Grid<Real>::is_displaced(const Site &at, int depth) const
{
    if (at.depth < depth)
        return is_displaced({at.node.child(0), at.where.first(), at.depth + 1}, depth) ||
               is_displaced({at.node.child(1), at.where.second(), at.depth + 1}, depth);
    Point p = set.forest.centroid(at.where);
    double bed = set.bed.sample(p.x, p.y), h = set.scenario.water(p.x, p.y, bed, 0).h;
    return h > set.config.solver.dry_tolerance &&
           std::fabs(h + bed - set.scenario.rest()) > set.config.grid.refine;
}

// Waves that begin within a coarse cell, and not in its middle, which is all that it knows of.
template <class Real>
void Grid<Real>::mark_hidden_sources(const Cluster<Real> &c, std::int8_t *wish) const
{
    // Six bisections: an eighth of the coarsest cells' sides, and at most so many in all.
    constexpr double most = 1 << 18;
    const Config &config = set.config;
    double squares = 4. * config.domain.nx * config.domain.ny;
    int depth = std::min(config.grid.max_depth, config.grid.min_depth + 6);
    while (depth > config.grid.min_depth && std::ldexp(squares, depth) > most)
        depth--;
    for (std::int32_t cell = 0; cell < c.cells(); cell++)
        if (wish[cell] <= 0 && c.depth[cell] < depth && is_displaced(site(c, cell), depth))
            wish[cell] = 1;
}

template <class Real> void Grid<Real>::wish_and_close(int i)
{
    Cluster<Real> &c = *all[i];
    Plan &plan = plans[i];
    plan.wish.resize(c.cells());
    plan.split.assign(c.cells(), 0);
    plan.splits = plan.settled = false;
    plan.shown = 0;
    fill_ghosts(c);
    scheme.mark(c, plan.wish.data());
    if (set.config.grid.wander)
        mark_disc(c, plan.wish.data());
    if (starting) {
        mark_hidden_shores(c, plan.wish.data());
        mark_hidden_sources(c, plan.wish.data());
    }
    const std::int8_t *wish = plan.wish.data();
    const std::uint8_t *depth = c.depth.data();
    for (std::int32_t cell = 0, cells = c.cells(); cell < cells; cell++)
        if (wish[cell] > 0 && depth[cell] < set.config.grid.max_depth)
            mark_side_of(i, cell, HYPOTENUSE);
    hand_on(i);
    publish_cuts(i);
}

// Did a neighbour tell of new cuts?  What other ranks tell is not known before it is looked at.
template <class Real> bool Grid<Real>::hears_news(int i) const
{
    const auto &runs = all[i]->runs;
    return std::any_of(runs.begin(), runs.end(), [&](const Run &run) {
        return (run.kind == Run::RANK && ranks_tell) ||
               (run.kind == Run::CLUSTER && plans[run.partner].news[mark_side]);
    });
}

template <class Real> void Grid<Real>::sweep(int i)
{
    Plan &plan = plans[i];
    bool hears = hears_news(i);
    if (plan.settled && !hears) {
        plan.news[mark_side ^ 1] = false;
        return;
    }
    if (hears) {
        take_marks(i);
        const Topology &t = all[i]->topology;
        for (std::int32_t g = 0; g < t.ghosts; g++)
            if (plan.incoming[g] & CUT)
                mark_side_of(i, t.boundary[g] / 3, t.boundary[g] % 3);
        hand_on(i);
    }
    publish_cuts(i);
    plan.settled = !plan.news[mark_side ^ 1];
}

template <class Real> void Grid<Real>::close_refinement()
{
    auto count = static_cast<int>(all.size());
    auto swap = [&] {
        marks.swap();
        mark_side ^= 1;
        return any(std::any_of(plans.begin(), plans.end(),
                               [&](const Plan &p) { return p.news[mark_side]; }));
    };
    schedule.each(count, [&](int i) { wish_and_close(i); });
    for (sweeps = 0; swap(); sweeps++) {
        if (sweeps > DEPTHS)
            throw std::logic_error("refinement does not end");
        schedule.each(count, [&](int i) { sweep(i); });
    }
}

// --- coarsening

template <class Real> static Values<Real> values_of(const Cluster<Real> &c, std::int32_t cell)
{
    Values<Real> v;
    for (int f = 0; f < c.fields; f++)
        v.field[f] = c.field(f)[cell];
    return v;
}

// Are cell and the next one siblings that want to be, and can be, one?
template <class Real> bool Grid<Real>::may_merge(int i, std::int32_t cell) const
{
    const Cluster<Real> &c = *all[i];
    const Plan &plan = plans[i];
    if (cell + 1 >= c.cells() || plan.wish[cell] >= 0 || plan.wish[cell + 1] >= 0 ||
        c.depth[cell] != c.depth[cell + 1] || c.depth[cell] <= set.config.grid.min_depth ||
        (c.path[cell] & 1) || c.path[cell + 1] != c.path[cell] + 1 || plan.split[cell] ||
        plan.split[cell + 1])
        return false;
    Values<Real> v[2] = {values_of(c, cell), values_of(c, cell + 1)};
    return scheme.may_merge(v);
}

template <class Real> void Grid<Real>::propose_merges(int i)
{
    Plan &plan = plans[i];
    plan.merge.assign(all[i]->cells(), 0);
    plan.merges = false;
    for (std::int32_t cell = 0; cell < all[i]->cells(); cell++)
        if (plan.wish[cell] < 0 && may_merge(i, cell))
            plan.merge[cell] = plan.merges = true;
    publish_marks(i, [&](std::int32_t s) {
        return would_merge(i, s) ? MERGE : cuts(i, s) ? CUT : 0; // other sides are cut than merged
    });
}

template <class Real> void Grid<Real>::agree_merges(int i)
{
    const Cluster<Real> &c = *all[i];
    Plan &plan = plans[i];
    if (!plan.merges)
        return;
    take_marks(i);
    std::vector<std::uint8_t> &incoming = plan.incoming;
    plan.agreed.assign(c.cells(), 0);
    for (const Run &run : c.runs)
        if (run.kind == Run::BORDER)
            std::fill_n(incoming.begin() + run.first, run.count, MERGE);
    auto agrees = [&](std::int32_t mate) {
        return mate < 0 ? incoming[~mate] == MERGE : would_merge(i, mate);
    };
    const auto &mate = c.topology.mate;
    plan.merges = false;
    for (std::int32_t cell = 0; cell < c.cells(); cell++)
        if (plan.merge[cell] && agrees(mate[SIDES * cell + ENTRY_LEG]) &&
            agrees(mate[SIDES * (cell + 1) + EXIT_LEG]))
            plan.agreed[cell] = plan.merges = true;
    plan.merge.swap(plan.agreed);
}

// --- the new cells

// Cells that are written one after the other into room for all of them.
template <class Real> class Writer {
public:
    Writer(Cells<Real> &cells, std::int32_t count, int fields) : to(cells)
    {
        to.depth.resize(count);
        to.path.resize(count);
        to.values.resize(fields);
        for (auto &field : to.values)
            field.resize(count);
    }
    void add(const Site &site, const Values<Real> &v)
    {
        to.depth[at] = static_cast<std::uint8_t>(site.depth);
        to.path[at] = site.node.path;
        for (std::size_t f = 0; f < to.values.size(); f++)
            to.values[f][at] = v.field[f];
        at++;
    }
    void add(const Cluster<Real> &from, std::int32_t first, std::int32_t last)
    {
        std::copy(from.depth.begin() + first, from.depth.begin() + last, to.depth.begin() + at);
        std::copy(from.path.begin() + first, from.path.begin() + last, to.path.begin() + at);
        for (int f = 0; f < from.fields; f++)
            std::copy(from.field(f) + first, from.field(f) + last, to.values[f].begin() + at);
        at += last - first;
    }

private:
    Cells<Real> &to;
    std::int32_t at = 0;
};

template <class Real> void Grid<Real>::add_split(Writer<Real> &to, const Site &site,
                                                 const Values<Real> &v, unsigned bits) const
{
    if (!bits) {
        to.add(site, v);
        return;
    }
    Values<Real> children[2];
    scheme.split(site, v, children);
    Site first{site.node.child(0), site.where.first(), site.depth + 1};
    Site second{site.node.child(1), site.where.second(), site.depth + 1};
    add_split(to, first, children[0], bits & bit_of(ENTRY_LEG) ? bit_of(HYPOTENUSE) : 0);
    add_split(to, second, children[1], bits & bit_of(EXIT_LEG) ? bit_of(HYPOTENUSE) : 0);
}

// Every side that is bisected makes one more of its cell, and every merge one of two.
static std::int32_t count_changed(std::int32_t cells, const Plan &plan)
{
    constexpr std::int32_t ones[] = {0, 1, 1, 2, 1, 2, 2, 3};
    std::int32_t count = cells;
    for (std::int32_t cell = 0; cell < cells; cell++)
        count += ones[plan.split[cell]] - plan.merge[cell];
    return count;
}

template <class Real> Cells<Real> Grid<Real>::changed_cells(int i) const
{
    const Cluster<Real> &c = *all[i];
    const Plan &plan = plans[i];
    Cells<Real> cells;
    cells.node = c.node;
    Writer<Real> to(cells, count_changed(c.cells(), plan), c.fields);
    for (std::int32_t cell = 0; cell < c.cells(); cell++) {
        std::int32_t first = cell;
        while (cell < c.cells() && !plan.merge[cell] && !plan.split[cell])
            cell++;
        if (first < cell)
            to.add(c, first, cell);
        if (cell == c.cells())
            break;
        if (plan.merge[cell]) {
            Site where = site_in(c, site(c, cell).node.parent());
            Values<Real> pair[2] = {values_of(c, cell), values_of(c, cell + 1)};
            to.add(where, scheme.merge(where, pair));
            cell++;
        } else {
            add_split(to, site(c, cell), values_of(c, cell), plan.split[cell]);
        }
    }
    return cells;
}

// --- clusters

namespace {

// A cluster to be: one that stays, or cells.
template <class Real> struct Piece {
    std::unique_ptr<Cluster<Real>> cluster;
    Cells<Real> cells;

    const Node &node() const { return cluster ? cluster->node : cells.node; }
    std::int32_t size() const { return cluster ? cluster->cells() : cells.size(); }
    void open()
    {
        if (cluster)
            cells = cells_of(*cluster);
        cluster.reset();
    }
};

bool are_siblings(const Node &a, const Node &b)
{
    return a.root == b.root && a.levels == b.levels && a.levels > 0 && !(a.path & 1) &&
           b.path == a.path + 1;
}

// Pieces are put on a stack, whose top two are joined as long as they are small siblings.  Two
// cells always are: apart they could not become one, and the grid would depend on the clusters.
template <class Real> std::vector<Piece<Real>> joined(std::vector<Piece<Real>> &&from, int most)
{
    std::vector<Piece<Real>> to;
    for (auto &piece : from) {
        to.push_back(std::move(piece));
        while (to.size() >= 2) {
            Piece<Real> &a = to[to.size() - 2], &b = to.back();
            if (!are_siblings(a.node(), b.node()) || a.size() + b.size() > std::max(most, 2))
                break;
            a.open();
            b.open();
            append_stretch(a.cells, b.cells, 0, b.cells.size());
            a.cells.node = a.cells.node.parent();
            to.pop_back();
        }
    }
    return to;
}

// A cluster to be: these cells of a piece, and the subtree of which they are.
struct Part {
    std::size_t piece;
    Node node;
    std::int32_t first, last;
};

template <class Real>
void split_into(std::vector<Part> &to, Piece<Real> &piece, const Part &part, int most,
                int root_depth)
{
    if (part.last - part.first <= most) {
        to.push_back(part);
        return;
    }
    piece.open();
    std::int32_t middle = second_half(piece.cells, part.node, root_depth, part.first, part.last);
    split_into(to, piece, {part.piece, part.node.child(0), part.first, middle}, most, root_depth);
    split_into(to, piece, {part.piece, part.node.child(1), middle, part.last}, most, root_depth);
}

// Moved out of the piece if it is all of it.
template <class Real> Cells<Real> cells_of(Piece<Real> &piece, const Part &part)
{
    if (part.node == piece.cells.node)
        return std::move(piece.cells);
    Cells<Real> cells;
    cells.node = part.node;
    cells.values.resize(piece.cells.values.size());
    append_stretch(cells, piece.cells, part.first, part.last);
    return cells;
}

} // namespace

// fresh[i] stands for cluster i, or, if it has no cells, cluster i stays as it is.
template <class Real> void Grid<Real>::replace(std::vector<Cells<Real>> &fresh)
{
    std::vector<Piece<Real>> pieces(fresh.size());
    for (std::size_t i = 0; i < fresh.size(); i++) {
        if (fresh[i].size())
            pieces[i].cells = std::move(fresh[i]);
        else
            pieces[i].cluster = std::move(all[i]);
    }
    pieces = joined(std::move(pieces), set.config.grid.join);
    int root_depth = set.forest.root_depth();
    std::vector<Part> parts;
    for (std::size_t i = 0; i < pieces.size(); i++)
        split_into(parts, pieces[i], {i, pieces[i].node(), 0, pieces[i].size()},
                   set.config.grid.split, root_depth);
    std::vector<std::int64_t> work;
    for (const Part &part : parts)
        work.push_back(pieces[part.piece].cluster ? 0 : part.last - part.first);
    auto former = std::move(all); // what is left of them goes where others are made
    all.clear();
    all.resize(parts.size());
    schedule.weigh(work);
    schedule.each(static_cast<int>(parts.size()), [&](int i) {
        Piece<Real> &piece = pieces[parts[i].piece];
        if (static_cast<std::size_t>(i) < former.size())
            former[i].reset();
        bool changed = !piece.cluster;
        all[i] = changed ? make(cells_of(piece, parts[i])) : std::move(piece.cluster);
        all[i]->has_changed = changed;
    });
    plans.resize(all.size()); // their memory is used again
    connect();
}

template <class Real> std::unique_ptr<Cluster<Real>> Grid<Real>::make(Cells<Real> &&cells) const
{
    auto c = std::make_unique<Cluster<Real>>();
    Node node = cells.node;
    make_cluster(*c, std::move(cells), set.forest.root_depth(),
                 set.forest.triangle(node.root, node.path, node.levels),
                 set.config.solver.local_steps);
    scheme.attach(*c);
    c->stable_step = scheme.stable_step(*c);
    return c;
}

// What stands for the clusters after all ranks have agreed; returns whether any rank has something.
template <class Real> bool Grid<Real>::agree_in_sweeps(std::vector<Cells<Real>> &fresh)
{
    auto count = static_cast<int>(all.size());
    close_refinement();
    schedule.each(count, [&](int i) { propose_merges(i); });
    marks.swap();
    mark_side ^= 1;
    schedule.each(count, [&](int i) {
        agree_merges(i);
        if (plans[i].changes())
            fresh[i] = changed_cells(i);
    });
    return any(
        std::any_of(plans.begin(), plans.end(), [](const Plan &p) { return p.changes(); }));
}

template <class Real> bool Grid<Real>::adapt(long step_)
{
    step = step_;
    values.finish();
    std::vector<Cells<Real>> fresh(all.size());
    bool changes = has_enclaves() ? agree_at_once(fresh) : agree_in_sweeps(fresh);
    if (!changes)
        return false;
    replace(fresh);
    publish_all();
    return true;
}

template class Grid<float>;
template class Grid<double>;

} // namespace swe
