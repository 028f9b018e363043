// SPDX-License-Identifier: GPL-3.0-or-later
// scenario.h - where a simulation begins: the bed and the water as functions of the place.
#ifndef SWE_SCENARIO_SCENARIO_H
#define SWE_SCENARIO_SCENARIO_H

#include <memory>
#include <string>
#include <vector>
#include "../config.h"

namespace swe {

struct Water {
    double h, hu, hv; // m, m2/s
};

// Functions may be called by any thread at any time.
class Scenario {
public:
    virtual ~Scenario() = default;

    // Height of the bed in m at x, y in m.  A displacement by an earthquake is in it.
    virtual double bed(double x, double y) const = 0;

    // Distance of the points from which the bed is known, m; 0: it is a formula.
    virtual double spacing() const { return 0; }

    // Water at the place and time, over a bed of the given height.  Time 0 is the beginning;
    // a scenario with a known solution answers for all times, the others for 0 only.
    virtual Water water(double x, double y, double bed, double time) const = 0;
    virtual bool has_solution() const { return false; }

    // Height of the surface at rest: what displacement is measured from.
    virtual double rest() const = 0;

    // What was read from files, as lines `name = value` with check sums: another text is another
    // simulation.
    virtual std::string inputs() const { return ""; }

    // What the scenario is made of, as lines for the user that starts it.
    virtual std::vector<std::string> summary() const { return {}; }
};

// Throws ConfigError.
std::unique_ptr<Scenario> make_scenario(const Config &config);

} // namespace swe
#endif
