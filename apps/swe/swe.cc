// SPDX-License-Identifier: GPL-3.0-or-later
// swe.cc - the program: reads a scenario, runs it, says what came out.
#include <argp.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mpi.h>
#include <optional>
#include <string>
#include <vector>
#include "config_keys.h"
#include "difference.h"
#include "output/checkpoint/checkpoint.h"
#include "../lib/output/files.h"
#include "../lib/program/program.h"
#include "output/watchers.h"
#include "scenario/gauges.h"
#include "simulation.h"

namespace {

using namespace swe;

const char *const LATEST = "latest";

struct Arguments {
    std::string file;
    std::vector<std::string> overrides;
    std::string restart; // directory of a checkpoint, or LATEST
    bool check = false, quiet = false, error = false, overwrite = false;
};

enum : int { HELP_CONFIG = 256, CHECK, RESTART, OVERWRITE, ERROR };

const argp_option options[] = {
    {"help-config", HELP_CONFIG, nullptr, 0, "Say what a scenario's file may contain, and stop", 0},
    {"check", CHECK, nullptr, 0,
     "Read the scenario and its files, write all of it to standard output, and stop", 0},
    {"restart", RESTART, "DIRECTORY", OPTION_ARG_OPTIONAL,
     "Go on from this checkpoint; without a name from the last one in output.directory", 0},
    {"overwrite", OVERWRITE, nullptr, 0,
     "Begin anew where output.directory has checkpoints of another run: these go, and other files "
     "of this name, and all gauges", 0},
    {"error", ERROR, nullptr, 0, "Say how far the result is from the scenario's exact solution", 0},
    {"quiet", 'q', nullptr, 0, "No progress line, and nothing about what was read", 0},
    {nullptr, 0, nullptr, 0, nullptr, 0}};

error_t parse_option(int key, char *value, argp_state *state)
{
    auto &arguments = *static_cast<Arguments *>(state->input);
    switch (key) {
    case HELP_CONFIG:
        std::fputs(config_help().c_str(), stdout);
        std::exit(0);
    case CHECK:
        arguments.check = true;
        return 0;
    case RESTART:
        if (value && !*value) // of a variable that is not set, perhaps; not to begin anew
            argp_error(state, "--restart=: no directory; without = it is the last checkpoint in "
                              "output.directory");
        arguments.restart = value ? value : LATEST;
        return 0;
    case OVERWRITE:
        arguments.overwrite = true;
        return 0;
    case ERROR:
        arguments.error = true;
        return 0;
    case 'q':
        arguments.quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0)
            arguments.file = value;
        else
            arguments.overrides.emplace_back(value);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no scenario: give a TOML file (examples: apps/swe/scenarios/)");
        return EINVAL;
    case ARGP_KEY_END:
        if (!arguments.restart.empty() && arguments.overwrite)
            argp_error(state, "--restart goes on and --overwrite begins anew: give one of them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const argp parser = {options,
                     parse_option,
                     "SCENARIO.toml [KEY=VALUE...]",
                     "Shallow water on an adaptive triangular grid: dam breaks and tsunamis."
                     "\vKEY=VALUE counts more than the file: grid.max_depth=12.",
                     nullptr,
                     nullptr,
                     nullptr};

std::uint64_t hashed(std::uint64_t bits)
{
    bits = (bits ^ bits >> 31) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
    return bits ^ bits >> 32;
}

// Of the quarter of a base square and the path below it: roots depend on run.cut.
template <class Real>
std::uint64_t hashed_place(const Cluster<Real> &c, std::int32_t cell, int root_depth)
{
    auto root = static_cast<std::uint64_t>(c.node.root);
    std::uint64_t part = root & ((std::uint64_t(1) << root_depth) - 1);
    std::uint64_t path = part << (c.depth[cell] - root_depth) | c.path[cell];
    return hashed(hashed((root >> root_depth) + 1) + (std::uint64_t(1) << c.depth[cell] | path));
}

// Of all cells of all ranks, in whatever order they come.
template <class Real> unsigned long long checksum(Simulation<Real> &simulation)
{
    std::uint64_t mine = 0, all;
    int root_depth = simulation.grid().forest().root_depth();
    for (const auto &c : simulation.grid().clusters())
        for (std::int32_t i = 0; i < c->cells(); i++) {
            std::uint64_t place = hashed_place(*c, i, root_depth);
            for (int f = 0; f < c->fields; f++) {
                std::uint64_t bits = 0;
                Real value = c->field(f)[i] + Real(0); // -0 is 0
                std::memcpy(&bits, &value, sizeof value);
                mine += hashed(hashed(bits) + place + static_cast<unsigned>(f));
            }
        }
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, simulation.comm());
    return all;
}

// "name number" lines.
template <class Real> void report(Simulation<Real> &simulation, double water_before, bool is_first)
{
    const Account &mine = simulation.account();
    double times[] = {mine.total, mine.adapting, mine.agreeing, mine.watching};
    double longest[4];
    std::int64_t cell_steps;
    MPI_Reduce(times, longest, 4, MPI_DOUBLE, MPI_MAX, 0, simulation.comm());
    MPI_Reduce(&mine.cell_steps, &cell_steps, 1, MPI_INT64_T, MPI_SUM, 0, simulation.comm());
    auto cells = static_cast<long long>(simulation.cells());
    double water = simulation.water();
    unsigned long long sum = checksum(simulation);
    if (!is_first)
        return;
    std::printf(
        "seconds %.6f\nadapting-seconds %.6f\nagreeing-seconds %.6f\nwriting-seconds %.6f\n",
        longest[0], longest[1], longest[2], longest[3]);
    std::printf("steps %ld\ntime %.9g\ncells %lld\ncell-steps %lld\ncell-steps-s %.6g\n",
                mine.steps, simulation.time(), cells, static_cast<long long>(cell_steps),
                static_cast<double>(cell_steps) / longest[0]);
    if (mine.euler_steps > 0)
        std::printf("euler-steps %ld\n", mine.euler_steps);
    std::printf("water-m3 %.17g\nwater-change %.3e\nchecksum %016llx\n", water,
                water_before > 0 ? (water - water_before) / water_before : 0, sum);
}

void print(const char *name, const Norms &norms)
{
    std::printf("%s-error-l1 %.6e\n%s-error-l2 %.6e\n%s-error-max %.6e\n", name, norms.l1, name,
                norms.l2, name, norms.max);
}

template <class Real> void report_error(Simulation<Real> &simulation, bool is_first)
{
    Difference from = difference_from_solution(simulation);
    if (!is_first)
        return;
    print("height", from.height);
    print("momentum", from.momentum);
}

// What was read and made, before the first step.
void say(const std::vector<std::string> &lines)
{
    for (const std::string &line : lines)
        std::fprintf(stderr, "swe: %s\n", line.c_str());
}

template <class Real> void say_begin(Simulation<Real> &simulation, bool is_first)
{
    const Config &config = simulation.config();
    std::string cells = std::to_string(simulation.cells());
    if (!is_first)
        return;
    auto lines = simulation.scenario().summary();
    const Account &done = simulation.account();
    if (done.steps > 0 && simulation.at_end())
        lines.push_back("nothing to do: the checkpoint is of step " + std::to_string(done.steps) +
                        " at " + std::to_string(simulation.time()) + " s, and the run ends with " +
                        (config.time.steps < 0 || done.steps < config.time.steps
                             ? "time.end = " + toml_number(config.time.end)
                             : "time.steps = " + std::to_string(config.time.steps)));
    lines.push_back("grid: " + cells + " cells at time " + std::to_string(simulation.time()) +
                    " s");
    if (!config.gauges.empty() && config.output.directory.empty())
        lines.push_back("gauges: not written, as output.directory is empty");
    say(lines);
}

// What is too small for any cell, mostly; there would be nothing to see.
template <class Real> void refuse_without_water(Simulation<Real> &simulation)
{
    if (!(simulation.water() <= 0))
        return;
    const Config &config = simulation.config();
    const auto &scenario = config.scenario;
    std::string advice;
    if (config.name == "dam_break")
        advice = std::string("; raise scenario.depth, now 0, or ") +
                 (scenario.planar ? "scenario.x, now " + toml_number(scenario.x)
                                  : "scenario.radius, now " + toml_number(scenario.radius));
    throw ConfigError(config.file + ": no cell has any water at time 0" + advice);
}

// A run that does not go on from output.directory would replace what another one has there; hours
// of work, perhaps, where that has checkpoints.
void refuse_checkpoints(const Config &config, const Arguments &arguments, MPI_Comm comm)
{
    const std::string &directory = config.output.directory;
    long step = -1;
    if (directory.empty())
        return;
    on_rank_0(comm, [&] { step = latest_step(directory); });
    MPI_Bcast(&step, 1, MPI_LONG, 0, comm);
    if (step >= 0)
        throw ConfigError(directory + ": has a checkpoint, of step " + std::to_string(step) +
                          (arguments.restart.empty()
                               ? ": --restart goes on from it, --overwrite begins anew"
                               : ", and " + arguments.restart +
                                     " is of another run: to go on "
                                     "from that, set output.directory to another one"));
}

// Takes the state from a checkpoint.  Does the run that wrote output.directory go on?  Then where
// its gauges were; a checkpoint of another directory is the beginning of a new one.
template <class Real>
std::optional<std::string> begin(Simulation<Real> &simulation, const std::string &from,
                                 MPI_Comm comm)
{
    const std::string &directory = simulation.config().output.directory;
    if (from.empty())
        return std::nullopt;
    if (from == LATEST && directory.empty())
        throw ConfigError(simulation.config().file +
                          ": --restart: output.directory is empty; set it, or give the checkpoint: "
                          "--restart=DIRECTORY");
    const std::string place = from == LATEST ? directory : from;
    std::string gauges = restart(simulation, place);
    int goes_on = 0;
    on_rank_0(comm, [&] { goes_on = is_checkpoint_of(place, directory); });
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, comm);
    return goes_on ? std::optional<std::string>(std::move(gauges)) : std::nullopt;
}

// A run that begins anew leaves nothing of others that could be taken for its own.  Of a run that
// goes on from an earlier checkpoint the later ones go before any file is cut to where it goes on:
// if this one came to no checkpoint of its own, the next restart would begin at one of them, and
// what is between would be in no file.
template <class Real>
void make_room(const Simulation<Real> &simulation, bool goes_on, bool overwrite, MPI_Comm comm)
{
    const std::string &directory = simulation.config().output.directory;
    on_rank_0(comm, [&] {
        if (goes_on) {
            remove_checkpoints_after(directory, simulation.step());
        } else if (overwrite && !directory.empty()) {
            const auto outputs = outputs_of(simulation.config()); // or why they cannot be read
            remove_checkpoints_after(directory, -1);
            for (const std::string &path : outputs)
                remove_file(path);
        }
    });
}

template <class Real>
void simulate(const Config &config, const Arguments &arguments, MPI_Comm comm, bool is_first)
{
    std::unique_ptr<Scenario> scenario;
    read_together(comm, [&] { scenario = make_scenario(config); });
    if (arguments.error && !scenario->has_solution())
        throw ConfigError(config.file +
                          ": --error: the exact solution of this scenario is not known");
    Simulation<Real> simulation(config, *scenario, comm);
    const auto gauges = begin(simulation, arguments.restart, comm);
    const bool goes_on = gauges.has_value();
    if (arguments.restart.empty())
        refuse_without_water(simulation);
    if (!goes_on && !arguments.overwrite)
        refuse_checkpoints(config, arguments, comm);
    check_outputs(simulation, gauges); // before anything is taken away
    if (!arguments.quiet)
        say_begin(simulation, is_first);
    make_room(simulation, goes_on, arguments.overwrite, comm);
    auto notes = add_watchers(simulation, goes_on, arguments.quiet);
    if (!arguments.quiet && is_first)
        say(notes);
    double water = simulation.water();
    simulation.run();
    report(simulation, water, is_first);
    if (arguments.error)
        report_error(simulation, is_first);
}

int run(const Arguments &arguments, bool is_first)
{
    Config config;
    read_together(MPI_COMM_WORLD,
                  [&] { config = read_config(arguments.file, arguments.overrides); });
    if (arguments.check) {
        std::unique_ptr<Scenario> scenario; // reads the files that the configuration names
        read_together(MPI_COMM_WORLD, [&] { scenario = make_scenario(config); });
        if (is_first) {
            std::fputs(describe(config).c_str(), stdout);
            if (!arguments.quiet)
                say(scenario->summary());
        }
    } else if (config.solver.precision == Precision::SINGLE) {
        simulate<float>(config, arguments, MPI_COMM_WORLD, is_first);
    } else {
        simulate<double>(config, arguments, MPI_COMM_WORLD, is_first);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments;
    argp_parse(&parser, argc, argv, 0, nullptr, &arguments);
    return run_with_mpi(&argc, &argv, "swe",
                        [&](bool is_first) { return run(arguments, is_first); });
}
