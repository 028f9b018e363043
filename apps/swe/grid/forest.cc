// SPDX-License-Identifier: GPL-3.0-or-later
// forest.cc - squares, quarters, roots and their sides.
#include "forest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace swe {

static void add_roots(std::vector<Root> &all, const Triangle &t, int bisections)
{
    if (bisections == 0) {
        all.push_back({});
        all.back().where = t;
        return;
    }
    add_roots(all, t.first(), bisections - 1);
    add_roots(all, t.second(), bisections - 1);
}

void Forest::add_square(int i, int j)
{
    std::int64_t w = i * LATTICE_UNIT, s = j * LATTICE_UNIT, e = w + LATTICE_UNIT,
                 n = s + LATTICE_UNIT;
    Lattice sw{w, s}, se{e, s}, ne{e, n}, nw{w, n}, centre = middle(sw, ne);
    for (const Triangle &quarter : {Triangle{sw, se, centre}, Triangle{se, ne, centre},
                                    Triangle{ne, nw, centre}, Triangle{nw, sw, centre}})
        add_roots(all, quarter, cut);
}

void Forest::match_sides(int nx)
{
    std::map<std::pair<Lattice, Lattice>, std::pair<int, int>> open;
    for (int r = 0; r < static_cast<int>(all.size()); r++)
        for (int s = 0; s < SIDES; s++) {
            Lattice a = side_begin(all[r].where, s), b = side_end(all[r].where, s);
            auto key = std::minmax(a, b);
            auto [found, is_new] = open.try_emplace({key.first, key.second}, std::pair{r, s});
            Root::Across &mine = all[r].across[s];
            mine.border = a.x == 0 && b.x == 0                                   ? WEST
                          : a.x == nx * LATTICE_UNIT && b.x == nx * LATTICE_UNIT ? EAST
                          : a.y == 0 && b.y == 0                                 ? SOUTH
                                                                                 : NORTH;
            if (is_new)
                continue;
            auto [other, its_side] = found->second;
            bool reversed = !(side_begin(all[other].where, its_side) == a);
            mine.root = other;
            mine.side = its_side;
            mine.reversed = reversed;
            Root::Across &its = all[other].across[its_side];
            its.root = r;
            its.side = s;
            its.reversed = reversed;
        }
}

// There are fewer parts than ranks.
void Forest::refuse(const Config &config, int ranks) const
{
    const int most = config.grid.min_depth;
    int least = cut;
    for (auto parts = static_cast<long>(all.size()); parts < ranks; parts *= 2)
        least++;
    const std::string from = std::to_string(least), to = std::to_string(most);
    throw ConfigError(config.file + ": run.cut = " + std::to_string(cut) + " gives " +
                      std::to_string(all.size()) + " parts for " + std::to_string(ranks) +
                      " ranks: " +
                      (least <= most ? "must be from " + from + " to grid.min_depth, " + to
                                     : "it must be " + from + ", and grid.min_depth is " + to +
                                           ": raise both, or start fewer ranks"));
}

// Only here the number of ranks is known; what run.parts comes to, the configuration has checked.
void Forest::deal_out(const Config &config, int ranks)
{
    auto count = static_cast<int>(all.size());
    auto given = static_cast<int>(config.run.parts.size());
    if (count < ranks)
        refuse(config, ranks);
    if (given > 0 && given != ranks)
        throw ConfigError(config.file + ": run.parts has " + std::to_string(given) +
                          " numbers for " + std::to_string(ranks) + " ranks: must be " +
                          std::to_string(ranks) + " integers from 1 to " +
                          std::to_string(count - ranks + 1) + ", together " +
                          std::to_string(count) + ", or [] for equal numbers");
    if (given == 0)
        for (int r = 0; r < count; r++)
            all[r].rank = static_cast<int>(static_cast<long>(r) * ranks / count);
    else
        for (int rank = 0, r = 0; rank < ranks; rank++)
            for (int end = r + config.run.parts[rank]; r < end; r++)
                all[r].rank = rank;
}

Forest::Forest(const Config &config, int ranks)
    : cut(config.run.cut), x0(config.domain.x0), y0(config.domain.y0), side(config.domain.square),
      unit(side / static_cast<double>(LATTICE_UNIT))
{
    int nx = config.domain.nx, ny = config.domain.ny;
    for (int j = 0; j < ny; j++)
        for (int i = 0; i < nx; i++)
            add_square(j % 2 ? nx - 1 - i : i, j);
    match_sides(nx);
    deal_out(config, ranks);
}

double Forest::area(int depth) const { return side * side / 4 * std::ldexp(1, -depth); }

// Two bisections halve a length to the bit.
static double halved(double side, int depth)
{
    return std::ldexp(depth % 2 ? side * std::sqrt(0.5) : side, -(depth / 2));
}

template <class Real> Metric<Real> make_metric(const Forest &forest)
{
    Metric<Real> metric{};
    for (int d = 0; d <= DEPTHS; d++)
        metric.length[d] = static_cast<Real>(halved(forest.square_side(), d));
    for (int d = 0; d < DEPTHS; d++) {
        // of a right isosceles triangle with hypotenuse c: c / (2 + 2 sqrt 2)
        metric.over_area[d] = static_cast<Real>(1 / forest.area(d));
        metric.inradius[d] =
            static_cast<Real>(halved(forest.square_side(), d) / (2 + 2 * std::sqrt(2.)));
    }
    return metric;
}

template Metric<float> make_metric(const Forest &);
template Metric<double> make_metric(const Forest &);

} // namespace swe
