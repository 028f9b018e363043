// SPDX-License-Identifier: GPL-3.0-or-later
// scenarios.h - what each scenario's file gives to make_scenario().
#ifndef SWE_SCENARIO_SCENARIOS_H
#define SWE_SCENARIO_SCENARIOS_H

#include "scenario.h"

namespace swe {

std::unique_ptr<Scenario> make_dam_break(const Config &config);
std::unique_ptr<Scenario> make_lake(const Config &config);
std::unique_ptr<Scenario> make_thacker(const Config &config);
std::unique_ptr<Scenario> make_beach(const Config &config);
std::unique_ptr<Scenario> make_tsunami(const Config &config);

// Radius of a scenario in m: its key counts parts of the domain's shorter side.
inline double radius_in_metres(const Config &c)
{
    return c.scenario.radius * (c.width() < c.height() ? c.width() : c.height());
}

inline double x_in_metres(const Config &c) { return c.domain.x0 + c.scenario.x * c.width(); }
inline double y_in_metres(const Config &c) { return c.domain.y0 + c.scenario.y * c.height(); }

} // namespace swe
#endif
