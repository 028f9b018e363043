// SPDX-License-Identifier: GPL-3.0-or-later
// config_text.cc - a configuration written down: whole, as what a checkpoint depends on, and the
// explanation of all keys; and the words of others in messages about it.
#include <filesystem>
#include <system_error>
#include "config_keys.h"

namespace swe {
namespace {

std::string last_part(const std::string &key) { return key.substr(key.find('.') + 1); }

// A simulation may be moved to another directory.
std::string last_name(const std::string &file)
{
    return std::filesystem::path(file).filename().string();
}

// As it is where there is no working directory any more.
std::string absolute_name(const std::string &file)
{
    std::error_code none;
    const auto path = std::filesystem::weakly_canonical(file, none); // ".." may be behind a link
    return file.empty() || none ? file : path.string();
}

} // namespace

std::string printable(std::string_view text, std::size_t longest)
{
    std::string shown(text.substr(0, longest));
    for (char &c : shown)
        if (static_cast<unsigned char>(c) < 32 || c == 127)
            c = '?';
    return text.size() > longest ? shown + "..." : shown;
}

std::string describe(const Config &config)
{
    Config copy = config; // config_keys() wants to be able to write
    std::string text, table;
    for (const Key &key : config_keys(copy)) {
        if (const InputFile *file = std::get_if<InputFile>(&key.target))
            *file->name = absolute_name(*file->name);
        if (table_of(key.name) != table)
            text += "\n[" + (table = table_of(key.name)) + "]\n";
        text += last_part(key.name) + " = " + toml_value(key.target) + '\n';
    }
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
    std::string text, table;
    for (const Key &key : config_keys(defaults)) {
        if (table_of(key.name) != table)
            text += "\n[" + (table = table_of(key.name)) + "]\n";
        text += last_part(key.name) + " = " + toml_value(key.target) + '\n';
        text += "    " + key.range() + ": " + key.meaning + '\n';
    }
    text += "\n[[gauges]]            as many as wanted\n"
            "name = \"harbour\"\n    letters, digits, '-' and '_'; gauge-NAME.csv is written\n"
            "x, y or lon, lat\n    a place in the domain: m, or degrees (tsunami)\n";
    return text;
}

} // namespace swe
