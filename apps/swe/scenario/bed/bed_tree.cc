// SPDX-License-Identifier: GPL-3.0-or-later
// bed_tree.cc - see bed_tree.h.
#include "bed_tree.h"

#include <algorithm>
#include <stdexcept>

namespace swe {
namespace {

constexpr int MOST_LEVELS = 28; // of the table: 4 GiB

bool second(std::uint64_t path, int levels, int level) { return path >> (levels - 1 - level) & 1; }

} // namespace

BedTree::BedTree(const Triangle &root, int root_depth, int table_depth, Sampler sampler)
    : root_(root), table_levels_(std::max(0, table_depth - root_depth)),
      sampler_(std::move(sampler))
{
    if (table_levels_ > MOST_LEVELS)
        throw std::length_error("BedTree: a table of more than 28 levels");
    std::int64_t leaves = std::int64_t{1} << table_levels_;
    means_.resize(2 * static_cast<std::size_t>(leaves));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t leaf = 0; leaf < leaves; leaf++)
        means_[static_cast<std::size_t>(leaves + leaf)] =
            quadrature(triangle(static_cast<std::uint64_t>(leaf), table_levels_));
    for (std::size_t i = static_cast<std::size_t>(leaves); i-- > 1;)
        means_[i] = (means_[2 * i] + means_[2 * i + 1]) / 2;
}

double BedTree::mean(std::uint64_t path, int levels) const
{
    int known = std::min(levels, table_levels_);
    std::uint64_t index = (std::uint64_t{1} << known) |
                          (path >> (levels - known) & ((std::uint64_t{1} << known) - 1));
    double mean = means_[index];
    if (levels == known)
        return mean;
    Triangle t = triangle(path >> (levels - known), known);
    for (int level = known; level < levels; level++) {
        Triangle a = t.first(), b = t.second();
        double half = (at_centroid(b) - at_centroid(a)) / 2;
        bool is_second = second(path, levels, level);
        mean += is_second ? half : -half;
        t = is_second ? b : a;
    }
    return mean;
}

bool BedTree::crosses(std::uint64_t path, int levels, double height, int deepest) const
{
    deepest = std::min(deepest, table_levels_);
    if (levels >= deepest)
        return false;
    std::uint64_t count = std::uint64_t{1} << (deepest - levels);
    const double *first = means_.data() + ((std::uint64_t{1} << levels) + path) * count;
    bool is_under = *first < height;
    return std::any_of(first, first + count,
                       [=](double mean) { return (mean < height) != is_under; });
}

Triangle BedTree::triangle(std::uint64_t path, int levels) const
{
    return descendant(root_, path, levels);
}

// The middles of the sides: exact for polynomials of degree 2.
double BedTree::quadrature(const Triangle &t) const
{
    double sum = 0;
    for (int side = 0; side < SIDES; side++) {
        Lattice a = side_begin(t, side), b = side_end(t, side);
        sum += sampler_(double(a.x + b.x) / 2, double(a.y + b.y) / 2);
    }
    return sum / 3;
}

double BedTree::at_centroid(const Triangle &t) const
{
    return sampler_(double(t.entry.x + t.exit.x + t.apex.x) / 3,
                    double(t.entry.y + t.exit.y + t.apex.y) / 3);
}

} // namespace swe
