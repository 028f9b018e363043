// SPDX-License-Identifier: GPL-3.0-or-later
// mesh.cc - promises of the curve, of trees that change, and of the parts that ranks have.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include "../../lib/promises.h"
#include "../mesh/mesh.h"

using namespace apps;
using namespace euler;

namespace {

template <int D> int distance(const Place<D> &a, const Place<D> &b)
{
    int sum = 0;
    for (int axis = 0; axis < D; axis++)
        sum += std::abs(a.x[axis] - b.x[axis]);
    return sum;
}

template <int D> void check_curve(Check &check, int level)
{
    const Tree<D> tree({level, level, true});
    check.near(tree.size(), static_cast<double>(power_of_3(D * level)), 0, "leaves");
    for (int i = 1; i < tree.size(); i++) {
        check.that(distance(tree.leaves()[i - 1], tree.leaves()[i]) == 1, "a step of the curve");
        check.that(peano(tree.leaves()[i - 1]) < peano(tree.leaves()[i]), "an order");
    }
}

void the_curve_goes_through_faces(Check &check)
{
    check_curve<2>(check, 4);
    check_curve<3>(check, 3);
}

// Marks as they may come from any gas.
template <int D> std::vector<Mark> any_marks(const Tree<D> &tree, std::mt19937 &random)
{
    std::vector<Mark> marks;
    std::vector<int> chance;
    for (int i = 0; i < tree.size(); i++) {
        if (i % 40 == 0) // so that siblings agree now and then
            chance = {static_cast<int>(random() % 2), static_cast<int>(random() % 30)};
        marks.push_back(chance[0]                                 ? Mark::COARSEN
                        : static_cast<int>(random() % 30) < chance[1] ? Mark::REFINE
                                                                  : Mark::KEEP);
    }
    return marks;
}

template <int D> void check_tree(Check &check, const Tree<D> &tree)
{
    double volume = 0;
    int found[Tree<D>::SUB_FACES], back[Tree<D>::SUB_FACES];
    for (int i = 0; i < tree.size(); i++) {
        const Place<D> &place = tree.leaves()[i];
        volume += 1 / static_cast<double>(power_of_3(D * place.level));
        check.that(place.level >= tree.limits().min_level &&
                       place.level <= tree.limits().max_level, "a level within the limits");
        for (int face = 0; face < 2 * D; face++) {
            const int count = tree.neighbours(i, face, found);
            for (int n = 0; n < count; n++) {
                check.that(found[n] >= 0, "a neighbour within a level");
                if (found[n] < 0)
                    return;
                const int many = tree.neighbours(found[n], face ^ 1, back);
                check.that(std::count(back, back + many, i) == 1, "a neighbour's neighbour");
            }
        }
    }
    check.near(volume, 1, 1e-12, "volume of all leaves");
}

template <int D> void check_parts(Check &check, const Tree<D> &before, const Change<D> &changed)
{
    int old_end = 0, new_end = 0;
    for (const Part &part : changed.parts) {
        check.that(part.before == old_end && part.after == new_end, "parts follow each other");
        check.that(peano(before.leaves()[part.before]) == peano(changed.tree.leaves()[part.after]),
                   "a part is one place");
        old_end += part.before_count;
        new_end += part.after_count;
    }
    check.that(old_end == before.size() && new_end == changed.tree.size(), "parts are all leaves");
}

template <int D> void check_changes(Check &check, bool periodic)
{
    std::mt19937 random(D + periodic);
    Tree<D> tree({1, D == 2 ? 5 : 3, periodic});
    long refined = 0, joined = 0;
    for (int round = 0; round < 40; round++) {
        Change<D> changed = change(tree, any_marks(tree, random));
        check_parts(check, tree, changed);
        check_tree(check, changed.tree);
        for (const Part &part : changed.parts) {
            refined += part.after_count > 1;
            joined += part.before_count > 1;
        }
        tree = std::move(changed.tree);
    }
    check.that(refined > 20 && joined > 20, "leaves were cut and joined");
}

void trees_that_change_are_balanced_and_whole(Check &check)
{
    for (bool periodic : {false, true}) {
        check_changes<2>(check, periodic);
        check_changes<3>(check, periodic);
    }
}

void marks_that_change_nothing_give_the_same_tree(Check &check)
{
    const Tree<2> tree({2, 2, true});
    const auto changed = change(tree, std::vector<Mark>(tree.size(), Mark::REFINE));
    check.that(!changed.is_any && changed.tree.size() == tree.size(), "at the deepest level");
    const auto joined = change(tree, std::vector<Mark>(tree.size(), Mark::COARSEN));
    check.that(!joined.is_any, "at the least level");
}

// What one rank sends is what the other one expects, in its order; places, not numbers, compared.
template <int D> void check_messages(Check &check, const Tree<D> &tree, int ranks)
{
    const Cut cut = cut_evenly(tree, ranks);
    std::vector<Mesh<D>> meshes;
    for (int rank = 0; rank < ranks; rank++)
        meshes.emplace_back(tree, cut, rank);
    int cells = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const Mesh<D> &mesh = meshes[rank];
        check.that(mesh.first() == cells, "ranks have all leaves");
        cells += mesh.size();
        std::set<std::pair<int, int>> needed; // leaf and face, by what is behind own faces
        int found[Tree<D>::SUB_FACES];
        for (int i = 0; i < mesh.size(); i++)
            for (int face = 0; face < 2 * D; face++)
                for (int n = 0, count = tree.neighbours(mesh.first() + i, face, found); n < count;
                     n++)
                    if (found[n] < mesh.first() || found[n] >= mesh.first() + mesh.size())
                        needed.emplace(found[n], face ^ 1);
        std::vector<std::pair<int, int>> coming;
        for (const Peer &peer : mesh.peers())
            for (const Peer &other : meshes[peer.rank].peers())
                if (other.rank == rank) {
                    check.that(static_cast<int>(other.send.size()) == peer.ghosts, "as many");
                    for (const Source &s : other.send)
                        coming.emplace_back(meshes[peer.rank].first() + s.cell, s.face);
                }
        check.that(std::vector<std::pair<int, int>>(needed.begin(), needed.end()) == coming,
                   "ghosts in the order of the messages");
    }
    check.that(cells == tree.size(), "ranks have all leaves");
}

template <int D> Tree<D> any_tree(unsigned seed)
{
    std::mt19937 random(seed);
    Tree<D> tree({1, 4, seed % 2 == 0});
    for (int round = 0; round < 6; round++)
        tree = std::move(change(tree, any_marks(tree, random)).tree);
    return tree;
}

void ranks_send_what_their_peers_expect(Check &check)
{
    for (int ranks : {1, 2, 3, 7, 40})
        for (unsigned seed : {1u, 2u}) {
            check_messages(check, any_tree<2>(seed), ranks);
            if (ranks < 40)
                check_messages(check, any_tree<3>(seed), ranks);
        }
}

void cells_between_levels_are_the_same_for_any_ranks(Check &check)
{
    const Tree<2> tree = any_tree<2>(4);
    const Mesh<2> whole(tree, cut_evenly(tree, 1), 0);
    for (int rank = 0; rank < 3; rank++) {
        const Mesh<2> mesh(tree, cut_evenly(tree, 3), rank);
        for (int i = 0; i < mesh.size(); i++)
            check.that(mesh.is_at_transition(i) == whole.is_at_transition(mesh.first() + i),
                       "a cell's neighbours");
    }
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(
        argc, argv,
        {{"the_curve_goes_through_faces", the_curve_goes_through_faces},
         {"trees_that_change_are_balanced_and_whole", trees_that_change_are_balanced_and_whole},
         {"marks_that_change_nothing_give_the_same_tree",
          marks_that_change_nothing_give_the_same_tree},
         {"ranks_send_what_their_peers_expect", ranks_send_what_their_peers_expect},
         {"cells_between_levels_are_the_same_for_any_ranks",
          cells_between_levels_are_the_same_for_any_ranks}});
}
