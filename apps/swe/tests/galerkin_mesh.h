// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin_mesh.h - a small grid for the tests of the discontinuous Galerkin method: the four
// quarters of a square, bisected evenly or around a place, cut into clusters which exchange ghosts.
#ifndef SWE_TESTS_GALERKIN_MESH_H
#define SWE_TESTS_GALERKIN_MESH_H

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>
#include "../scenario/scenario.h"
#include "../solver/galerkin/galerkin.h"

namespace swe {

struct Leaf {
    Triangle triangle;
    int depth;
};

enum class Border { WALL, OPEN, PERIODIC };

inline std::vector<Leaf> quarters()
{
    const std::int64_t u = LATTICE_UNIT;
    const Lattice corner[4] = {{0, 0}, {u, 0}, {u, u}, {0, u}};
    std::vector<Leaf> leaves;
    for (int i = 0; i < 4; i++)
        leaves.push_back({{corner[i], corner[(i + 1) % 4], {u / 2, u / 2}}, 0});
    return leaves;
}

// Bisects, in the order of the curve, all leaves for which the function says so.
inline bool bisect(std::vector<Leaf> &leaves, const std::function<bool(const Leaf &)> &wanted)
{
    std::vector<Leaf> result;
    for (const Leaf &leaf : leaves) {
        if (wanted(leaf)) {
            result.push_back({leaf.triangle.first(), leaf.depth + 1});
            result.push_back({leaf.triangle.second(), leaf.depth + 1});
        } else {
            result.push_back(leaf);
        }
    }
    bool changed = result.size() != leaves.size();
    leaves = result;
    return changed;
}

inline std::vector<Leaf> even_grid(int depth)
{
    std::vector<Leaf> leaves = quarters();
    for (int d = 0; d < depth; d++)
        bisect(leaves, [](const Leaf &) { return true; });
    return leaves;
}

// Finer by `more` bisections around a circle; conforming.
inline std::vector<Leaf> uneven_grid(int depth, int more)
{
    std::vector<Leaf> leaves = even_grid(depth);
    for (int d = depth; d < depth + more; d++) {
        bisect(leaves, [&](const Leaf &leaf) {
            double x = double(leaf.triangle.apex.x) / LATTICE_UNIT - 0.4;
            double y = double(leaf.triangle.apex.y) / LATTICE_UNIT - 0.6;
            return leaf.depth == d && std::fabs(std::sqrt(x * x + y * y) - 0.25) < 0.1;
        });
        std::set<Lattice> points;
        do {
            points.clear();
            for (const Leaf &leaf : leaves)
                points.insert({leaf.triangle.entry, leaf.triangle.exit, leaf.triangle.apex});
        } while (bisect(leaves, [&](const Leaf &leaf) {
            const Triangle &t = leaf.triangle;
            return points.count(middle(t.entry, t.exit)) || points.count(middle(t.entry, t.apex)) ||
                   points.count(middle(t.apex, t.exit));
        }));
    }
    return leaves;
}

template <class Real> class Mesh {
public:
    struct Ghost {
        int cluster, cell, side; // whose values it has
        int wall;                // direction of the wall, or -1
    };
    struct Cluster {
        std::vector<Leaf> leaves;
        std::vector<std::uint8_t> depth, orientations, left_place, right_place;
        std::vector<std::int32_t> left, right;
        std::vector<EdgeRun> runs;
        std::vector<Ghost> ghosts;
        std::vector<std::vector<Real>> memory; // dofs, full, rates, bounds, start
        DgPatch<Real> patch;
        DgScratch<Real> scratch;
        const Real *start[EVOLVED];
    };

    Metric<Real> metric;
    DgOptions<Real> options;
    Flux flux = Flux::RUSANOV;
    std::vector<Cluster> clusters;
    double square;

    Mesh(const std::vector<Leaf> &leaves, double square_m, Border border, int parts)
        : square(square_m)
    {
        for (int s = 0; s <= DEPTHS; s++)
            metric.length[s] = Real(square * std::ldexp(s % 2 ? std::sqrt(0.5) : 1.0, -(s / 2)));
        for (int d = 0; d < DEPTHS; d++) {
            metric.over_area[d] = Real(std::ldexp(4 / (square * square), d));
            metric.inradius[d] = Real((1 - std::sqrt(0.5)) * double(metric.length[d + 1]));
        }
        clusters.resize(parts);
        for (int k = 0; k < parts; k++)
            clusters[k].leaves.assign(leaves.begin() + leaves.size() * k / parts,
                                      leaves.begin() + leaves.size() * (k + 1) / parts);
        connect(border);
        for (Cluster &cluster : clusters)
            allocate(cluster);
    }

    // Place of a lattice point, in m from the middle of the square.
    double place(std::int64_t x) const { return (double(x) / LATTICE_UNIT - 0.5) * square; }

    DgShape shape(const Cluster &cluster, int c) const
    {
        return {cluster.orientations[c], double(metric.length[cluster.depth[c] + 1])};
    }

    void centroid(const Cluster &cluster, int c, double &x, double &y) const
    {
        const Triangle &t = cluster.leaves[c].triangle;
        x = (place(t.entry.x) + place(t.exit.x) + place(t.apex.x)) / 3;
        y = (place(t.entry.y) + place(t.exit.y) + place(t.apex.y)) / 3;
    }

    double area(const Cluster &cluster, int c) const
    {
        return std::ldexp(square * square / 4, -int(cluster.depth[c]));
    }

    void initialise(const std::function<double(double, double)> &bed,
                    const std::function<Water(double, double, double)> &water)
    {
        for (Cluster &cluster : clusters)
            for (int c = 0; c < cluster.patch.cells; c++)
                initialise(cluster, c, bed, water);
    }

    Real stable_step() const
    {
        Real step = Real(1e30);
        for (const Cluster &cluster : clusters)
            step = std::min(step, dg_stable_step(cluster.patch, metric, options));
        return step;
    }

    Real euler(Real dt)
    {
        for (Cluster &cluster : clusters)
            for (std::size_t g = 0; g < cluster.ghosts.size(); g++)
                fill(cluster, int(g));
        Real step = Real(1e30);
        for (Cluster &cluster : clusters) {
            dg_residual(cluster.patch, metric, flux, options, cluster.scratch);
            step = std::min(step, dg_update(cluster.patch, metric, options, cluster.scratch, dt,
                                            second ? cluster.start : nullptr));
        }
        return step;
    }

    Real runge_kutta(Real dt)
    {
        for (Cluster &cluster : clusters)
            for (int v = 0; v < EVOLVED; v++)
                std::copy(cluster.patch.dof[v], cluster.patch.dof[v] + cluster.patch.cells,
                          const_cast<Real *>(cluster.start[v]));
        euler(dt);
        second = true;
        Real step = euler(dt);
        second = false;
        return step;
    }

    // Returns the number of steps.
    int run(double end, Real cfl, bool stop_exactly = true)
    {
        double time = 0;
        int steps = 0;
        for (Real step = stable_step(); time < end; steps++) {
            double dt = double(cfl * step);
            if (stop_exactly && time + dt > end)
                dt = end - time;
            step = runge_kutta(Real(dt));
            time += dt;
        }
        return steps;
    }

    // Calls f(cluster, cell) for all cells.
    void each(const std::function<void(const Cluster &, int)> &f) const
    {
        for (const Cluster &cluster : clusters)
            for (int c = 0; c < cluster.patch.cells; c++)
                f(cluster, c);
    }

    double total(int dof) const
    {
        double sum = 0;
        each([&](const Cluster &k, int c) { sum += area(k, c) * double(k.patch.dof[dof][c]); });
        return sum;
    }

private:
    struct Touch {
        int cluster, cell, side;
    };
    bool second = false;

    static void key(Lattice a, Lattice b, std::int64_t move_x, std::int64_t move_y,
                    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t> &result)
    {
        if (b < a)
            std::swap(a, b);
        result = {a.x + move_x, a.y + move_y, b.x + move_x, b.y + move_y};
    }

    void connect(Border border)
    {
        using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
        std::map<Key, std::vector<Touch>> touches;
        Key at;
        for (int k = 0; k < int(clusters.size()); k++)
            for (int c = 0; c < int(clusters[k].leaves.size()); c++)
                for (int side = 0; side < SIDES; side++) {
                    const Triangle &t = clusters[k].leaves[c].triangle;
                    key(side_begin(t, side), side_end(t, side), 0, 0, at);
                    touches[at].push_back({k, c, side});
                }
        for (int k = 0; k < int(clusters.size()); k++)
            connect(k, border, touches);
    }

    // Edges of cluster k: (direction, size) first, to be sorted into runs.
    template <class Touches> void connect(int k, Border border, const Touches &touches)
    {
        struct Edge {
            int direction, size, left, right, left_place, right_place;
        };
        Cluster &own = clusters[k];
        std::vector<Edge> edges;
        const int cells = int(own.leaves.size());
        for (int c = 0; c < cells; c++)
            for (int side = 0; side < SIDES; side++) {
                const Triangle &t = own.leaves[c].triangle;
                const Lattice a = side_begin(t, side), b = side_end(t, side);
                Touch other = beyond({k, c, side}, border, touches);
                int there = other.cell, there_place = PLACE_GHOST;
                if (other.cluster == k && inside(a, b)) {
                    if (other.cell < c)
                        continue; // had it from the other cell
                    there_place = swe::place(own.leaves[there].triangle, other.side);
                } else {
                    there = cells + int(own.ghosts.size());
                    bool wall = !inside(a, b) && border == Border::WALL;
                    own.ghosts.push_back(
                        {other.cluster, other.cell, other.side, wall ? direction(a, b) : -1});
                }
                int size = own.leaves[c].depth + (side == HYPOTENUSE ? 0 : 1);
                int here_place = swe::place(t, side);
                if (is_left(a, b, opposite(t, side)))
                    edges.push_back({direction(a, b), size, c, there, here_place, there_place});
                else
                    edges.push_back({direction(a, b), size, there, c, there_place, here_place});
            }
        std::stable_sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) {
            return std::tie(a.direction, a.size) < std::tie(b.direction, b.size);
        });
        for (const Edge &edge : edges) {
            int e = int(own.left.size());
            if (own.runs.empty() || own.runs.back().direction != edge.direction ||
                own.runs.back().size != edge.size)
                own.runs.push_back({e, e, std::uint8_t(edge.direction), std::uint8_t(edge.size)});
            own.runs.back().last = e + 1;
            own.left.push_back(edge.left), own.right.push_back(edge.right);
            own.left_place.push_back(std::uint8_t(edge.left_place));
            own.right_place.push_back(std::uint8_t(edge.right_place));
        }
    }

    static bool inside(Lattice a, Lattice b)
    {
        const std::int64_t u = LATTICE_UNIT;
        return !((a.x == b.x && (a.x == 0 || a.x == u)) || (a.y == b.y && (a.y == 0 || a.y == u)));
    }

    // Whose values are beyond the side; the cell's own at a border that is not periodic.
    template <class Touches> Touch beyond(Touch here, Border border, const Touches &touches)
    {
        const Triangle &t = clusters[here.cluster].leaves[here.cell].triangle;
        const Lattice a = side_begin(t, here.side), b = side_end(t, here.side);
        const std::int64_t u = LATTICE_UNIT;
        std::int64_t x = 0, y = 0;
        if (!inside(a, b)) {
            if (border != Border::PERIODIC)
                return here;
            if (a.x == b.x)
                x = a.x == 0 ? u : -u;
            else
                y = a.y == 0 ? u : -u;
        }
        typename Touches::key_type at;
        key(a, b, x, y, at);
        for (const Touch &touch : touches.at(at))
            if (touch.cluster != here.cluster || touch.cell != here.cell)
                return touch;
        return here;
    }

    void allocate(Cluster &k)
    {
        const int cells = int(k.leaves.size()), all = cells + int(k.ghosts.size());
        for (const Leaf &leaf : k.leaves) {
            k.depth.push_back(std::uint8_t(leaf.depth));
            k.orientations.push_back(std::uint8_t(orientation(leaf.triangle)));
        }
        k.memory.assign(DOFS + 1 + EVOLVED + 6 + EVOLVED, std::vector<Real>(all, 0));
        auto next = k.memory.begin();
        for (int v = 0; v < DOFS; v++)
            k.patch.dof[v] = (next++)->data();
        k.patch.full = (next++)->data();
        for (int v = 0; v < EVOLVED; v++)
            k.scratch.rate[v] = (next++)->data(), k.start[v] = (next++)->data();
        for (int v = 0; v < 3; v++)
            k.scratch.low[v] = (next++)->data(), k.scratch.high[v] = (next++)->data();
        k.patch.cells = cells, k.patch.ghosts = all - cells;
        k.patch.depth = k.depth.data(), k.patch.orientation = k.orientations.data();
        k.patch.edges = int(k.left.size());
        k.patch.left = k.left.data(), k.patch.right = k.right.data();
        k.patch.left_place = k.left_place.data(), k.patch.right_place = k.right_place.data();
        k.patch.runs = k.runs.data(), k.patch.run_count = int(k.runs.size());
    }

    void fill(Cluster &cluster, int g)
    {
        const Ghost &ghost = cluster.ghosts[g];
        Real values[DG_EXCHANGE];
        dg_outgoing(clusters[ghost.cluster].patch, metric, ghost.cell, ghost.side, values);
        if (ghost.wall >= 0)
            dg_wall(values, ghost.wall);
        dg_incoming(cluster.patch, g, values);
    }

    void initialise(Cluster &k, int c, const std::function<double(double, double)> &bed,
                    const std::function<Water(double, double, double)> &water)
    {
        const Triangle &t = k.leaves[c].triangle;
        Real heights[3], surface[3], hu[3], hv[3], line[3];
        double middle[SIDES][2], x, y;
        for (int side = 0; side < SIDES; side++) {
            const Lattice a = side_begin(t, side), b = side_end(t, side);
            middle[side][0] = (place(a.x) + place(b.x)) / 2;
            middle[side][1] = (place(a.y) + place(b.y)) / 2;
            heights[side] = Real(bed(middle[side][0], middle[side][1]));
        }
        dg_fit(shape(k, c), heights, line);
        centroid(k, c, x, y);
        line[0] =
            Real(0.75) * line[0] + Real(0.25) * Real(bed(x, y)); // as the grid's: not the fit's
        for (int side = 0; side < SIDES; side++) {
            const Real height = dg_middle(shape(k, c), line, side);
            const Water w = water(middle[side][0], middle[side][1], double(height));
            surface[side] = Real(w.h) + height;
            hu[side] = Real(w.hu), hv[side] = Real(w.hv);
        }
        const Water w = water(x, y, double(line[0]));
        const Real middle_water[3] = {Real(w.h), Real(w.hu), Real(w.hv)};
        const DgCell<Real> cell =
            dg_initial(shape(k, c), line, surface, hu, hv, middle_water, options.dry_tolerance);
        for (int v = 0; v < DOFS; v++)
            k.patch.dof[v][c] = cell.dof[v];
        k.patch.full[c] = dg_full(shape(k, c), line[1], line[2], options.dry_tolerance);
    }
};

} // namespace swe
#endif
