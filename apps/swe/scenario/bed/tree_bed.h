// SPDX-License-Identifier: GPL-3.0-or-later
// tree_bed.h - the scenario's bed over the triangles of this rank's trees.
#ifndef SWE_SCENARIO_TREE_BED_H
#define SWE_SCENARIO_TREE_BED_H

#include <cmath>
#include <map>
#include "../../grid/bed.h"
#include "../../grid/forest.h"
#include "bed_tree.h"
#include "../scenario.h"

namespace swe {

// Tables go down to the deepest cells that there may be, and to triangles as small as the distance
// of the scenario's points, so that a coarse cell has a mean of all that are in it; but no further
// than 2^22 triangles of all ranks together: the bed must not depend on how many ranks share it.
class TreeBed final : public Bed {
public:
    TreeBed(const Forest &forest, const Scenario &scenario_, const Config &config, int rank)
        : scenario(scenario_), deepest(config.grid.max_depth - forest.root_depth())
    {
        int levels = deepest;
        while (leg(config, forest.root_depth() + levels) > scenario.spacing() &&
               scenario.spacing() > 0)
            levels++;
        auto roots = static_cast<double>(forest.roots().size());
        while (levels > 0 && std::ldexp(roots, levels) > MOST)
            levels--;
        for (int r = 0; r < static_cast<int>(forest.roots().size()); r++)
            if (forest.roots()[r].rank == rank)
                trees.emplace(r, BedTree(forest.roots()[r].where, forest.root_depth(),
                                         forest.root_depth() + levels, [&](double x, double y) {
                                             Point p = forest.point(x, y);
                                             return scenario.bed(p.x, p.y);
                                         }));
    }

    double mean(const Node &node) const override
    {
        return trees.at(node.root).mean(node.path, node.levels);
    }
    bool crosses(const Node &node, double height) const override
    {
        return trees.at(node.root).crosses(node.path, node.levels, height, deepest);
    }
    double sample(double x, double y) const override { return scenario.bed(x, y); }

private:
    static constexpr double MOST = 1 << 22;
    const Scenario &scenario;
    int deepest;                  // levels of cells
    std::map<int, BedTree> trees; // of the rank's roots

    static double leg(const Config &config, int depth)
    {
        return config.domain.square * std::sqrt(std::ldexp(1, -(depth + 1)));
    }
};

} // namespace swe
#endif
