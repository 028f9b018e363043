// SPDX-License-Identifier: GPL-3.0-or-later
// mesh.h - a rank's part of a tree: its cells, what is behind their faces, and what is sent.
//
// A mesh does not change: a step in which the tree changes makes another one.  It knows no data
// but numbers: own cells from 0 in the order of the curve, and ghosts, which are traces of other
// ranks' cells.
#ifndef EULER_MESH_H
#define EULER_MESH_H

#include <cstdint>
#include <vector>
#include "../element/element.h"
#include "tree.h"

namespace euler {

// Which part of the curve each rank has: base cells cut[rank] to cut[rank + 1].
using Cut = std::vector<std::int64_t>;

// In equal parts by the number of leaves: the same on each rank.  Ranks may be more than base
// cells; then some have none.
template <int D> Cut cut_evenly(const Tree<D> &tree, int ranks);

// A trace: of an own cell, or a ghost.
struct Source {
    std::int32_t cell; // own; -1 - ghost
    std::int8_t face;
};

// What is behind a face of an own cell; the neighbours' traces are sources[first ...].
struct Link {
    FaceKind kind;
    std::uint8_t sub_face; // COARSER: which one of the neighbour's
    std::int32_t first;
};

// Traces that go to another rank, and those that come from it, each in the order of leaf and face,
// which both ranks know.
struct Peer {
    int rank;
    std::vector<Source> send; // own cells only
    int first_ghost, ghosts;
};

// Cells at a rank's border; at a change of level; all others, which are the enclaves.
enum class Zone : std::uint8_t { BORDER, TRANSITION, ENCLAVE };

template <int D> class Mesh {
public:
    Mesh(Tree<D> tree, const Cut &cut, int rank);

    const Tree<D> &tree() const { return tree_; }
    int size() const { return count_; }   // own cells
    int first() const { return begin_; }  // leaf of own cell 0
    const Place<D> &place(int cell) const { return tree_.leaves()[begin_ + cell]; }
    // Leaves of each rank: from begins()[rank] to begins()[rank + 1].
    const std::vector<int> &begins() const { return begins_; }

    const Link &link(int cell, int face) const { return links_[2 * D * cell + face]; }
    const Source *sources(const Link &link) const { return &sources_[link.first]; }
    const std::vector<Peer> &peers() const { return peers_; }
    int ghosts() const { return ghosts_; }
    Zone zone(int cell) const { return zones_[cell]; }
    // Whether a neighbour has another level.  Unlike the zone this is the same for any ranks.
    bool is_at_transition(int cell) const { return transitions_[cell]; }

private:
    // A ghost, or a trace to send; sorted this is the order of messages.
    struct Item {
        int rank, leaf, face;
        bool operator<(const Item &other) const;
        bool operator==(const Item &other) const;
    };

    Tree<D> tree_;
    std::vector<int> begins_;
    int rank_, begin_, count_, ghosts_ = 0;
    std::vector<Link> links_;
    std::vector<Source> sources_;
    std::vector<Peer> peers_;
    std::vector<Zone> zones_;
    std::vector<bool> transitions_;

    void find_begins(const Cut &cut);
    int owner(int leaf) const;
    bool is_own(int leaf) const { return leaf >= begin_ && leaf < begin_ + count_; }
    void connect(std::vector<Item> &in, std::vector<Item> &out);
    void connect_face(int cell, int face, std::vector<Item> &in, std::vector<Item> &out);
    void number_ghosts(const std::vector<Item> &in);
    void make_peers(const std::vector<Item> &in, const std::vector<Item> &out);
};

} // namespace euler
#endif
