// SPDX-License-Identifier: GPL-3.0-or-later
// bed_tree.h - means of the bed over the triangles of one root's tree of bisections.
//
// Cells are bisected and joined all the time; the bed of each must not depend on what happened to
// it before, and water must not be raised or lowered by it.  So the mean over a triangle is the
// mean of its two children's means.  Down to a depth means are in a table, made from the
// leaves up; below it children are the parent's mean plus and minus half of the difference between
// the bed at their centroids.
#ifndef SWE_SCENARIO_BED_TREE_H
#define SWE_SCENARIO_BED_TREE_H

#include <cstdint>
#include <functional>
#include <vector>
#include "../../grid/triangle.h"

namespace swe {

class BedTree {
public:
    // Height of the bed in m at a place in lattice units.  Called by many threads at once.
    using Sampler = std::function<double(double x, double y)>;

    // Depths count as cells' do (patch.h): the root has `root_depth`, the smallest triangles of the
    // table `table_depth`, at most 28 more.  Memory is 2^(table_depth - root_depth + 1) doubles.
    // Samples three points of each of the smallest triangles, by all threads of an OpenMP team.
    BedTree(const Triangle &root, int root_depth, int table_depth, Sampler sampler);

    // Mean over the triangle `levels` bisections below the root; of the low `levels` bits of `path`
    // the highest says which child of the root (1: the second), and so on.  The same for the same
    // arguments, to the bit; safe from any thread.
    double mean(std::uint64_t path, int levels) const;

    // Are there, of the table's triangles `deepest` bisections below the root, or its smallest,
    // some in this one with the mean under the height and some with it not?  Time in proportion to
    // them.
    bool crosses(std::uint64_t path, int levels, double height, int deepest) const;

    // The bed at a place in lattice units.
    double sample(double x, double y) const { return sampler_(x, y); }

    // The triangle that path and levels say.
    Triangle triangle(std::uint64_t path, int levels) const;

private:
    Triangle root_;
    int table_levels_;
    Sampler sampler_;
    std::vector<double> means_; // of the triangle `path` at index 2^levels + path

    double quadrature(const Triangle &t) const;
    double at_centroid(const Triangle &t) const;
};

} // namespace swe
#endif
