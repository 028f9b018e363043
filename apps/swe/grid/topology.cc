// SPDX-License-Identifier: GPL-3.0-or-later
// topology.cc - chains of cell sides, closed child by child; then edges, sorted into runs.
#include "topology.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include "orientation.h"

namespace swe {

namespace {

struct Chain {
    std::int32_t first, last, count;
};

struct Chains {
    Chain side[SIDES];
};

// All that a walk finds below a triangle that has so many leaves of one depth, counted from the
// first of its cells and sides: most cells are in such blocks, and a copy is quicker than a walk.
struct Block {
    static constexpr int LEVELS = 4, CELLS = 16, EDGES = 4; // on each of its sides
    std::int32_t mate[SIDES * CELLS]; // on the boundary: nothing that is looked at
    std::int32_t boundary[SIDES * EDGES];
    std::uint8_t orientation[ORIENTATIONS][CELLS];

    Block();
};

class Walk {
public:
    // Without the block all is found cell by cell.
    Walk(Topology &topology, const std::vector<std::uint8_t> &depths, const Block *a_block)
        : of(topology), depth(depths), block(a_block),
          links(new std::int32_t[2 * SIDES * depths.size()]), following(links.get()),
          preceding(links.get() + SIDES * depths.size())
    {
    }

    Chains visit(int at_depth, int orientation)
    {
        if (cell == of.cells || depth[cell] < at_depth)
            throw std::logic_error("depths are not those of a tree's leaves");
        if (depth[cell] == at_depth)
            return leaf(orientation);
        if (is_block(at_depth + Block::LEVELS))
            return copy_block(orientation);
        if (cell + 1 < of.cells && depth[cell] == at_depth + 1 && depth[cell + 1] == at_depth + 1)
            return siblings(orientation);
        const auto &child = ORIENTATION.child[orientation];
        Chains a = visit(at_depth + 1, child[0]), b = visit(at_depth + 1, child[1]);
        close(a.side[EXIT_LEG], b.side[ENTRY_LEG]);
        return {
            {append(a.side[ENTRY_LEG], b.side[EXIT_LEG]), a.side[HYPOTENUSE], b.side[HYPOTENUSE]}};
    }

    void finish(const Chains &root)
    {
        if (cell != of.cells)
            throw std::logic_error("more depths than the tree has leaves");
        for (int side = 0; side < SIDES; side++) {
            of.side_edges[side] = root.side[side].count;
            for (std::int32_t s = root.side[side].first, n = 0; n < root.side[side].count; n++) {
                of.mate[s] = ~static_cast<std::int32_t>(of.boundary.size());
                of.boundary.push_back(s);
                s = following[s];
            }
        }
        of.ghosts = static_cast<std::int32_t>(of.boundary.size());
    }

private:
    Topology &of;
    const std::vector<std::uint8_t> &depth;
    const Block *block;
    std::unique_ptr<std::int32_t[]> links; // not set before it is used: it costs time
    std::int32_t *following, *preceding;   // of each cell side, in its chain
    std::int32_t cell = 0;                 // the next leaf

    Chains leaf(int orientation)
    {
        of.orientation[cell] = static_cast<std::uint8_t>(orientation);
        std::int32_t s = 3 * cell++;
        return {{{s, s, 1}, {s + 1, s + 1, 1}, {s + 2, s + 2, 1}}};
    }

    // Of leaves of this depth?
    bool is_block(int of_depth) const
    {
        if (!block || depth[cell] != of_depth || of.cells - cell < Block::CELLS)
            return false;
        std::uint8_t all[Block::CELLS];
        std::memset(all, of_depth, sizeof all);
        return std::memcmp(&depth[cell], all, sizeof all) == 0;
    }

    Chains copy_block(int orientation)
    {
        std::copy_n(block->orientation[orientation], Block::CELLS, &of.orientation[cell]);
        std::int32_t first = SIDES * cell, *mate = &of.mate[first];
#pragma omp simd
        for (int side = 0; side < SIDES * Block::CELLS; side++)
            mate[side] = first + block->mate[side];
        cell += Block::CELLS;
        auto chain = [&](int side) -> Chain {
            const std::int32_t *edge = block->boundary + side * Block::EDGES;
            for (int e = 1; e < Block::EDGES; e++) {
                following[first + edge[e - 1]] = first + edge[e];
                preceding[first + edge[e]] = first + edge[e - 1];
            }
            return {first + edge[0], first + edge[Block::EDGES - 1], Block::EDGES};
        };
        return {{chain(HYPOTENUSE), chain(ENTRY_LEG), chain(EXIT_LEG)}};
    }

    // What visit() does where both children are leaves, in fewer instructions: most often, that is.
    Chains siblings(int orientation)
    {
        Chains a = leaf(ORIENTATION.child[orientation][0]),
               b = leaf(ORIENTATION.child[orientation][1]);
        std::int32_t shared_a = a.side[EXIT_LEG].first, shared_b = b.side[ENTRY_LEG].first;
        of.mate[shared_a] = shared_b;
        of.mate[shared_b] = shared_a;
        return {
            {append(a.side[ENTRY_LEG], b.side[EXIT_LEG]), a.side[HYPOTENUSE], b.side[HYPOTENUSE]}};
    }

    Chain append(const Chain &a, const Chain &b)
    {
        following[a.last] = b.first;
        preceding[b.first] = a.last;
        return {a.first, b.last, a.count + b.count};
    }

    void close(const Chain &a, const Chain &b)
    {
        if (a.count != b.count)
            throw std::logic_error("the grid is not conforming");
        for (std::int32_t s = a.first, t = b.last, n = a.count; n > 0; n--) {
            of.mate[s] = t;
            of.mate[t] = s;
            s = following[s];
            t = preceding[t];
        }
    }
};

Topology connect(int root_depth, int root_orientation, const std::vector<std::uint8_t> &depth,
                 const Block *block)
{
    Topology topology;
    topology.cells = static_cast<std::int32_t>(depth.size());
    topology.orientation.resize(depth.size());
    topology.mate.resize(SIDES * depth.size());
    Walk walk(topology, depth, block);
    walk.finish(walk.visit(root_depth, root_orientation));
    return topology;
}

Block::Block()
{
    const std::vector<std::uint8_t> depth(CELLS, LEVELS);
    for (int o = 0; o < ORIENTATIONS; o++) {
        Topology whole = connect(0, o, depth, nullptr);
        std::copy_n(whole.orientation.begin(), CELLS, orientation[o]);
        std::copy_n(whole.mate.begin(), SIDES * CELLS, mate); // alike in all
        std::copy_n(whole.boundary.begin(), SIDES * EDGES, boundary);
    }
}

// Direction and size of an edge as one number, by which edges are sorted.
class RunKey {
public:
    RunKey(const Topology &topology, const std::vector<std::uint8_t> &depths)
        : of(topology), depth(depths)
    {
    }
    int operator()(std::int32_t cell, int side) const
    {
        int size = depth[cell] + (side == HYPOTENUSE ? 0 : 1);
        return size * DIRECTIONS + ORIENTATION.direction[of.orientation[cell]][side];
    }
    static constexpr int KEYS = (DEPTHS + 1) * DIRECTIONS;

private:
    const Topology &of;
    const std::vector<std::uint8_t> &depth;
};

template <class F> void each_edge(const Topology &of, F use)
{
    for (std::int32_t cell = 0; cell < of.cells; cell++)
        for (int side = 0; side < SIDES; side++) {
            std::int32_t s = 3 * cell + side, mate = of.mate[s];
            if (mate < 0)
                use(cell, side, of.cells + ~mate);
            else if (s < mate)
                use(cell, side, mate / 3);
        }
}

} // namespace

void add_edges(Topology &of, const std::vector<std::uint8_t> &depth)
{
    RunKey key(of, depth);
    std::vector<std::int32_t> place(RunKey::KEYS + 1, 0);
    each_edge(of, [&](std::int32_t cell, int side, std::int32_t) { place[key(cell, side) + 1]++; });
    for (int k = 0; k < RunKey::KEYS; k++) {
        if (place[k + 1])
            of.runs.push_back({place[k], place[k] + place[k + 1],
                               static_cast<std::uint8_t>(k % DIRECTIONS),
                               static_cast<std::uint8_t>(k / DIRECTIONS)});
        place[k + 1] += place[k];
    }
    of.left.resize(place[RunKey::KEYS]);
    of.right.resize(place[RunKey::KEYS]);
    each_edge(of, [&](std::int32_t cell, int side, std::int32_t across) {
        std::int32_t at = place[key(cell, side)]++;
        bool is_left = ORIENTATION.is_left[of.orientation[cell]][side];
        of.left[at] = is_left ? cell : across;
        of.right[at] = is_left ? across : cell;
    });
}

Topology connect_cells(int root_depth, int root_orientation, const std::vector<std::uint8_t> &depth)
{
    static const Block block;
    return connect(root_depth, root_orientation, depth, &block);
}

Topology make_topology(int root_depth, int root_orientation, const std::vector<std::uint8_t> &depth)
{
    Topology topology = connect_cells(root_depth, root_orientation, depth);
    add_edges(topology, depth);
    return topology;
}

} // namespace swe
