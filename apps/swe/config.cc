// SPDX-License-Identifier: GPL-3.0-or-later
// config.cc - reads a configuration: every key by the table of config_keys.h
// (lib/config/reader.h), then gauges and what keys must be to each other.
#include "config.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include "../lib/config/reader.h"
#include "config_keys.h"
#include "grid/triangle.h"
#include "scenario/projection.h"

namespace swe {
namespace {

constexpr std::size_t MOST_GAUGES = 500;
constexpr const char *GAUGE_PLACES[4] = {"x", "y", "lon", "lat"};
constexpr double MOST_CELLS = INT_MAX; // of the coarsest grid

class Reader : public KeyReader {
public:
    Reader(Config &config, const std::string &file)
        : KeyReader(config_keys(config), file), config_(config)
    {
    }

protected:
    void check() override;
    bool other(const std::string &name, const toml::node &node, const std::string &place) override;

private:
    Config &config_;
    struct Degrees {
        std::size_t gauge;
        std::string place;
        double lon, lat;
    };
    struct NoNumber {
        std::size_t name; // of GAUGE_PLACES
        std::string place, shown;
    };
    std::vector<Degrees> degrees_; // gauges whose x, y are not known before the domain is
    std::vector<std::string> gauge_places_;
    std::vector<NoNumber> no_numbers_;

    void gauges(const toml::node &node, const std::string &place);
    void gauge(const toml::table &table, const std::string &place);

    void set_defaults();
    void check_solver();
    void check_numbers();
    void check_sizes();
    void check_files();
    void check_outputs();
    void check_scenario();
    void check_places(bool is_domain_known);
    void check_gauges();
};

bool good_gauge_name(const std::string &name)
{
    auto good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    };
    return !name.empty() && name.size() <= LONGEST_NAME &&
           std::all_of(name.begin(), name.end(), good);
}

bool Reader::other(const std::string &name, const toml::node &node, const std::string &place)
{
    if (name == "gauges")
        gauges(node, place);
    return name == "gauges";
}

void Reader::gauges(const toml::node &node, const std::string &place)
{
    const toml::array *list = node.as_array();
    if (!list || !list->is_homogeneous<toml::table>()) {
        if (!list || !list->empty())
            error(place, "gauges: must be tables: [[gauges]] with name, x and y");
        return;
    }
    if (list->size() > MOST_GAUGES) {
        error(place, "gauges: at most " + std::to_string(MOST_GAUGES));
        return;
    }
    for (const toml::node &one : *list)
        gauge(*one.as_table(), line(one.source()));
}

void Reader::gauge(const toml::table &table, const std::string &place)
{
    Gauge gauge;
    double number[4] = {}; // x, y, lon, lat
    bool given[4] = {};
    for (auto &&[key, node] : table) {
        std::string at = line(key.source());
        std::size_t i = 0;
        while (i < 4 && key.str() != GAUGE_PLACES[i])
            i++;
        if (i < 4) {
            number[i] = node.is_number() ? node.value<double>().value_or(NAN) : NAN;
            given[i] = true;
            if (!std::isfinite(number[i]))
                no_numbers_.push_back({i, at, shown(node)});
        } else if (key.str() == "name") {
            gauge.name = node.value<std::string>().value_or("");
            if (!good_gauge_name(gauge.name))
                error(at, "gauges.name = " + shown(node) + ": must be a string of up to " +
                              std::to_string(LONGEST_NAME) + " letters, digits, '-' and '_'");
        } else {
            error(at, "gauges." + printable(key.str()) +
                          ": no such key; there are name, x, y, lon, lat");
        }
    }
    bool metres = given[0] && given[1] && !given[2] && !given[3];
    bool degrees = given[2] && given[3] && !given[0] && !given[1];
    if (!table.contains("name") || metres == degrees) {
        error(place, "gauges: each must have a name, and x and y or lon and lat");
        return;
    }
    if (!std::all_of(number, number + 4, [](double n) { return std::isfinite(n); }))
        return; // told when the domain is known
    if (degrees)
        degrees_.push_back({config_.gauges.size(), place, number[2], number[3]});
    else
        gauge.x = number[0], gauge.y = number[1];
    config_.gauges.push_back(gauge);
    gauge_places_.push_back(place);
}

// Those that depend on what was given.
void Reader::set_defaults()
{
    if (config_.solver.order == 1 && !is_given("solver.stepping"))
        config_.solver.stepping = Stepping::SSP_RK2;
}

void Reader::check_solver()
{
    const Config &c = config_;
    if (c.solver.order == 1 && c.solver.stepping == Stepping::EULER)
        error_at("solver.stepping", "solver.order = 1 is unstable with it, at any cfl: set "
                                    "\"ssp_rk2\", or leave it out");
    if (c.solver.local_steps && (c.solver.order != 0 || c.solver.stepping != Stepping::EULER))
        error_at("solver.local_steps",
                 "only with solver.order = 0 and solver.stepping = \"euler\"");
    if (c.solver.local_steps && !c.run.record.empty())
        error_at("run.record", "not with solver.local_steps");
}

void Reader::check_numbers()
{
    const Config &c = config_;
    if (c.grid.min_depth > c.grid.max_depth)
        error_at("grid.min_depth",
                 "must be at most grid.max_depth, " + std::to_string(c.grid.max_depth));
    if (!(c.grid.coarsen <= c.grid.refine))
        error_at("grid.coarsen", "must be at most grid.refine, " + toml_number(c.grid.refine));
    if (c.grid.join > c.grid.split / 2)
        error_at("grid.join",
                 "must be at most half of grid.split, " + std::to_string(c.grid.split));
    if (c.run.cut > c.grid.min_depth)
        error_at("run.cut", "must be at most grid.min_depth, " + std::to_string(c.grid.min_depth));
    if (c.run.blocking && !c.run.announce)
        error_at("run.blocking", "needs run.announce");
    if (c.run.progress != Progression::NONE && c.run.enclaves == Enclaves::OFF)
        error_at("run.progress", "needs run.enclaves = \"on\"");
    if (c.run.progress == Progression::TRIGGER && c.run.parallel != Parallel::TASKS)
        error_at("run.progress", "needs run.parallel = \"tasks\"");
    if (c.output.directory.empty())
        for (const char *key : {"vtu_every", "raster_every", "maxima_every", "checkpoint_every"})
            if (const Key *k = find(std::string("output.") + key);
                **std::get_if<double *>(&k->target) > 0)
                error_at(k->name, "needs output.directory");
}

void Reader::check_sizes()
{
    const Config &c = config_;
    const double quarters = 4. * c.domain.nx * c.domain.ny;
    const double cells = std::ldexp(quarters, c.grid.min_depth);
    const double parts = std::ldexp(quarters, c.run.cut);
    const auto check = [&](const char *key, double count, double most, const char *what) {
        if (count > most)
            error_at(key, "makes " + toml_number(count) + what + " of " + toml_number(quarters) +
                              " quarters of base squares; at most " + toml_number(most));
    };
    check("grid.min_depth", cells, MOST_CELLS, " cells at least");
    check("run.cut", parts, MOST_PARTS, " parts");
    const double given = std::accumulate(c.run.parts.begin(), c.run.parts.end(), 0.);
    if (!c.run.parts.empty() && given != parts)
        error_at("run.parts", "are " + toml_number(given) + " parts; there are " +
                                  toml_number(parts) + ", " + toml_number(quarters) +
                                  " quarters of base squares times 2^run.cut, " +
                                  std::to_string(c.run.cut));
}

void Reader::check_files()
{
    for (const Key &key : keys()) {
        const InputFile *file = std::get_if<InputFile>(&key.target);
        if (!file || file->name->empty())
            continue;
        std::error_code problem;
        auto status = std::filesystem::status(*file->name, problem);
        if (config_.name != "tsunami")
            error_at(key.name,
                     "only for the scenario \"tsunami\", and this is \"" + config_.name + '"');
        else if (!std::filesystem::exists(status))
            error_at(key.name, "no such file");
        else if (!std::filesystem::is_regular_file(status))
            error_at(key.name, "not a file");
        else if (!std::ifstream(*file->name).is_open())
            error_at(key.name, std::string("cannot be read: ") + std::strerror(errno));
    }
}

// What the run replaces in output.directory.
std::vector<std::filesystem::path> outputs_of(const Config &c)
{
    const std::filesystem::path directory = c.output.directory;
    std::vector<std::filesystem::path> outputs;
    if (directory.empty())
        return outputs;
    if (c.output.vtu_every > 0)
        outputs.push_back(directory / (c.name + ".pvd"));
    if (c.output.raster_every > 0)
        outputs.push_back(directory / (c.name + ".nc"));
    if (c.output.maxima_every > 0)
        outputs.push_back(directory / (c.name + "-maxima.nc"));
    for (const Gauge &gauge : c.gauges)
        outputs.push_back(directory / ("gauge-" + gauge.name + ".csv"));
    return outputs;
}

// Is the file PREFIX.RANK of run.record, for some rank?
bool is_record(const std::filesystem::path &file, const std::string &prefix)
{
    std::error_code none;
    const std::string rank = std::filesystem::weakly_canonical(file, none).extension().string();
    return !prefix.empty() && rank.size() > 1 &&
           rank.find_first_not_of("0123456789", 1) == rank.npos &&
           std::filesystem::equivalent(prefix + rank, file, none);
}

// An output must not take the place of an input.
void Reader::check_outputs()
{
    const auto outputs = outputs_of(config_);
    const auto replaced_by = [&](const std::string &file) -> std::string {
        std::error_code none;
        for (const auto &output : outputs)
            if (std::filesystem::equivalent(output, file, none))
                return "output.directory";
        return is_record(file, config_.run.record) ? "run.record" : "";
    };
    if (const std::string by = replaced_by(file()); !by.empty())
        error_at(by, "a file of it would take the place of this one, " + file());
    for (const Key &key : keys())
        if (auto *input = std::get_if<InputFile>(&key.target); input && !input->name->empty())
            if (const std::string by = replaced_by(*input->name); !by.empty())
                error_at(key.name, by + " would have a file of the same name");
}

void Reader::check_scenario()
{
    const Config &c = config_;
    const auto &s = c.scenario;
    if (c.name.empty())
        error(file(), "name: missing; must be " + find("name")->range());
    if (c.name == "thacker" && !(s.amplitude < 1))
        error_at("scenario.amplitude", "must be less than 1 for \"thacker\"");
    if (c.name != "dam_break" && c.name != "tsunami" && s.depth <= 0)
        error_at("scenario.depth", "must be more than 0 for \"" + c.name + '"');
    if (c.name == "dam_break" && s.depth + s.inside <= 0)
        error_at("scenario.inside", "no water: depth and inside are 0");
    if (c.name == "beach" && s.amplitude <= 0)
        error_at("scenario.amplitude", "must be more than 0 for \"beach\"");
    // Every place must have a meridian and a latitude.
    Projection globe(c);
    if (c.name == "tsunami" && (std::abs(globe.lat(c.domain.y0) - globe.lat0) > 30 ||
                                std::abs(globe.lon(c.domain.x0) - globe.lon0) > 60))
        error_at("domain.square", "a domain of " + toml_number(c.width() / 1000) + " km by " +
                                      toml_number(c.height() / 1000) +
                                      " km is too large for the map: at most 120 degrees by 60");
    else if (double south = globe.lat(c.domain.y0), north = globe.lat(c.domain.y0 + c.height());
             c.name == "tsunami" && (south < -89 || north > 89))
        error_at("scenario.lat0", "the domain would be from " + toml_number(south) + " to " +
                                      toml_number(north) + " degrees north; the map has -89 to 89");
}

// x, y, lon or lat of gauges that are no numbers; which ones the domain has, if that is known.
void Reader::check_places(bool is_domain_known)
{
    const auto &d = config_.domain;
    const Projection globe(config_);
    const double east = d.x0 + config_.width(), north = d.y0 + config_.height();
    const std::pair<double, double> ranges[4] = {{d.x0, east},
                                                 {d.y0, north},
                                                 {globe.lon(d.x0), globe.lon(east)},
                                                 {globe.lat(d.y0), globe.lat(north)}};
    for (const NoNumber &n : no_numbers_) {
        const auto [low, high] = ranges[n.name];
        error(n.place, std::string("gauges.") + GAUGE_PLACES[n.name] + " = " + n.shown +
                           ": must be a number" +
                           (is_domain_known ? " in [" + toml_number(low) + ", " +
                                                  toml_number(high) + "), which the domain has"
                                            : ""));
    }
}

void Reader::check_gauges()
{
    Config &c = config_;
    Projection globe(c);
    double east = c.domain.x0 + c.width(), north = c.domain.y0 + c.height();
    std::vector<std::string> where(c.gauges.size()); // as it was said, and the domain in the same
    auto range = [](double low, double high) {
        return '[' + toml_number(low) + ", " + toml_number(high) + ')';
    };
    for (std::size_t i = 0; i < c.gauges.size(); i++)
        where[i] = "x = " + toml_number(c.gauges[i].x) + ", y = " + toml_number(c.gauges[i].y) +
                   " is not in the domain, " + range(c.domain.x0, east) + " x " +
                   range(c.domain.y0, north);
    for (const Degrees &d : degrees_) {
        if (c.name != "tsunami")
            error(d.place, "gauges: lon and lat are for the scenario \"tsunami\"; use x and y");
        c.gauges[d.gauge].x = globe.x(d.lon);
        c.gauges[d.gauge].y = globe.y(d.lat);
        where[d.gauge] = "lon = " + toml_number(d.lon) + ", lat = " + toml_number(d.lat) +
                         " is not in the domain, " +
                         range(globe.lon(c.domain.x0), globe.lon(east)) + " x " +
                         range(globe.lat(c.domain.y0), globe.lat(north));
    }
    std::map<std::string, std::string> seen;
    for (std::size_t i = 0; i < c.gauges.size(); i++) {
        const Gauge &g = c.gauges[i];
        if (!(g.x >= c.domain.x0 && g.x < east && g.y >= c.domain.y0 && g.y < north))
            error(gauge_places_[i], "gauge " + printable(g.name) + ": " + where[i]);
        auto first = seen.emplace(g.name, gauge_places_[i]);
        if (!first.second)
            error(gauge_places_[i],
                  "gauge " + printable(g.name) + ": the name is taken, at " + first.first->second);
    }
}

void Reader::check()
{
    if (good()) { // else these would be about defaults
        set_defaults();
        check_solver();
        check_numbers();
        check_sizes();
        check_scenario();
        check_files();
        check_outputs();
        check_gauges();
        check_places(true);
    } else {
        check_places(false);
    }
}

} // namespace

Config parse_config(std::string_view text, const std::string &file,
                    const std::vector<std::string> &overrides)
{
    Config config;
    config.file = file;
    Reader reader(config, file);
    reader.read(text, overrides);
    return config;
}

Config read_config(const std::string &file, const std::vector<std::string> &overrides)
{
    return parse_config(text_of_config(file), file, overrides);
}

} // namespace swe
