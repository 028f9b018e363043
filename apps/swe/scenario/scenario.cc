// SPDX-License-Identifier: GPL-3.0-or-later
// scenario.cc - the scenario of a name.
#include "scenarios.h"

namespace swe {

std::unique_ptr<Scenario> make_scenario(const Config &config)
{
    if (config.name == "dam_break")
        return make_dam_break(config);
    if (config.name == "lake")
        return make_lake(config);
    if (config.name == "thacker")
        return make_thacker(config);
    if (config.name == "beach")
        return make_beach(config);
    if (config.name == "tsunami")
        return make_tsunami(config);
    throw ConfigError(config.file + ": name = \"" + config.name + "\": no such scenario");
}

} // namespace swe
