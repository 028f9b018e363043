// SPDX-License-Identifier: GPL-3.0-or-later
// config.cc - reads a configuration (lib/config/reader.h), by the table of its keys.
#include "config.h"

#include <iterator>
#include "../lib/config/reader.h"
#include "element/element.h"
#include "mesh/place.h"

namespace euler {
namespace {

using namespace apps;

constexpr double ANY = 1e9, MOST_BASE_CELLS = 1 << 24;
constexpr bool STATE = true, FREE = false; // does the result depend on it?

void domain_and_grid_keys(std::vector<Key> &k, Config &c)
{
    auto &d = c.domain;
    k.push_back({"domain.dimensions", &d.dimensions, 2, MOST_DIMENSIONS, STATE, "of space"});
    k.push_back({"domain.side", &d.side, 1e-6, ANY, STATE, "length of the cube's sides"});
    k.push_back({"domain.border", choice(d.border, {"periodic", "wall"}), 0, 0, STATE,
                 "opposite sides are the same, or all are walls"});
    auto &g = c.grid;
    k.push_back({"grid.min_level", &g.min_level, 0, DEEPEST, STATE,
                 "so often the cube is cut into three along each axis, everywhere"});
    k.push_back({"grid.max_level", &g.max_level, 0, DEEPEST, STATE, "and so often at most"});
    k.push_back({"grid.refine", &g.refine, 0, ANY, STATE,
                 "difference of an unknown within a cell above which it is cut"});
    k.push_back({"grid.coarsen", &g.coarsen, 0, ANY, STATE,
                 "difference below which cells are joined, if all of one parent have less"});
    k.push_back({"grid.wander", &g.wander, 0, 1, STATE,
                 "a sphere goes round the domain, so far a step, in sides, and the grid is fine "
                 "at its surface, not where the gas varies; 0: none"});
}

void solver_keys(std::vector<Key> &k, Config &c)
{
    k.push_back({"solver.order", &c.solver.order, LOWEST_ORDER, HIGHEST_ORDER, STATE,
                 "of the polynomials in a cell"});
    k.push_back({"solver.cfl", &c.solver.cfl, 1e-3, 1, STATE,
                 "time step, of the longest one that is stable for the order"});
    k.push_back({"time.end", &c.time.end, 0, ANY, FREE, "when the run ends"});
    k.push_back(
        {"time.steps", &c.time.steps, -1, 1e15, FREE, "time steps at most; -1: any number"});
}

void run_keys(std::vector<Key> &k, Config &c)
{
    auto &r = c.run;
    k.push_back({"run.variant",
                 choice(r.variant, {"none", "subgrids", "skeleton-first", "arithmetic-aware"}), 0,
                 0, FREE,
                 "loops over all cells; loops over those of one level, and one after the other "
                 "those between levels; enclave cells as tasks behind the skeleton; only their "
                 "predictors as tasks"});
    k.push_back(
        {"run.announce", &r.announce, 0, 0, FREE, "tell the resource manager the number of cells"});
    auto &e = c.emulate;
    k.push_back({"emulate.predictor_us", &e.predictor_us, 0, ANY, FREE,
                 "sleep so long for each cell instead of computing; 0: compute"});
    k.push_back({"emulate.corrector_us", &e.corrector_us, 0, ANY, FREE,
                 "and so long for its faces and corrector"});
    k.push_back({"emulate.cpus", &e.cpus, 0, 4096, FREE, "of the emulated machine"});
    k.push_back({"emulate.machine", &e.machine, 0, 0, FREE,
                 "file of zeros that its programs share; empty: a CPU is always free"});
    k.push_back({"emulate.look_us", &e.look_us, 0, ANY, FREE,
                 "sleep so long between looks for messages; 0: wait in MPI"});
}

void output_and_scenario_keys(std::vector<Key> &k, Config &c)
{
    auto &o = c.output;
    k.push_back({"output.directory", &o.directory, 0, 0, FREE,
                 "for files, relative to the working directory; empty: none is written"});
    k.push_back({"output.vtu_every", &o.vtu_every, 0, ANY, FREE,
                 "time between files for ParaView; 0: none"});
    k.push_back({"output.progress", &o.progress, 0, 0, FREE, "a line about time and speed"});
    auto &s = c.scenario;
    k.push_back({"scenario.density", &s.density, 1e-6, ANY, STATE, "of the gas far away"});
    k.push_back({"scenario.pressure", &s.pressure, 1e-6, ANY, STATE, "of the gas far away"});
    k.push_back({"scenario.velocity", &s.velocity, -ANY, ANY, STATE, "along each axis"});
    k.push_back({"scenario.amplitude", &s.amplitude, 0, 100, STATE,
                 "wave, pulse: of the density, in parts of it; vortex: its strength"});
    k.push_back({"scenario.radius", &s.radius, 1e-6, 10, STATE, "pulse, vortex: in sides"});
    k.push_back({"scenario.x", &s.x, 0, 1, STATE, "centre, along each axis, in sides"});
}

std::vector<Key> config_keys(Config &config)
{
    std::vector<Key> keys;
    keys.push_back({"name", choice(config.name, {std::begin(NAMES), std::end(NAMES)}), 0, 0, STATE,
                    "of the scenario"});
    domain_and_grid_keys(keys, config);
    solver_keys(keys, config);
    run_keys(keys, config);
    output_and_scenario_keys(keys, config);
    return keys;
}

class Reader : public KeyReader {
public:
    Reader(Config &config, const std::string &name)
        : KeyReader(config_keys(config), name), config_(config)
    {
    }

protected:
    void check() override
    {
        if (!good())
            return; // it would be about defaults
        const auto &g = config_.grid;
        double cells = 1;
        for (int i = 0; i < config_.domain.dimensions * g.min_level; i++)
            cells *= 3;
        if (g.max_level < g.min_level)
            error_at("grid.max_level", "must be at least grid.min_level, which is " +
                                           std::to_string(g.min_level));
        if (cells > MOST_BASE_CELLS)
            error_at("grid.min_level", "more than " +
                                           std::to_string(static_cast<long>(MOST_BASE_CELLS)) +
                                           " cells; each rank knows all of them");
        if (g.coarsen > g.refine)
            error_at("grid.coarsen", "must be at most grid.refine, which is " +
                                         toml_number(g.refine));
        if (config_.is_emulated() && g.wander <= 0)
            error_at("emulate.predictor_us",
                     "nothing is computed, so the grid must not depend on "
                     "the gas; set grid.wander");
        if (config_.is_emulated() && config_.time.steps < 0)
            error_at("emulate.predictor_us", "set time.steps, too");
        if (config_.is_emulated() && config_.output.vtu_every > 0)
            error_at("output.vtu_every", "there is no gas where emulate.predictor_us is set");
        if (!config_.emulate.machine.empty() && config_.emulate.cpus < 1)
            error_at("emulate.machine", "set emulate.cpus, too");
    }

private:
    Config &config_;
};

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

std::string describe(const Config &config)
{
    Config copy = config; // keys want to be able to write
    return apps::describe(config_keys(copy));
}

std::string config_help()
{
    Config defaults;
    return help_of(config_keys(defaults));
}

} // namespace euler
