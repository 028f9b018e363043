// SPDX-License-Identifier: GPL-3.0-or-later
// tree.cc - see tree.h.
#include "tree.h"

#include <algorithm>
#include <cstddef>

namespace euler {
namespace {

// Children in the order of the curve.
template <int D> std::vector<Place<D>> children(const Place<D> &place)
{
    std::vector<std::pair<std::uint64_t, Place<D>>> sorted;
    for (int i = 0; i < Tree<D>::CHILDREN; i++)
        sorted.emplace_back(peano(place.child(i)), place.child(i));
    std::sort(sorted.begin(), sorted.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<Place<D>> places;
    for (const auto &child : sorted)
        places.push_back(child.second);
    return places;
}

// Are these leaves all children of one parent?
template <int D> bool are_siblings(const std::vector<Place<D>> &leaves, int first)
{
    const int last = first + Tree<D>::CHILDREN - 1;
    if (leaves[first].level == 0 || last >= static_cast<int>(leaves.size()))
        return false;
    const Place<D> parent = leaves[first].parent();
    for (int i = first; i <= last; i++)
        if (leaves[i].level != leaves[first].level || !(leaves[i].parent() == parent))
            return false;
    return true;
}

} // namespace

template <int D> Tree<D>::Tree(const Limits &limits) : limits_(limits)
{
    leaves_.push_back({});
    for (int level = 0; level < limits.min_level; level++) {
        std::vector<Place<D>> finer;
        for (const Place<D> &leaf : leaves_) {
            const auto below = children(leaf);
            finer.insert(finer.end(), below.begin(), below.end());
        }
        leaves_ = std::move(finer);
    }
    index();
}

template <int D> Tree<D>::Tree(const Limits &limits, std::vector<Place<D>> leaves)
    : limits_(limits), leaves_(std::move(leaves))
{
    index();
}

template <int D> std::size_t Tree<D>::slot(const Place<D> &place) const
{
    std::uint64_t hash = place.key() * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9u;
    return (hash ^ hash >> 29) & (table_.size() - 1);
}

template <int D> void Tree<D>::index()
{
    std::size_t size = 16;
    while (size < 2 * leaves_.size())
        size *= 2;
    table_.assign(size, -1);
    for (int i = 0; i < this->size(); i++) {
        std::size_t at = slot(leaves_[i]);
        while (table_[at] >= 0)
            at = (at + 1) & (size - 1);
        table_[at] = i;
        finest_ = std::max(finest_, leaves_[i].level);
    }
}

template <int D> int Tree<D>::find(const Place<D> &place) const
{
    std::size_t at = slot(place);
    while (table_[at] >= 0 && !(leaves_[table_[at]] == place))
        at = (at + 1) & (table_.size() - 1);
    return table_[at];
}

// To the place of the same level behind the face; false at the end of the domain.
template <int D> bool Tree<D>::step(Place<D> &place, int face) const
{
    const auto cells = static_cast<std::int32_t>(power_of_3(place.level));
    std::int32_t &x = place.x[face / 2];
    x += face % 2 ? 1 : -1;
    const bool is_inside = x >= 0 && x < cells;
    x = (x + cells) % cells;
    return is_inside || limits_.periodic;
}

template <int D> int Tree<D>::neighbours(int leaf, int face, int *found) const
{
    Place<D> place = leaves_[leaf];
    if (!step(place, face))
        return 0;
    if ((found[0] = find(place)) >= 0)
        return 1;
    if (place.level > 0 && (found[0] = find(place.parent())) >= 0)
        return 1;
    const int axis = face / 2;
    for (int sub = 0; sub < SUB_FACES; sub++) {
        int rest = sub, child = 0, scale = 1;
        for (int a = 0; a < D; a++, scale *= 3) {
            const int third = a == axis ? (face % 2 ? 0 : 2) : rest % 3;
            rest = a == axis ? rest : rest / 3;
            child += third * scale;
        }
        found[sub] = find(place.child(child));
    }
    return SUB_FACES;
}

template <int D> std::int64_t Tree<D>::base_of(int leaf) const
{
    return static_cast<std::int64_t>(peano(leaves_[leaf]) /
                                     power_of_3(D * (DEEPEST - limits_.min_level)));
}

template <int D> std::int64_t Tree<D>::bases() const
{
    return static_cast<std::int64_t>(power_of_3(D * limits_.min_level));
}

namespace {

// Marks for REFINE what must be, so that no neighbour of a leaf that is refined is too coarse.
template <int D> void balance(const Tree<D> &tree, std::vector<Mark> &marks)
{
    const auto &leaves = tree.leaves();
    std::vector<int> open;
    for (int i = 0; i < tree.size(); i++) {
        if (leaves[i].level >= tree.limits().max_level && marks[i] == Mark::REFINE)
            marks[i] = Mark::KEEP;
        if (marks[i] == Mark::REFINE)
            open.push_back(i);
    }
    int found[Tree<D>::SUB_FACES];
    while (!open.empty()) {
        const int leaf = open.back();
        open.pop_back();
        for (int face = 0; face < 2 * D; face++)
            if (tree.neighbours(leaf, face, found) == 1 &&
                leaves[found[0]].level < leaves[leaf].level && marks[found[0]] != Mark::REFINE) {
                marks[found[0]] = Mark::REFINE;
                open.push_back(found[0]);
            }
    }
}

// May these siblings be joined?  Their neighbours are at most one level finer than the parent
// after all changes; of neighbours that may be joined too it is not asked whether they will.
template <int D>
bool may_join(const Tree<D> &tree, const std::vector<Mark> &marks, int first)
{
    const auto &leaves = tree.leaves();
    const int level = leaves[first].level;
    if (level <= tree.limits().min_level || !are_siblings(leaves, first))
        return false;
    int found[Tree<D>::SUB_FACES];
    for (int i = first; i < first + Tree<D>::CHILDREN; i++) {
        if (marks[i] != Mark::COARSEN)
            return false;
        for (int face = 0; face < 2 * D; face++) {
            const int count = tree.neighbours(i, face, found);
            for (int n = 0; n < count; n++)
                if (leaves[found[n]].level > level ||
                    (leaves[found[n]].level == level && marks[found[n]] == Mark::REFINE))
                    return false;
        }
    }
    return true;
}

} // namespace

template <int D> Change<D> change(const Tree<D> &tree, std::vector<Mark> marks)
{
    balance(tree, marks);
    const auto &leaves = tree.leaves();
    std::vector<Place<D>> next;
    std::vector<Part> parts;
    bool is_any = false;
    for (int i = 0; i < tree.size();) {
        Part part{i, 1, static_cast<int>(next.size()), 1};
        if (marks[i] == Mark::REFINE) {
            const auto below = children(leaves[i]);
            next.insert(next.end(), below.begin(), below.end());
            part.after_count = Tree<D>::CHILDREN;
        } else if (marks[i] == Mark::COARSEN && may_join(tree, marks, i)) {
            next.push_back(leaves[i].parent());
            part.before_count = Tree<D>::CHILDREN;
        } else {
            next.push_back(leaves[i]);
        }
        is_any = is_any || part.after_count != part.before_count;
        i += part.before_count;
        parts.push_back(part);
    }
    return {is_any ? Tree<D>(tree.limits(), std::move(next)) : tree, std::move(parts), is_any};
}

template class Tree<2>;
template class Tree<3>;
template Change<2> change(const Tree<2> &, std::vector<Mark>);
template Change<3> change(const Tree<3> &, std::vector<Mark>);

} // namespace euler
