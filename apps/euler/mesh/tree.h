// SPDX-License-Identifier: GPL-3.0-or-later
// tree.h - the leaves of the spacetree in the order of Peano's curve, and how they change.
//
// Each rank has the whole tree, whose leaves are some bytes each; a rank has the data of its own
// part of the curve only.  So all ranks change the tree alike, from the same marks, and messages
// need no handshake.  Neighbours across a face differ by at most one level.
#ifndef EULER_TREE_H
#define EULER_TREE_H

#include <cstdint>
#include <vector>
#include "place.h"

namespace euler {

enum class Mark : std::int8_t { COARSEN = -1, KEEP = 0, REFINE = 1 };

// Of a tree: levels of leaves, and whether opposite ends of the domain are the same place.
struct Limits {
    int min_level, max_level; // 0 to DEEPEST
    bool periodic;
};

template <int D> class Tree {
public:
    static constexpr int CHILDREN = D == 2 ? 9 : 27, SUB_FACES = CHILDREN / 3;

    // All leaves of the least level.
    explicit Tree(const Limits &limits);
    // Leaves in the order of the curve.
    Tree(const Limits &limits, std::vector<Place<D>> leaves);

    const Limits &limits() const { return limits_; }
    const std::vector<Place<D>> &leaves() const { return leaves_; }
    int size() const { return static_cast<int>(leaves_.size()); }
    int finest() const { return finest_; } // level

    // The leaf's number, or -1: no leaf has this place.
    int find(const Place<D> &place) const;

    // The leaves behind a face (2 * axis + side): their number, 0 at the end of the domain, 1, or
    // SUB_FACES, the lower tangential axis innermost.
    int neighbours(int leaf, int face, int *found) const;

    // The cell of the least level that has the leaf, numbered along the curve.
    std::int64_t base_of(int leaf) const;
    std::int64_t bases() const;

private:
    Limits limits_;
    std::vector<Place<D>> leaves_;
    std::vector<std::int32_t> table_; // of leaves, by hash; -1: empty
    int finest_ = 0;

    void index();
    std::size_t slot(const Place<D> &place) const;
    bool step(Place<D> &place, int face) const;
};

// Of one or more leaves to one or more others, at the same place.
struct Part {
    int before, before_count; // leaves of the old tree
    int after, after_count;   // and of the new one
};

template <int D> struct Change {
    Tree<D> tree;
    std::vector<Part> parts; // in the order of the curve; all leaves of both trees
    bool is_any;
};

// The tree after the changes that the leaves are marked for, as far as the limits allow.  A leaf
// changes by one level at most; neighbours of what is refined are refined too, if they must be;
// leaves are joined if all CHILDREN of their parent are marked, and no neighbour is too fine.
template <int D> Change<D> change(const Tree<D> &tree, std::vector<Mark> marks);

} // namespace euler
#endif
