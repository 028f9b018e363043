// SPDX-License-Identifier: GPL-3.0-or-later
// cluster.h - a subtree of the grid: its cells with their values, and its boundary.
//
// Values are `fields` arrays, each with a number for every cell and every ghost; what they mean is
// the scheme's affair (solver/scheme.h).  What others need of the cluster is in its *interface*, a
// second copy of what is at the boundary: it has two sides that take turns, so that a cluster may
// be advanced while its neighbours still read what it was.  (Schreiber et al., section 4)
//
// One thread at a time works on a cluster; neighbours read only the side of its interface that
// no thread writes in this phase.
#ifndef SWE_GRID_CLUSTER_H
#define SWE_GRID_CLUSTER_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>
#include "../../lib/aligned.h"
#include "patch.h"
#include "topology.h"
#include "unset.h"

namespace swe {

using namespace apps;

// A subtree: `levels` bisections below a root, by the bits of path, highest first.
struct Node {
    std::int32_t root = 0;
    std::uint64_t path = 0;
    std::int32_t levels = 0;

    Node child(int which) const
    {
        return {root, path << 1 | static_cast<unsigned>(which), levels + 1};
    }
    Node parent() const { return {root, path >> 1, levels - 1}; }
    friend bool operator==(const Node &a, const Node &b)
    {
        return a.root == b.root && a.levels == b.levels && a.path == b.path;
    }
};

// Cells without connectivity: what adaptivity produces, splits and joins.  In order of the curve.
template <class Real> struct Cells {
    Node node;
    std::vector<std::uint8_t> depth;       // [n]
    std::vector<std::uint64_t> path;       // [n] below the root, as in Node
    std::vector<UnsetVector<Real>> values; // [fields][n]

    std::int32_t size() const { return static_cast<std::int32_t>(depth.size()); }
    const Real *field(int f) const { return values[f].data(); }
};

// Mass and momenta, of what passed an edge of the boundary, in m2 and m3/s.
constexpr int PASSED = 3;

// A stretch of a cluster's boundary with one partner: the run-length code of the partners.
struct Run {
    enum Kind : std::uint8_t { CLUSTER, RANK, BORDER } kind = BORDER;
    bool reversed = false;             // the partner's edges are in the opposite order
    std::int32_t first = 0, count = 0; // ghosts
    std::int32_t partner = 0;          // number of the cluster, the neighbour rank, or the border
    std::int32_t partner_first = 0;    // its first ghost, or place in the messages

    std::int32_t partner_of(std::int32_t i) const
    {
        return partner_first + (reversed ? count - 1 - i : i);
    }
};

// What a scheme keeps with a cluster.
class Attachment {
public:
    virtual ~Attachment() = default;
};

template <class Real> struct Cluster {
    Node node;
    Triangle where{}; // of the node
    std::int32_t root_depth = 0;
    int fields = 0;
    std::vector<std::uint8_t> depth;
    std::vector<std::uint64_t> path;
    std::uint8_t shallowest = 0, deepest = 0; // of the cells' depths
    bool has_changed = false;                 // was it made when the grid was changed last?
    Topology topology;
    std::vector<Run> runs;        // together all ghosts, in order
    Cluster *following = nullptr; // which the same core is likely to work on next: a hint

    std::int32_t stride = 0;
    AlignedVector<Real> values;         // [fields][stride]
    std::vector<Real> interface[2];     // [fields and, with local steps, PASSED + 1][ghosts]
    std::vector<std::uint8_t> marks[2]; // [ghosts] likewise, of what adaptivity asks for
    Real stable_step = 0;               // of the scheme, after the latest step
    std::unique_ptr<Attachment> attachment;

    // Local time stepping only (local_steps.h): the cluster's step is 2^level of the shortest one;
    // what went out through the boundary since the neighbour's last step; and what the neighbours
    // say of that, and their levels.
    int level = 0;
    std::vector<Real> passed; // [PASSED][ghosts]
    std::vector<Real> across; // [PASSED + 1][ghosts]

    std::int32_t cells() const { return topology.cells; }
    std::int32_t ghosts() const { return topology.ghosts; }
    Real *field(int f) { return values.data() + static_cast<std::size_t>(f) * stride; }
    const Real *field(int f) const { return values.data() + static_cast<std::size_t>(f) * stride; }

    // Bisections of the domain's quarters at the subtree's root.
    std::int32_t node_depth() const { return root_depth + node.levels; }
};

template <class Real> Patch<Real> patch_of(Cluster<Real> &c)
{
    return {c.cells(),
            c.ghosts(),
            c.field(0),
            c.field(1),
            c.field(2),
            c.field(3),
            c.depth.data(),
            static_cast<std::int32_t>(c.topology.left.size()),
            c.topology.left.data(),
            c.topology.right.data(),
            c.topology.runs.data(),
            static_cast<std::int32_t>(c.topology.runs.size())};
}

// A cluster of these cells, whose node is the triangle `where`; ghosts are zero and runs empty.
template <class Real> void make_cluster(Cluster<Real> &c, Cells<Real> &&from, int root_depth,
                                        const Triangle &where, bool local_steps)
{
    c.node = from.node;
    c.where = where;
    c.root_depth = root_depth;
    c.fields = static_cast<int>(from.values.size());
    c.depth = std::move(from.depth);
    c.path = std::move(from.path);
    auto [least, most] = std::minmax_element(c.depth.begin(), c.depth.end());
    c.shallowest = *least;
    c.deepest = *most;
    c.topology = connect_cells(c.node_depth(), orientation(where), c.depth);
    constexpr std::int32_t line = ALIGNMENT / sizeof(Real);
    c.stride = (c.cells() + c.ghosts() + line - 1) / line * line;
    c.values.clear();
    c.values.reserve(static_cast<std::size_t>(c.fields) * c.stride);
    for (int f = 0; f < c.fields; f++) {
        c.values.insert(c.values.end(), from.values[f].begin(), from.values[f].end());
        c.values.resize(static_cast<std::size_t>(f + 1) * c.stride, 0);
    }
    if (local_steps) {
        c.passed.assign(static_cast<std::size_t>(PASSED) * c.ghosts(), 0);
        c.across.assign(static_cast<std::size_t>(PASSED + 1) * c.ghosts(), 0);
    }
    int told = c.fields + (local_steps ? PASSED + 1 : 0);
    for (int side = 0; side < 2; side++) {
        c.interface[side].assign(static_cast<std::size_t>(told) * c.ghosts(), 0);
        c.marks[side].assign(c.ghosts(), 0);
    }
    c.runs.clear();
}

// Cells first .. last-1 of Cells or of a Cluster with the same fields, as they are.
template <class Real, class From>
void append_stretch(Cells<Real> &to, const From &from, std::int32_t first, std::int32_t last)
{
    to.depth.insert(to.depth.end(), from.depth.begin() + first, from.depth.begin() + last);
    to.path.insert(to.path.end(), from.path.begin() + first, from.path.begin() + last);
    for (int f = 0; f < static_cast<int>(to.values.size()); f++)
        to.values[f].insert(to.values[f].end(), from.field(f) + first, from.field(f) + last);
}

template <class Real> Cells<Real> cells_of(const Cluster<Real> &c)
{
    Cells<Real> cells;
    cells.node = c.node;
    cells.values.resize(c.fields);
    append_stretch(cells, c, 0, c.cells());
    return cells;
}

// Of cells first .. last-1 of Cells or of a Cluster, which are all leaves below the node and more
// than one: the first one in its second half.
template <class From> std::int32_t second_half(const From &from, const Node &node, int root_depth,
                                               std::int32_t first, std::int32_t last)
{
    while (first < last) {
        std::int32_t middle = first + (last - first) / 2;
        if (from.path[middle] >> (from.depth[middle] - root_depth - node.levels - 1) & 1)
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

} // namespace swe
#endif
