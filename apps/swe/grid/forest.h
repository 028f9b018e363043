// SPDX-License-Identifier: GPL-3.0-or-later
// forest.h - the roots of the grid's trees, and which rank owns which.
//
// The domain is made of base squares, each cut along its diagonals into four quarters whose
// hypotenuses are the square's sides: compatible for newest-vertex bisection.  Quarters are
// bisected `cut` times; the triangles that result are the roots.  In the order of the curve they
// are dealt out to ranks, in equal numbers or in those of run.parts, for good: cores move, data do
// not.
// (Schreiber et al., 6.3)
#ifndef SWE_GRID_FOREST_H
#define SWE_GRID_FOREST_H

#include <string>
#include <vector>
#include "../config.h"
#include "patch.h"

namespace swe {

enum Border : int { WEST = 0, EAST = 1, SOUTH = 2, NORTH = 3, BORDERS = 4 };

struct Root {
    Triangle where;
    int rank = 0;
    // Across each side: the root there, or -1 and the border of the domain.
    struct Across {
        int root = -1, side = 0;
        bool reversed = false; // its side runs the other way
        Border border = WEST;
    } across[SIDES];
};

struct Point {
    double x, y; // m
};

class Forest {
public:
    // Throws ConfigError when there are fewer roots than ranks, or run.parts is for other ranks.
    Forest(const Config &config, int ranks);

    const std::vector<Root> &roots() const { return all; }
    int root_depth() const { return cut; }
    Triangle triangle(int root, std::uint64_t path, int levels) const
    {
        return descendant(all[root].where, path, levels);
    }

    // A place of the domain in metres.
    double x(Lattice p) const { return x0 + unit * static_cast<double>(p.x); }
    double y(Lattice p) const { return y0 + unit * static_cast<double>(p.y); }
    // Of a place in lattice units, also between lattice points.
    Point point(double u, double v) const { return {x0 + unit * u, y0 + unit * v}; }
    Point centroid(const Triangle &t) const
    {
        return {(x(t.entry) + x(t.exit) + x(t.apex)) / 3, (y(t.entry) + y(t.exit) + y(t.apex)) / 3};
    }
    double square_side() const { return side; }
    double area(int depth) const;

private:
    std::vector<Root> all;
    int cut;
    double x0, y0, side, unit;

    void add_square(int i, int j);
    void match_sides(int nx);
    void deal_out(const Config &config, int ranks);
    [[noreturn]] void refuse(const Config &config, int ranks) const;
};

template <class Real> Metric<Real> make_metric(const Forest &forest);

} // namespace swe
#endif
