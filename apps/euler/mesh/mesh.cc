// SPDX-License-Identifier: GPL-3.0-or-later
// mesh.cc - see mesh.h.
#include "mesh.h"

#include <algorithm>
#include <tuple>

namespace euler {
namespace {

template <class T> void sort_unique(std::vector<T> &items)
{
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Where a cell lies on the face of a neighbour that is three times as large.
template <int D> std::uint8_t sub_face(const Place<D> &place, int axis)
{
    int number = 0;
    for (int a = D - 1; a >= 0; a--)
        if (a != axis)
            number = 3 * number + place.x[a] % 3;
    return static_cast<std::uint8_t>(number);
}

} // namespace

template <int D> Cut cut_evenly(const Tree<D> &tree, int ranks)
{
    std::vector<std::int64_t> leaves(static_cast<std::size_t>(tree.bases()));
    for (int i = 0; i < tree.size(); i++)
        leaves[static_cast<std::size_t>(tree.base_of(i))]++;
    Cut cut(1, 0);
    std::int64_t sum = 0;
    for (std::int64_t base = 0; base < tree.bases(); base++) {
        const std::int64_t middle = 2 * sum + leaves[static_cast<std::size_t>(base)];
        const std::int64_t rank = middle * ranks / (2 * std::int64_t{tree.size()});
        while (static_cast<std::int64_t>(cut.size()) <= rank)
            cut.push_back(base);
        sum += leaves[static_cast<std::size_t>(base)];
    }
    cut.resize(static_cast<std::size_t>(ranks) + 1, tree.bases());
    return cut;
}

template <int D> bool Mesh<D>::Item::operator<(const Item &other) const
{
    return std::tie(rank, leaf, face) < std::tie(other.rank, other.leaf, other.face);
}

template <int D> bool Mesh<D>::Item::operator==(const Item &other) const
{
    return rank == other.rank && leaf == other.leaf && face == other.face;
}

template <int D> Mesh<D>::Mesh(Tree<D> tree, const Cut &cut, int rank)
    : tree_(std::move(tree)), rank_(rank)
{
    find_begins(cut);
    begin_ = begins_[rank];
    count_ = begins_[rank + 1] - begin_;
    std::vector<Item> in, out;
    connect(in, out);
    sort_unique(in);
    sort_unique(out);
    number_ghosts(in);
    make_peers(in, out);
}

template <int D> void Mesh<D>::find_begins(const Cut &cut)
{
    int leaf = 0;
    for (std::int64_t base : cut) {
        int end = tree_.size(), from = leaf;
        while (from < end) {
            const int middle = from + (end - from) / 2;
            if (tree_.base_of(middle) < base)
                from = middle + 1;
            else
                end = middle;
        }
        begins_.push_back(leaf = from);
    }
}

template <int D> int Mesh<D>::owner(int leaf) const
{
    return static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), leaf) -
                            begins_.begin()) - 1;
}

template <int D> void Mesh<D>::connect(std::vector<Item> &in, std::vector<Item> &out)
{
    links_.reserve(static_cast<std::size_t>(2 * D) * count_);
    sources_.reserve(links_.capacity());
    transitions_.resize(count_);
    zones_.resize(count_);
    for (int cell = 0; cell < count_; cell++) {
        const std::size_t remote = in.size();
        for (int face = 0; face < 2 * D; face++)
            connect_face(cell, face, in, out);
        zones_[cell] = in.size() > remote    ? Zone::BORDER
                       : transitions_[cell] ? Zone::TRANSITION
                                            : Zone::ENCLAVE;
    }
}

// A source has the number of its leaf until number_ghosts().
template <int D>
void Mesh<D>::connect_face(int cell, int face, std::vector<Item> &in, std::vector<Item> &out)
{
    const int leaf = begin_ + cell;
    int found[Tree<D>::SUB_FACES];
    const int count = tree_.neighbours(leaf, face, found);
    Link link{FaceKind::WALL, 0, static_cast<std::int32_t>(sources_.size())};
    if (count > 1) {
        link.kind = FaceKind::FINER;
    } else if (count == 1 && tree_.leaves()[found[0]].level < place(cell).level) {
        link.kind = FaceKind::COARSER;
        link.sub_face = sub_face(place(cell), face / 2);
    } else if (count == 1) {
        link.kind = FaceKind::SAME;
    }
    if (link.kind == FaceKind::FINER || link.kind == FaceKind::COARSER)
        transitions_[cell] = true;
    for (int i = 0; i < count; i++) {
        sources_.push_back({found[i], static_cast<std::int8_t>(face ^ 1)});
        if (!is_own(found[i])) {
            in.push_back({owner(found[i]), found[i], face ^ 1});
            out.push_back({owner(found[i]), leaf, face});
        }
    }
    links_.push_back(link);
}

template <int D> void Mesh<D>::number_ghosts(const std::vector<Item> &in)
{
    ghosts_ = static_cast<int>(in.size());
    for (Source &source : sources_) {
        if (is_own(source.cell)) {
            source.cell -= begin_;
            continue;
        }
        const Item item{owner(source.cell), source.cell, source.face};
        const auto at = std::lower_bound(in.begin(), in.end(), item);
        source.cell = static_cast<std::int32_t>(-1 - (at - in.begin()));
    }
}

template <int D>
void Mesh<D>::make_peers(const std::vector<Item> &in, const std::vector<Item> &out)
{
    std::size_t ghost = 0;
    for (const Item &item : out) {
        if (peers_.empty() || peers_.back().rank != item.rank) {
            Peer peer{item.rank, {}, static_cast<int>(ghost), 0};
            while (ghost < in.size() && in[ghost].rank == item.rank)
                ghost++;
            peer.ghosts = static_cast<int>(ghost) - peer.first_ghost;
            peers_.push_back(peer);
        }
        peers_.back().send.push_back({item.leaf - begin_, static_cast<std::int8_t>(item.face)});
    }
}

template class Mesh<2>;
template class Mesh<3>;
template Cut cut_evenly(const Tree<2> &, int);
template Cut cut_evenly(const Tree<3> &, int);

} // namespace euler
