// SPDX-License-Identifier: GPL-3.0-or-later
// synthetic_grid.h - a fixed grid over one square, for tests and measurements of the kernels alone.
//
// The four quarters of a square are bisected where a function says so, and where the grid would not
// be conforming; the leaves, in the curve's order, are cut into clusters that are subtrees.  Edges
// are matched by their middle points.  Walls stand around the square.
#ifndef SWE_SOLVER_SYNTHETIC_GRID_H
#define SWE_SOLVER_SYNTHETIC_GRID_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>
#include "finite_volumes.h"

namespace swe {

struct Leaf {
    Triangle triangle;
    std::uint64_t path; // from the quarter on: one bit a bisection, the highest first
    std::uint8_t quarter, depth;
};

template <class Real> Metric<Real> metric_of_square(double side)
{
    Metric<Real> metric;
    auto length = [&](int size) {
        return std::ldexp(size % 2 ? side * std::sqrt(0.5) : side, -(size / 2));
    };
    for (int size = 0; size <= DEPTHS; size++)
        metric.length[size] = Real(length(size));
    for (int depth = 0; depth < DEPTHS; depth++) {
        double leg = length(depth + 1);
        metric.over_area[depth] = Real(2 / (leg * leg));
        metric.inradius[depth] = Real(leg / (2 + std::sqrt(2.0)));
    }
    return metric;
}

// Identifies an edge: twice its middle point.
inline std::uint64_t edge_key(const Triangle &t, int side)
{
    Lattice a = side_begin(t, side), b = side_end(t, side);
    return static_cast<std::uint64_t>(a.x + b.x) << 32 | static_cast<std::uint64_t>(a.y + b.y);
}

// True where a cell of a depth and a centre (in sides of the square) is to be bisected.
using Bisect = std::function<bool(int depth, double x, double y)>;

inline void centre(const Triangle &t, double &x, double &y)
{
    double over = 1.0 / (3.0 * static_cast<double>(LATTICE_UNIT));
    x = static_cast<double>(t.entry.x + t.exit.x + t.apex.x) * over;
    y = static_cast<double>(t.entry.y + t.exit.y + t.apex.y) * over;
}

inline void bisect_leaf(const Leaf &leaf, std::vector<Leaf> &into)
{
    auto depth = static_cast<std::uint8_t>(leaf.depth + 1);
    into.push_back({leaf.triangle.first(), leaf.path << 1, leaf.quarter, depth});
    into.push_back({leaf.triangle.second(), leaf.path << 1 | 1, leaf.quarter, depth});
}

// Bisects what the function wants.
inline std::vector<Leaf> bisect_wanted(const Bisect &wanted)
{
    constexpr std::int64_t U = LATTICE_UNIT;
    const Lattice corners[4] = {{0, 0}, {U, 0}, {U, U}, {0, U}};
    std::vector<Leaf> leaves;
    std::function<void(const Leaf &)> descend = [&](const Leaf &leaf) {
        double x, y;
        centre(leaf.triangle, x, y);
        if (!wanted(leaf.depth, x, y)) {
            leaves.push_back(leaf);
            return;
        }
        std::vector<Leaf> children;
        bisect_leaf(leaf, children);
        descend(children[0]);
        descend(children[1]);
    };
    for (int q = 0; q < 4; q++)
        descend({{corners[q], corners[(q + 1) % 4], {U / 2, U / 2}},
                 0,
                 static_cast<std::uint8_t>(q),
                 0});
    return leaves;
}

// Bisects leaves with a corner of another on an edge, until there are none.
inline void make_conforming(std::vector<Leaf> &leaves)
{
    auto key = [](Lattice p) {
        return static_cast<std::uint64_t>(2 * p.x) << 32 | static_cast<std::uint64_t>(2 * p.y);
    };
    for (bool changed = true; changed;) {
        std::unordered_set<std::uint64_t> corners;
        for (const Leaf &leaf : leaves)
            for (Lattice p : {leaf.triangle.entry, leaf.triangle.exit, leaf.triangle.apex})
                corners.insert(key(p));
        std::vector<Leaf> finer;
        for (const Leaf &leaf : leaves) {
            bool hanging = false;
            for (int side = 0; side < SIDES; side++)
                hanging = hanging || corners.count(edge_key(leaf.triangle, side));
            if (hanging)
                bisect_leaf(leaf, finer);
            else
                finer.push_back(leaf);
        }
        changed = finer.size() != leaves.size();
        leaves.swap(finer);
    }
}

template <class Real> struct SyntheticCluster {
    std::int32_t first = 0; // of its cells among all leaves
    AlignedVector<Real> h, hu, hv, bed;
    AlignedVector<std::uint8_t> depth;
    std::vector<std::int32_t> left, right;
    std::vector<EdgeRun> runs;
    std::vector<std::int64_t> beyond; // of a ghost: the leaf that it copies, or -1: a wall
    Patch<Real> patch;
    FvLinks links;
};

template <class Real> class SyntheticGrid {
public:
    std::vector<Leaf> leaves;
    std::vector<SyntheticCluster<Real>> clusters;
    Metric<Real> metric;
    double side;

    SyntheticGrid(double side_of_square, const Bisect &wanted, bool uniform,
                  std::int32_t most_cells)
        : leaves(bisect_wanted(wanted)), metric(metric_of_square<Real>(side_of_square)),
          side(side_of_square)
    {
        if (!uniform)
            make_conforming(leaves);
        std::size_t at = 0;
        for (int q = 0; q < 4; q++) {
            std::size_t end = at;
            while (end < leaves.size() && leaves[end].quarter == q)
                end++;
            cut(at, end, 0, most_cells);
            at = end;
        }
        match_edges();
        for (auto &cluster : clusters)
            finish(cluster);
    }

    // All quarters bisected to one depth.
    static SyntheticGrid uniform(double side_of_square, int depth, std::int32_t most_cells)
    {
        return SyntheticGrid(
            side_of_square, [=](int d, double, double) { return d < depth; }, true, most_cells);
    }

    // Calls set(leaf, x, y, h, hu, hv, bed), with references, for all cells.
    template <class Set> void fill(Set set)
    {
        for (auto &c : clusters)
            for (std::int32_t i = 0; i < c.patch.cells; i++) {
                double x, y;
                centre(leaves[c.first + i].triangle, x, y);
                set(x * side, y * side, c.h[i], c.hu[i], c.hv[i], c.bed[i]);
            }
        exchange(true);
    }

    void exchange(bool with_bed = false)
    {
        for (auto &c : clusters)
            for (std::int32_t g = 0; g < c.patch.ghosts; g++)
                update_ghost(c, g, with_bed);
    }

    double area(std::int64_t leaf) const
    {
        return side * side / 4 / std::ldexp(1, leaves[leaf].depth);
    }

private:
    struct Half {
        std::uint64_t key;
        std::uint32_t leaf;
        std::uint32_t side;
    };
    std::vector<std::int64_t> neighbours; // [leaves * SIDES]
    std::vector<std::int32_t> cluster_of; // [leaves]

    void cut(std::size_t begin, std::size_t end, int level, std::int32_t most_cells)
    {
        if (end - begin <= static_cast<std::size_t>(most_cells)) {
            clusters.emplace_back();
            clusters.back().first = static_cast<std::int32_t>(begin);
            clusters.back().patch.cells = static_cast<std::int32_t>(end - begin);
            return;
        }
        auto in_first = [&](const Leaf &leaf) {
            return !(leaf.path >> (leaf.depth - level - 1) & 1);
        };
        auto middle_leaf =
            std::partition_point(leaves.begin() + static_cast<std::ptrdiff_t>(begin),
                                 leaves.begin() + static_cast<std::ptrdiff_t>(end), in_first);
        auto at = static_cast<std::size_t>(middle_leaf - leaves.begin());
        cut(begin, at, level + 1, most_cells);
        cut(at, end, level + 1, most_cells);
    }

    void match_edges()
    {
        std::vector<Half> halves;
        halves.reserve(leaves.size() * SIDES);
        for (std::uint32_t leaf = 0; leaf < leaves.size(); leaf++)
            for (std::uint32_t k = 0; k < SIDES; k++)
                halves.push_back({edge_key(leaves[leaf].triangle, static_cast<int>(k)), leaf, k});
        std::sort(halves.begin(), halves.end(),
                  [](const Half &a, const Half &b) { return a.key < b.key; });
        neighbours.assign(leaves.size() * SIDES, -1);
        for (std::size_t i = 0; i + 1 < halves.size(); i++)
            if (halves[i].key == halves[i + 1].key) {
                neighbours[halves[i].leaf * SIDES + halves[i].side] = halves[i + 1].leaf;
                neighbours[halves[i + 1].leaf * SIDES + halves[i + 1].side] = halves[i].leaf;
            }
        cluster_of.resize(leaves.size());
        for (std::size_t k = 0; k < clusters.size(); k++)
            for (std::int32_t i = 0; i < clusters[k].patch.cells; i++)
                cluster_of[clusters[k].first + i] = static_cast<std::int32_t>(k);
    }

    struct SortedEdge {
        std::uint8_t direction, size;
        std::int32_t left, right;
    };

    // The edges of a cluster in runs; its arrays and links.
    void finish(SyntheticCluster<Real> &c)
    {
        std::vector<SortedEdge> edges;
        std::int32_t cells = c.patch.cells;
        for (std::int32_t i = 0; i < cells; i++) {
            const Leaf &leaf = leaves[c.first + i];
            for (int k = 0; k < SIDES; k++) {
                std::int64_t other = neighbours[static_cast<std::size_t>(c.first + i) * SIDES + k];
                bool inside = other >= c.first && other < c.first + cells;
                if (inside && other < c.first + i)
                    continue; // the other cell had it
                std::int32_t o = static_cast<std::int32_t>(other - c.first);
                if (!inside) {
                    o = cells + static_cast<std::int32_t>(c.beyond.size());
                    c.beyond.push_back(other);
                }
                Lattice a = side_begin(leaf.triangle, k), b = side_end(leaf.triangle, k);
                bool left = is_left(a, b, opposite(leaf.triangle, k));
                edges.push_back({static_cast<std::uint8_t>(direction(a, b)),
                                 static_cast<std::uint8_t>(leaf.depth + (k != HYPOTENUSE)),
                                 left ? i : o, left ? o : i});
            }
            c.depth.push_back(leaf.depth);
        }
        std::stable_sort(edges.begin(), edges.end(), [](const SortedEdge &a, const SortedEdge &b) {
            return a.direction != b.direction ? a.direction < b.direction : a.size < b.size;
        });
        for (const SortedEdge &e : edges) {
            auto at = static_cast<std::int32_t>(c.left.size());
            if (c.runs.empty() || c.runs.back().direction != e.direction ||
                c.runs.back().size != e.size)
                c.runs.push_back({at, at, e.direction, e.size});
            c.runs.back().last++;
            c.left.push_back(e.left);
            c.right.push_back(e.right);
        }
        point(c);
        fv_link(c.patch, c.links);
    }

    void point(SyntheticCluster<Real> &c)
    {
        Patch<Real> &p = c.patch;
        p.ghosts = static_cast<std::int32_t>(c.beyond.size());
        for (auto *array : {&c.h, &c.hu, &c.hv, &c.bed})
            array->assign(static_cast<std::size_t>(p.cells + p.ghosts), Real(0));
        p.h = c.h.data();
        p.hu = c.hu.data();
        p.hv = c.hv.data();
        p.bed = c.bed.data();
        p.depth = c.depth.data();
        p.edges = static_cast<std::int32_t>(c.left.size());
        p.left = c.left.data();
        p.right = c.right.data();
        p.runs = c.runs.data();
        p.run_count = static_cast<std::int32_t>(c.runs.size());
    }

    void update_ghost(SyntheticCluster<Real> &c, std::int32_t g, bool with_bed)
    {
        std::int32_t to = c.patch.cells + g;
        const SyntheticCluster<Real> *from = &c;
        std::int32_t i = c.links.ghost_cell[g];
        bool wall = c.beyond[g] < 0;
        if (!wall) {
            from = &clusters[cluster_of[c.beyond[g]]];
            i = static_cast<std::int32_t>(c.beyond[g] - from->first);
        }
        bool upright = c.links.ghost_way[g] % DIRECTIONS == 0; // walls are parallel to an axis
        c.h[to] = from->h[i];
        c.hu[to] = wall && upright ? -from->hu[i] : from->hu[i];
        c.hv[to] = wall && !upright ? -from->hv[i] : from->hv[i];
        if (with_bed)
            c.bed[to] = from->bed[i];
    }
};

} // namespace swe
#endif
