// SPDX-License-Identifier: GPL-3.0-or-later
// bed.h - the bed as the grid asks for it: means over triangles of the tree.
#ifndef SWE_GRID_BED_H
#define SWE_GRID_BED_H

#include "cluster.h"

namespace swe {

// Any thread may ask at any time.
class Bed {
public:
    virtual ~Bed() = default;

    // Mean height in m over the triangle: the mean of its two children's means, on each call of
    // any thread, so that refining and coarsening give water and bed back as they were.
    virtual double mean(const Node &node) const = 0;

    // Are there triangles below this one, of the finest that are known, on both sides of the
    // height?
    virtual bool crosses(const Node &node, double height) const = 0;

    // At a point, in m.
    virtual double sample(double x, double y) const = 0;
};

} // namespace swe
#endif
