// SPDX-License-Identifier: GPL-3.0-or-later
// grid.cc - is the grid what it is said to be?  Everything that grid/ finds by walking along trees
// is found again by comparing the corners of all triangles with each other: random conforming
// trees, random partitions of them into clusters and ranks, and grids that adapt to random marks.
//
// The last kind needs ranks: it works with any number of them, started by mpiexec.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mpi.h>
#include <omp.h>
#include <random>
#include <set>
#include <thread>
#include "../grid/grid.h"
#include "../grid/orientation.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

using Edge = std::pair<Lattice, Lattice>;
using Random = std::mt19937;

Edge edge_of(const Triangle &t, int side)
{
    return std::minmax({side_begin(t, side), side_end(t, side)});
}

Config config_of(int nx, int ny, int cut, const std::vector<std::string> &more = {})
{
    std::vector<std::string> words = {"domain.nx=" + std::to_string(nx),
                                      "domain.ny=" + std::to_string(ny),
                                      "run.cut=" + std::to_string(cut)};
    words.insert(words.end(), more.begin(), more.end());
    return parse_config("name = \"lake\"\n", "grid", words);
}

// --- a forest that is refined triangle by triangle, by the definition of newest-vertex bisection

struct Leaf {
    Node node;
    Triangle where;
    friend bool operator<(const Leaf &a, const Leaf &b)
    {
        int deep = std::max(a.node.levels, b.node.levels);
        auto key = [deep](const Node &n) { return n.path << (deep - n.levels); };
        return std::pair(a.node.root, key(a.node)) < std::pair(b.node.root, key(b.node));
    }
};

class Bisected {
public:
    explicit Bisected(const Forest &forest)
    {
        for (int r = 0; r < static_cast<int>(forest.roots().size()); r++)
            add({{r, 0, 0}, forest.roots()[r].where});
    }

    // The cell across the hypotenuse goes first, until that is its hypotenuse, too.
    void bisect(Leaf leaf)
    {
        Edge cut = edge_of(leaf.where, HYPOTENUSE);
        while (const Leaf *other = across(leaf, cut)) {
            if (edge_of(other->where, HYPOTENUSE) == cut) {
                halve(Leaf(*other));
                break;
            }
            bisect(Leaf(*other));
        }
        halve(leaf);
    }

    void refine_randomly(Random &random, int times)
    {
        for (int i = 0; i < times; i++) {
            auto at = cells.begin();
            std::advance(at, random() % cells.size());
            bisect(Leaf(*at));
        }
    }

    std::vector<Leaf> of_root(int root) const
    {
        std::vector<Leaf> found;
        for (const Leaf &leaf : cells)
            if (leaf.node.root == root)
                found.push_back(leaf);
        return found;
    }

private:
    std::set<Leaf> cells;
    std::map<Edge, std::vector<Leaf>> at_edge;

    void add(const Leaf &leaf)
    {
        cells.insert(leaf);
        for (int side = 0; side < SIDES; side++)
            at_edge[edge_of(leaf.where, side)].push_back(leaf);
    }
    void remove(const Leaf &leaf)
    {
        cells.erase(leaf);
        for (int side = 0; side < SIDES; side++) {
            auto &of = at_edge[edge_of(leaf.where, side)];
            of.erase(std::find_if(of.begin(), of.end(),
                                  [&](const Leaf &l) { return l.node == leaf.node; }));
        }
    }
    void halve(const Leaf &leaf)
    {
        remove(leaf);
        add({leaf.node.child(0), leaf.where.first()});
        add({leaf.node.child(1), leaf.where.second()});
    }
    const Leaf *across(const Leaf &leaf, const Edge &edge) const
    {
        for (const Leaf &other : at_edge.at(edge))
            if (!(other.node == leaf.node))
                return &other;
        return nullptr;
    }
};

// --- topology of a cluster

// Cell sides of a cluster by their edges.
std::map<Edge, std::vector<std::int32_t>> sides_by_edge(const std::vector<Leaf> &leaves)
{
    std::map<Edge, std::vector<std::int32_t>> found;
    for (std::size_t i = 0; i < leaves.size(); i++)
        for (int side = 0; side < SIDES; side++)
            found[edge_of(leaves[i].where, side)].push_back(
                static_cast<std::int32_t>(3 * i + side));
    return found;
}

std::vector<std::uint8_t> depths_of(const std::vector<Leaf> &leaves, int root_depth)
{
    std::vector<std::uint8_t> depth;
    for (const Leaf &leaf : leaves)
        depth.push_back(static_cast<std::uint8_t>(root_depth + leaf.node.levels));
    return depth;
}

void check_mates(Check &check, const Topology &t, const std::vector<Leaf> &leaves)
{
    std::int32_t alone = 0;
    for (const auto &[edge, sides] : sides_by_edge(leaves)) {
        if (sides.size() == 2) {
            check.that(t.mate[sides[0]] == sides[1] && t.mate[sides[1]] == sides[0], "mates");
            continue;
        }
        alone++;
        std::int32_t ghost = ~t.mate[sides[0]];
        check.that(ghost >= 0 && ghost < t.ghosts && t.boundary[ghost] == sides[0], "ghost");
    }
    check.that(alone == t.ghosts, "number of ghosts");
}

// Edges have the cells on their sides that the corners say, and runs what the kernels rely on.
void check_edges(Check &check, const Topology &t, const std::vector<Leaf> &leaves)
{
    std::int32_t at = 0;
    std::map<std::pair<std::int32_t, std::int32_t>, int> seen;
    for (const EdgeRun &run : t.runs) {
        std::set<std::int32_t> cells;
        check.that(run.first == at, "runs follow each other");
        for (at = run.first; at < run.last; at++)
            for (bool is_left : {true, false}) {
                std::int32_t cell = is_left ? t.left[at] : t.right[at];
                check.that(cells.insert(cell).second, "a cell occurs twice in a run");
                seen[{t.left[at], t.right[at]}]++;
                if (cell >= t.cells)
                    continue;
                const Triangle &where = leaves[cell].where;
                int side = 0;
                while (side < SIDES &&
                       direction(side_begin(where, side), side_end(where, side)) != run.direction)
                    side++;
                check.that(side < SIDES, "direction of the run");
                check.that(swe::is_left(side_begin(where, side), side_end(where, side),
                                        opposite(where, side)) == is_left,
                           "side of the edge");
            }
    }
    check.that(at == static_cast<std::int32_t>(t.left.size()), "runs have all edges");
    check.that(seen.size() == t.left.size(), "each edge once");
    check.that(3 * t.cells + t.ghosts == 2 * at, "number of edges");
}

void topology_is_that_of_the_corners(Check &check)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        Random random(seed);
        Forest forest(config_of(1 + seed % 2, 1 + seed % 3, seed % 4), 1);
        Bisected grid(forest);
        grid.refine_randomly(random, 60 + static_cast<int>(random() % 100));
        for (int r = 0; r < static_cast<int>(forest.roots().size()); r++) {
            auto leaves = grid.of_root(r);
            Topology t = make_topology(forest.root_depth(), orientation(forest.roots()[r].where),
                                       depths_of(leaves, forest.root_depth()));
            for (std::size_t i = 0; i < leaves.size(); i++)
                check.that(t.orientation[i] == orientation(leaves[i].where), "orientation");
            check_mates(check, t, leaves);
            check_edges(check, t, leaves);
        }
    }
}

void what_is_no_conforming_tree_is_refused(Check &check)
{
    for (const std::vector<std::uint8_t> &depth :
         {std::vector<std::uint8_t>{1}, {1, 1, 1}, {1, 2}, {2, 1, 2}, {}, {2, 3, 3, 1}}) {
        bool refused = false;
        try {
            make_topology(0, 0, depth);
        } catch (const std::logic_error &) {
            refused = true;
        }
        check.that(refused, "a tree of " + std::to_string(depth.size()) + " leaves");
    }
}

// --- interfaces

struct Part {
    Node node;
    std::vector<Leaf> leaves;
    Topology topology;
};

// A root's leaves, cut into subtrees at random.
void cut_up(std::vector<Part> &parts, Random &random, const Node &node, std::vector<Leaf> leaves)
{
    if (leaves.size() == 1 || random() % 3 == 0) {
        parts.push_back({node, std::move(leaves), {}});
        return;
    }
    std::vector<Leaf> half[2];
    for (Leaf &leaf : leaves)
        half[leaf.node.path >> (leaf.node.levels - node.levels - 1) & 1].push_back(leaf);
    for (int k = 0; k < 2; k++)
        cut_up(parts, random, node.child(k), std::move(half[k]));
}

Edge ghost_edge(const Part &part, std::int32_t ghost)
{
    std::int32_t side = part.topology.boundary[ghost];
    return edge_of(part.leaves[side / 3].where, side % 3);
}

// A rank's clusters, their interfaces, and the edges in the order of the messages.
struct Share {
    std::vector<Part> parts;
    Interfaces of;
    std::map<int, std::vector<Edge>> message; // by the rank it goes to and comes from
};

Share make_share(const Forest &forest, const Bisected &grid, int rank, Random &random)
{
    Share share;
    for (int r = 0; r < static_cast<int>(forest.roots().size()); r++)
        if (forest.roots()[r].rank == rank)
            cut_up(share.parts, random, {r, 0, 0}, grid.of_root(r));
    std::vector<Outline> outlines;
    for (Part &part : share.parts) {
        Triangle t = forest.triangle(part.node.root, part.node.path, part.node.levels);
        part.topology = make_topology(forest.root_depth() + part.node.levels, orientation(t),
                                      depths_of(part.leaves, forest.root_depth()));
        Outline outline{part.node, {}, {}};
        for (int s = 0; s < SIDES; s++) {
            outline.side_first[s] = part.topology.side_first(s);
            outline.side_edges[s] = part.topology.side_edges[s];
        }
        outlines.push_back(outline);
    }
    share.of = make_interfaces(forest, rank, outlines);
    for (std::size_t n = 0; n < share.of.neighbours.size(); n++)
        share.message[share.of.neighbours[n]].resize(share.of.shared_edges[n]);
    return share;
}

bool is_at_border(const Edge &e, int border, const Config &config)
{
    std::int64_t east = config.domain.nx * LATTICE_UNIT, north = config.domain.ny * LATTICE_UNIT;
    switch (border) {
    case WEST:
        return e.first.x == 0 && e.second.x == 0;
    case EAST:
        return e.first.x == east && e.second.x == east;
    case SOUTH:
        return e.first.y == 0 && e.second.y == 0;
    default:
        return e.first.y == north && e.second.y == north;
    }
}

void check_share(Check &check, Share &share, const Config &config)
{
    for (std::size_t p = 0; p < share.parts.size(); p++) {
        const Part &part = share.parts[p];
        std::int32_t ghost = 0;
        for (const Run &run : share.of.runs[p])
            for (std::int32_t i = 0; i < run.count; i++, ghost++) {
                check.that(ghost == run.first + i, "runs have all ghosts, in order");
                Edge edge = ghost_edge(part, ghost);
                if (run.kind == Run::CLUSTER)
                    check.that(ghost_edge(share.parts[run.partner], run.partner_of(i)) == edge,
                               "partner's edge");
                else if (run.kind == Run::RANK)
                    share.message[share.of.neighbours[run.partner]].at(run.partner_of(i)) = edge;
                else
                    check.that(is_at_border(edge, run.partner, config), "border");
            }
        check.that(ghost == part.topology.ghosts, "runs have all ghosts");
    }
}

void interfaces_are_those_of_the_corners(Check &check)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        Random random(seed);
        Config config = config_of(1 + seed % 3, 1 + seed % 2, seed % 4);
        int ranks = 1 + static_cast<int>(random() % 4);
        Forest forest(config, ranks);
        Bisected grid(forest);
        grid.refine_randomly(random, 40 + static_cast<int>(random() % 160));
        std::vector<Share> shares;
        for (int rank = 0; rank < ranks; rank++) {
            shares.push_back(make_share(forest, grid, rank, random));
            check_share(check, shares.back(), config);
        }
        for (int a = 0; a < ranks; a++)
            for (const auto &[b, edges] : shares[a].message) {
                const auto &back = shares[b].message;
                check.that(back.count(a) && back.at(a) == edges, "both ranks have one order");
                std::set<Edge> different(edges.begin(), edges.end());
                check.that(different.size() == edges.size(), "each shared edge once");
            }
    }
}

// --- adaptivity

// Nothing but a field: what is in it must be conserved.  Marks are a function of the cell.
class Marked final : public Scheme<double> {
public:
    std::function<int(const Site &)> wish = [](const Site &) { return 0; };
    Grid<double> *grid = nullptr;

    int fields() const override { return 4; }
    std::array<int, 4> means() const override { return {0, 1, 2, 3}; }
    int stages() const override { return 1; }
    bool later_stages_are_safe() const override { return true; }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Scratch>(); }
    void attach(Cluster<double> &) const override {}
    Values<double> initial(const Site &site, double) const override
    {
        return {{static_cast<double>(site.node.path % 7), 0, 0, 0}};
    }
    void fill_bed(const Site &, Values<double> &) const override {}
    void advance(Cluster<double> &, double, int, Scratch &) const override {}
    double stable_step(Cluster<double> &) const override { return 1; }
    double stable_step(Cluster<double> &, std::int32_t) const override { return 1; }
    void flow(const Cluster<double> &, std::int32_t, double *, double *) const override {}
    void spare(const Cluster<double> &, std::int32_t, double, double *, double *) const override {}
    void advance_with(Cluster<double> &, double, const double *, Scratch &) const override {}
    void publish(const Cluster<double> &c, double *interface) const override
    {
        for (int f = 0; f < 4; f++)
            for (std::int32_t g = 0; g < c.ghosts(); g++)
                *interface++ = c.field(f)[c.topology.boundary[g] / 3];
    }
    void fill_border(Cluster<double> &, std::int32_t, std::int32_t, Side4) const override {}
    void mark(const Cluster<double> &c, std::int8_t *marks) const override
    {
        for (std::int32_t i = 0; i < c.cells(); i++)
            marks[i] = grid ? static_cast<std::int8_t>(wish(grid->site(c, i))) : std::int8_t{0};
    }
    void split(const Site &, const Values<double> &of, Values<double> children[2]) const override
    {
        children[0] = children[1] = of;
        children[0].field[0] += 1;
        children[1].field[0] -= 1;
    }
    bool may_merge(const Values<double>[2]) const override { return true; }
    Values<double> merge(const Site &, const Values<double> v[2]) const override
    {
        return {{(v[0].field[0] + v[1].field[0]) / 2, 0, 0, 0}};
    }
};

class NoBed final : public Bed {
public:
    double mean(const Node &) const override { return 0; }
    bool crosses(const Node &, double) const override { return false; }
    double sample(double, double) const override { return 0; }
};

// A grid of all ranks.
struct Playground {
    Config config;
    Forest forest;
    std::unique_ptr<Scenario> scenario;
    NoBed bed;
    Marked scheme;
    Schedule schedule{Parallel::TASKS};
    Grid<double> grid;

    static int ranks()
    {
        int n;
        MPI_Comm_size(MPI_COMM_WORLD, &n);
        return n;
    }
    explicit Playground(const Config &c)
        : config(c), forest(config, ranks()), scenario(make_scenario(config)),
          grid(Setting{config, forest, *scenario, bed}, scheme, schedule, MPI_COMM_WORLD)
    {
        scheme.grid = &grid;
    }

    // Root, path and depth of the cells of all ranks, in order of the curve.
    std::vector<std::array<std::int64_t, 3>> cells() const
    {
        std::vector<std::int64_t> mine;
        for (const auto &c : grid.clusters())
            for (std::int32_t i = 0; i < c->cells(); i++) {
                mine.push_back(c->node.root);
                mine.push_back(static_cast<std::int64_t>(c->path[i]));
                mine.push_back(c->depth[i]);
            }
        int n = static_cast<int>(mine.size());
        std::vector<int> counts(ranks()), begins(ranks());
        MPI_Allgather(&n, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 1; r < ranks(); r++)
            begins[r] = begins[r - 1] + counts[r - 1];
        std::vector<std::array<std::int64_t, 3>> all((begins.back() + counts.back()) / 3);
        MPI_Allgatherv(mine.data(), n, MPI_INT64_T, all.data(), counts.data(), begins.data(),
                       MPI_INT64_T, MPI_COMM_WORLD);
        return all;
    }
    Triangle where(const std::array<std::int64_t, 3> &cell) const
    {
        return forest.triangle(static_cast<int>(cell[0]), static_cast<std::uint64_t>(cell[1]),
                               static_cast<int>(cell[2]) - forest.root_depth());
    }
    double content() const
    {
        double mine = 0, all;
        for (const auto &c : grid.clusters())
            for (std::int32_t i = 0; i < c->cells(); i++)
                mine += c->field(0)[i] * forest.area(c->depth[i]);
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }
};

// A number that depends on the cell's place, its depth and the round alone.
unsigned dice(const Site &site, unsigned round)
{
    std::uint64_t h = static_cast<std::uint64_t>(site.where.apex.x * 31 + site.where.apex.y) * 977 +
                      static_cast<unsigned>(site.depth) * 131 + round;
    h = (h ^ h >> 31) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return static_cast<unsigned>(h >> 40);
}

int random_wish(const Site &site, unsigned round)
{
    unsigned d = dice(site, round) % 100;
    return d < 6 ? 1 : d < 70 ? -1 : 0;
}

// Each edge has two cells or is at the border: no cell's corner lies on another one's side.
void check_conforming(Check &check, const Playground &p)
{
    std::map<Edge, std::vector<std::int64_t>> depths;
    double area = 0;
    for (const auto &cell : p.cells()) {
        Triangle t = p.where(cell);
        for (int side = 0; side < SIDES; side++)
            depths[edge_of(t, side)].push_back(cell[2]);
        area += p.forest.area(static_cast<int>(cell[2]));
    }
    check.near(area, p.config.width() * p.config.height(), 1e-6, "area");
    for (const auto &[edge, of] : depths) {
        bool border = false;
        for (int b = 0; b < BORDERS; b++)
            border = border || is_at_border(edge, b, p.config);
        check.that(of.size() == (border ? 1u : 2u),
                   "an edge of " + std::to_string(of.size()) + " cells");
        check.that(of.size() < 2 || std::abs(of[0] - of[1]) <= 1, "depths across an edge");
    }
}

const std::vector<std::string> SMALL = {"grid.min_depth=3", "grid.max_depth=11", "grid.split=40",
                                        "grid.join=15"};

void random_marks_keep_the_grid_conforming(Check &check)
{
    for (int cut : {0, 2}) {
        Playground p(config_of(2, 1, cut, SMALL));
        double before = p.content();
        for (unsigned round = 0; round < 40; round++) {
            p.scheme.wish = [round](const Site &s) { return random_wish(s, round); };
            p.grid.adapt();
            check_conforming(check, p);
            check.that(p.grid.last_sweeps() <= 2 * (11 - 3) + 1,
                       "sweeps: " + std::to_string(p.grid.last_sweeps()));
        }
        check.near(p.content(), before, 1e-9 * before, "content");
    }
}

// Also where chains of cuts go from rank to rank and back.
void ranks_that_agree_at_once_make_the_same_grid(Check &check)
{
    for (int cut : {0, 2}) {
        std::vector<std::string> words = SMALL;
        Playground in_sweeps(config_of(2, 1, cut, words));
        words.push_back("run.enclaves=on");
        Playground at_once(config_of(2, 1, cut, words));
        int rounds = 0, changes = 0;
        for (unsigned round = 0; round < 40; round++) {
            bool changed[2];
            for (Playground *p : {&in_sweeps, &at_once}) {
                p->scheme.grid = &p->grid;
                p->scheme.wish = [round](const Site &s) { return random_wish(s, round); };
                changed[p == &at_once] = p->grid.adapt();
            }
            check.that(changed[0] == changed[1], "both change");
            check.that(in_sweeps.cells() == at_once.cells(), "both have the same cells");
            check.that(at_once.grid.last_rounds() <= 2 + (11 - 3), "rounds");
            rounds += at_once.grid.last_rounds();
            changes++;
        }
        check.that(Playground::ranks() > 1 || rounds == changes, "one rank agrees with itself");
        check.near(at_once.content(), in_sweeps.content(), 0, "content");
    }
}

void marked_cells_are_bisected_and_never_joined(Check &check)
{
    Playground p(config_of(1, 1, 2, SMALL));
    for (unsigned round = 0; round < 15; round++) {
        p.scheme.wish = [round](const Site &s) { return random_wish(s, round); };
        auto before = p.cells();
        p.grid.adapt();
        auto after = p.cells();
        std::set<std::array<std::int64_t, 3>> now(after.begin(), after.end());
        for (const auto &[root, path, depth] : before) {
            Node node{static_cast<int>(root), static_cast<std::uint64_t>(path),
                      static_cast<int>(depth) - 2};
            int wish =
                random_wish({node, p.where({root, path, depth}), static_cast<int>(depth)}, round);
            if (wish > 0 && depth < 11)
                check.that(!now.count({root, path, depth}), "a marked cell is as it was");
            if (wish >= 0)
                check.that(!now.count({root, path / 2, depth - 1}), "a cell was joined unasked");
        }
    }
}

void coarsening_undoes_refinement(Check &check)
{
    Playground p(config_of(
        2, 2, 1, {"grid.min_depth=3", "grid.max_depth=11", "grid.split=12", "grid.join=6"}));
    auto before = p.cells();
    std::size_t clusters = p.grid.clusters().size();
    for (unsigned round = 0; round < 12; round++) {
        p.scheme.wish = [round](const Site &s) { return dice(s, round) % 20 == 0; };
        p.grid.adapt();
    }
    check.that(p.cells().size() > 4 * before.size(), "it was refined");
    check.that(p.grid.clusters().size() > clusters, "clusters were split");
    p.scheme.wish = [](const Site &) { return -1; };
    int rounds = 0;
    while (p.grid.adapt() && rounds < 100)
        rounds++;
    check.that(p.cells() == before, "cells are as they were");
    check.that(rounds <= 2 * (11 - 3), "changes: " + std::to_string(rounds));
    for (const auto &c : p.grid.clusters())
        check.that(c->cells() <= 12, "size of a cluster");
    check.that(p.grid.clusters().size() == clusters,
               "clusters are as few as before: " + std::to_string(p.grid.clusters().size()));
}

void cells_do_not_depend_on_clusters(Check &check)
{
    std::vector<std::vector<std::array<std::int64_t, 3>>> seen;
    for (auto [split, join] : {std::pair(100000, 5000), {40, 15}, {7, 3}, {2, 0}, {9, 0}}) {
        Playground p(config_of(2, 1, 1,
                               {"grid.min_depth=3", "grid.max_depth=10",
                                "grid.split=" + std::to_string(split),
                                "grid.join=" + std::to_string(join)}));
        for (unsigned round = 0; round < 30; round++) {
            p.scheme.wish = [round](const Site &s) { return random_wish(s, round); };
            p.grid.adapt();
        }
        seen.push_back(p.cells());
    }
    for (const auto &of : seen)
        check.that(of == seen[0], "the same cells: " + std::to_string(of.size()));
    check.that(seen[0].size() > 200, "cells: " + std::to_string(seen[0].size()));
}

void ghosts_have_the_value_across(Check &check)
{
    Playground p(config_of(2, 1, 1, SMALL));
    for (unsigned round = 0; round < 20; round++) {
        p.scheme.wish = [round](const Site &s) { return random_wish(s, round); };
        p.grid.adapt();
    }
    for (auto &c : p.grid.clusters()) // where the middle is, in units of a third of a lattice unit
        for (std::int32_t i = 0; i < c->cells(); i++) {
            Triangle t = p.grid.site(*c, i).where;
            c->field(1)[i] = static_cast<double>(t.entry.x + t.exit.x + t.apex.x);
            c->field(2)[i] = static_cast<double>(t.entry.y + t.exit.y + t.apex.y);
        }
    p.grid.publish_all();
    std::map<Edge, std::set<std::pair<double, double>>> middles;
    for (const auto &cell : p.cells())
        for (int side = 0; side < SIDES; side++) {
            Triangle t = p.where(cell);
            middles[edge_of(t, side)].insert(
                {static_cast<double>(t.entry.x + t.exit.x + t.apex.x),
                 static_cast<double>(t.entry.y + t.exit.y + t.apex.y)});
        }
    std::mutex lock;
    p.grid.phase([&](Cluster<double> &c, Scratch &) {
        for (const Run &run : c.runs)
            for (std::int32_t g = run.first; run.kind != Run::BORDER && g < run.first + run.count;
                 g++) {
                std::int32_t cell = c.topology.boundary[g] / 3;
                auto of =
                    middles.at(edge_of(p.grid.site(c, cell).where, c.topology.boundary[g] % 3));
                of.erase({c.field(1)[cell], c.field(2)[cell]});
                std::pair got(c.field(1)[c.cells() + g], c.field(2)[c.cells() + g]);
                std::lock_guard<std::mutex> guard(lock);
                check.that(of.size() == 1 && *of.begin() == got, "the cell across a ghost");
            }
    });
}

void parts_of_ranks_are_those_that_were_asked_for(Check &check)
{
    // In equal numbers, and in those of run.parts; always one after the other along the curve.
    const std::pair<const char *, std::vector<int>> cases[] = {{"run.parts=[]", {2, 3, 3}},
                                                               {"run.parts=[5, 1, 2]", {5, 1, 2}},
                                                               {"run.parts=[1, 1, 6]", {1, 1, 6}}};
    for (const auto &[word, expected] : cases) {
        Forest forest(config_of(1, 1, 1, {word}), 3);
        std::vector<int> ranks, found(3);
        for (const Root &root : forest.roots()) {
            ranks.push_back(root.rank);
            found[static_cast<std::size_t>(root.rank)]++;
        }
        check.that(std::is_sorted(ranks.begin(), ranks.end()), std::string("in order: ") + word);
        check.that(std::is_permutation(found.begin(), found.end(), expected.begin()) &&
                       (word == cases[0].first || found == expected),
                   std::string("as many as asked for: ") + word);
    }
    for (int ranks : {1, 2, 4}) {
        std::string said;
        try {
            Forest(config_of(1, 1, 1, {"run.parts=[5, 1, 2]"}), ranks);
        } catch (const ConfigError &error) {
            said = error.what();
        }
        check.that(said.find("run.parts has 3 numbers for " + std::to_string(ranks)) != said.npos,
                   "other ranks are refused: " + said);
    }
}

void ranks_without_a_part_are_told_the_cuts_that_are_enough(Check &check)
{
    const auto said = [](int ranks, const std::vector<std::string> &more) -> std::string {
        try {
            Forest(config_of(1, 1, 0, more), ranks);
        } catch (const ConfigError &error) {
            return error.what();
        }
        return "";
    };
    check.contains(said(6, {"grid.min_depth=4"}),
                   "run.cut = 0 gives 4 parts for 6 ranks: must be from 1 to grid.min_depth, 4");
    check.contains(said(9, {"grid.min_depth=4"}), "must be from 2 to grid.min_depth, 4");
    check.contains(said(9, {"grid.min_depth=1"}),
                   "run.cut = 0 gives 4 parts for 9 ranks: it must be 2, and grid.min_depth is 1");
    check.that(said(4, {}).empty(), "one each is enough");
}

// One thread, which is the calling one, looks around after each item.
void items_that_others_wait_for_are_begun_before_the_rest(Check &check)
{
    const int threads = omp_get_max_threads();
    const std::vector<int> parts = {Schedule::REST, 1, 0, Schedule::REST, 0, 1};
    for (Parallel kind : {Parallel::LOOP, Parallel::TASKS, Parallel::OWNER}) {
        const std::string name = "way " + std::to_string(static_cast<int>(kind));
        Schedule schedule{kind};
        schedule.weigh({9, 1, 2, 4, 3, 2}, parts);
        omp_set_num_threads(1);
        std::vector<int> taken;
        int looks = 0;
        schedule.in_parts([&](int item) { taken.push_back(item); }, [&] { looks++; });
        std::vector<int> expected = {4, 2, 5, 1, 0, 3};
        if (kind == Parallel::OWNER)
            expected = {2, 4, 1, 5, 0, 3};
        check.that(taken == expected, name + ": part by part");
        check.that(looks >= 6, name + ": looks");
        omp_set_num_threads(4);
        std::atomic<int> done{0}, elsewhere{0};
        const auto caller = std::this_thread::get_id();
        schedule.in_parts([&](int) { done++; },
                          [&] { elsewhere += std::this_thread::get_id() != caller; });
        check.that(done == 6 && elsewhere == 0, name + ": all items, and one thread that looks");
    }
    omp_set_num_threads(threads);
}

// In which order one thread takes the items; and which item next_of() says comes after the first.
void largest_items_are_begun_first(Check &check)
{
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const std::pair<Parallel, std::vector<int>> cases[] = {{Parallel::LOOP, {1, 2, 0, 3}},
                                                           {Parallel::TASKS, {1, 2, 0, 3}},
                                                           {Parallel::OWNER, {0, 1, 2, 3}}};
    for (const auto &[kind, expected] : cases) {
        const std::string name = "way " + std::to_string(static_cast<int>(kind));
        Schedule schedule{kind};
        schedule.weigh({2, 5, 3, 2});
        std::vector<int> taken;
        schedule.each(4, [&](int item) { taken.push_back(item); });
        check.that(taken == expected, name + ": in order of work, or as they come");
        const std::vector<int> next = schedule.next_of(4);
        for (int nth = 0; nth < 4; nth++)
            check.that(next[expected[nth]] == (nth < 3 ? expected[nth + 1] : -1),
                       name + ": item after the " + std::to_string(nth) + "th");
        taken.clear();
        schedule.each(3, [&](int item) { taken.push_back(item); });
        check.that(taken == std::vector<int>{0, 1, 2}, name + ": other items, of unknown work");
    }
    omp_set_num_threads(threads);
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int code = run_promises(
        argc, argv,
        {{"parts_of_ranks_are_those_that_were_asked_for",
          parts_of_ranks_are_those_that_were_asked_for},
         {"ranks_without_a_part_are_told_the_cuts_that_are_enough",
          ranks_without_a_part_are_told_the_cuts_that_are_enough},
         {"largest_items_are_begun_first", largest_items_are_begun_first},
         {"items_that_others_wait_for_are_begun_before_the_rest",
          items_that_others_wait_for_are_begun_before_the_rest},
         {"topology_is_that_of_the_corners", topology_is_that_of_the_corners},
         {"what_is_no_conforming_tree_is_refused", what_is_no_conforming_tree_is_refused},
         {"interfaces_are_those_of_the_corners", interfaces_are_those_of_the_corners},
         {"random_marks_keep_the_grid_conforming", random_marks_keep_the_grid_conforming},
         {"ranks_that_agree_at_once_make_the_same_grid",
          ranks_that_agree_at_once_make_the_same_grid},
         {"marked_cells_are_bisected_and_never_joined", marked_cells_are_bisected_and_never_joined},
         {"coarsening_undoes_refinement", coarsening_undoes_refinement},
         {"cells_do_not_depend_on_clusters", cells_do_not_depend_on_clusters},
         {"ghosts_have_the_value_across", ghosts_have_the_value_across}});
    MPI_Finalize();
    return code;
}
