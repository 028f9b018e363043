// SPDX-License-Identifier: GPL-3.0-or-later
// basin.h - a made-up ocean for tsunamis where no bathymetry is given: from west to east a
// coast with bays and hills, a shelf, a slope, a trench and a plain.  Sizes are as off the
// north-east of Japan, and do not depend on the domain's; the trench passes 65 km east of its
// centre, 20 degrees east of north, where synthetic_faults() has its fault.
#ifndef SWE_SCENARIO_BASIN_H
#define SWE_SCENARIO_BASIN_H

#include "../config.h"
#include "noise.h"

namespace swe {

class Basin {
public:
    explicit Basin(const Config &config)
        : x0_(config.domain.x0 + config.width() / 2), y0_(config.domain.y0 + config.height() / 2)
    {
    }

    // Height of the bed in m; land is positive.
    double at(double x, double y) const;

private:
    double x0_, y0_; // the domain's centre
    Noise noise_{11};
};

} // namespace swe
#endif
