// SPDX-License-Identifier: GPL-3.0-or-later
// interfaces.cc - stretches of clusters' sides, closed subtree by subtree, then root by root.
#include "interfaces.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace swe {

namespace {

struct Stretch {
    std::int32_t cluster, first, count; // ghosts
};
using Chain = std::vector<Stretch>;
using Chains = std::array<Chain, SIDES>;

class Closing {
public:
    Closing(const Forest &forest_, int rank_, const std::vector<Outline> &outlines)
        : forest(forest_), rank(rank_), clusters(outlines)
    {
        found.runs.resize(clusters.size());
    }

    Interfaces all()
    {
        std::size_t at = 0;
        for (int root = 0; root < static_cast<int>(forest.roots().size()); root++)
            if (forest.roots()[root].rank == rank)
                chains[root] = visit(at, Node{root, 0, 0});
        if (at != clusters.size())
            throw std::logic_error("clusters that belong to no root of this rank");
        for (auto &[root, of] : chains)
            for (int side = 0; side < SIDES; side++)
                close_side(root, side);
        place_messages();
        for (auto &runs : found.runs)
            std::sort(runs.begin(), runs.end(),
                      [](const Run &a, const Run &b) { return a.first < b.first; });
        return std::move(found);
    }

private:
    const Forest &forest;
    int rank;
    const std::vector<Outline> &clusters;
    Interfaces found;
    std::map<int, Chains> chains; // of the rank's roots

    struct Shared {
        int rank;
        std::pair<Lattice, Lattice> key;
        int root, side;
        bool operator<(const Shared &o) const
        {
            return std::tie(rank, key.first, key.second) <
                   std::tie(o.rank, o.key.first, o.key.second);
        }
    };
    std::vector<Shared> shared;

    Chains visit(std::size_t &at, const Node &node)
    {
        if (at < clusters.size() && clusters[at].node == node) {
            const Outline &c = clusters[at];
            auto number = static_cast<std::int32_t>(at++);
            Chains result;
            for (int s = 0; s < SIDES; s++)
                result[s] = {{number, c.side_first[s], c.side_edges[s]}};
            return result;
        }
        if (at >= clusters.size() || clusters[at].node.root != node.root ||
            clusters[at].node.levels <= node.levels)
            throw std::logic_error("clusters do not cover the rank's roots");
        Chains a = visit(at, node.child(0)), b = visit(at, node.child(1));
        close(a[EXIT_LEG], b[ENTRY_LEG], true);
        Chain &hypotenuse = a[ENTRY_LEG];
        hypotenuse.insert(hypotenuse.end(), b[EXIT_LEG].begin(), b[EXIT_LEG].end());
        return {std::move(hypotenuse), std::move(a[HYPOTENUSE]), std::move(b[HYPOTENUSE])};
    }

    // Piece by piece; b from its end if it runs the other way.
    void close(Chain a, Chain b, bool reversed)
    {
        std::reverse(a.begin(), a.end()); // the next stretch is the last
        if (!reversed)
            std::reverse(b.begin(), b.end());
        while (!a.empty() && !b.empty()) {
            Stretch &s = a.back(), &t = b.back();
            std::int32_t n = std::min(s.count, t.count);
            std::int32_t t_first = reversed ? t.first + t.count - n : t.first;
            found.runs[s.cluster].push_back(
                {Run::CLUSTER, reversed, s.first, n, t.cluster, t_first});
            found.runs[t.cluster].push_back(
                {Run::CLUSTER, reversed, t_first, n, s.cluster, s.first});
            s.first += n;
            s.count -= n;
            t.count -= n;
            t.first += reversed ? 0 : n;
            if (s.count == 0)
                a.pop_back();
            if (t.count == 0)
                b.pop_back();
        }
        if (!a.empty() || !b.empty())
            throw std::logic_error("the grid is not conforming between clusters");
    }

    void close_side(int root, int side)
    {
        const Root &r = forest.roots()[root];
        const Root::Across &across = r.across[side];
        if (across.root < 0) {
            for (const Stretch &s : chains[root][side])
                found.runs[s.cluster].push_back(
                    {Run::BORDER, false, s.first, s.count, across.border, 0});
        } else if (forest.roots()[across.root].rank != rank) {
            Lattice a = side_begin(r.where, side), b = side_end(r.where, side);
            shared.push_back(
                {forest.roots()[across.root].rank, {std::min(a, b), std::max(a, b)}, root, side});
        } else if (std::pair(root, side) < std::pair(across.root, across.side)) {
            close(chains[root][side], chains[across.root][across.side], across.reversed);
        }
    }

    void place_messages()
    {
        std::sort(shared.begin(), shared.end());
        for (const Shared &of : shared) {
            if (found.neighbours.empty() || found.neighbours.back() != of.rank) {
                found.neighbours.push_back(of.rank);
                found.shared_edges.push_back(0);
            }
            const Triangle &t = forest.roots()[of.root].where;
            bool reversed = side_end(t, of.side) < side_begin(t, of.side);
            Chain chain = chains[of.root][of.side];
            if (reversed)
                std::reverse(chain.begin(), chain.end());
            auto neighbour = static_cast<std::int32_t>(found.neighbours.size() - 1);
            for (const Stretch &s : chain) {
                found.runs[s.cluster].push_back(
                    {Run::RANK, reversed, s.first, s.count, neighbour, found.shared_edges.back()});
                found.shared_edges.back() += s.count;
            }
        }
    }
};

} // namespace

Interfaces make_interfaces(const Forest &forest, int rank, const std::vector<Outline> &clusters)
{
    return Closing(forest, rank, clusters).all();
}

} // namespace swe
