// SPDX-License-Identifier: GPL-3.0-or-later
// config_text.cc - a configuration written down: whole, as what a checkpoint depends on, and the
// explanation of all keys.
#include <filesystem>
#include "config_keys.h"

namespace swe {
namespace {

// A simulation may be moved to another directory.
std::string last_name(const std::string &file)
{
    return std::filesystem::path(file).filename().string();
}

} // namespace

std::string describe(const Config &config)
{
    Config copy = config; // config_keys() wants to be able to write
    const std::vector<Key> keys = config_keys(copy);
    for (const Key &key : keys)
        if (const InputFile *file = std::get_if<InputFile>(&key.target))
            *file->name = absolute_name(*file->name);
    std::string text = describe(keys);
    for (const Gauge &gauge : config.gauges)
        text += "\n[[gauges]]\nname = " + toml_string(gauge.name) +
                "\nx = " + toml_number(gauge.x) + "\ny = " + toml_number(gauge.y) + '\n';
    return text;
}

std::string describe_state(const Config &config)
{
    Config copy = config;
    copy.scenario.bathymetry = last_name(config.scenario.bathymetry);
    copy.scenario.faults = last_name(config.scenario.faults);
    std::string text;
    for (const Key &key : config_keys(copy))
        if (key.state)
            text += key.name + " = " + toml_value(key.target) + '\n';
    return text;
}

std::string config_help()
{
    Config defaults;
    std::string text = help_of(config_keys(defaults));
    text += "\n[[gauges]]            as many as wanted\n"
            "name = \"harbour\"\n    letters, digits, '-' and '_'; gauge-NAME.csv is written\n"
            "x, y or lon, lat\n    a place in the domain: m, or degrees (tsunami)\n";
    return text;
}

} // namespace swe
