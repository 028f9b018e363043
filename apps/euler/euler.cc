// SPDX-License-Identifier: GPL-3.0-or-later
// euler.cc - the program: reads a scenario, runs it, says what came out.
#include <argp.h>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>
#include "../lib/config/keys.h"
#include "../lib/output/progress.h"
#include "../lib/program/program.h"
#include "config.h"
#include "element/sleeping.h"
#include "output/frames.h"
#include "scenario/scenario.h"
#include "simulation.h"
#include "totals.h"

namespace {

using namespace euler;
using namespace apps;

struct Arguments {
    std::string file;
    std::vector<std::string> overrides;
    bool check = false, quiet = false, error = false;
};

enum : int { HELP_CONFIG = 256, CHECK, ERROR };

const argp_option options[] = {
    {"help-config", HELP_CONFIG, nullptr, 0, "Say what a scenario's file may contain, and stop", 0},
    {"check", CHECK, nullptr, 0,
     "Read the scenario, write all of it to standard output, and stop", 0},
    {"error", ERROR, nullptr, 0, "Say how far the result is from the scenario's exact solution", 0},
    {"quiet", 'q', nullptr, 0, "No progress line, and nothing about the grid", 0},
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
        argp_error(state, "no scenario: give a TOML file (examples: apps/euler/scenarios/)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const argp parser = {options,
                     parse_option,
                     "SCENARIO.toml [KEY=VALUE...]",
                     "Gas flows (compressible Euler equations) by ADER-DG on an adaptive grid."
                     "\vKEY=VALUE counts more than the file: grid.max_level=4.",
                     nullptr,
                     nullptr,
                     nullptr};

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

// "name number" lines.
template <int D> void report(const Simulation<D> &simulation, const Unknowns &before)
{
    const Account &a = simulation.account();
    double times[] = {a.total, a.waiting, a.meshing, a.watching}, longest[4];
    double sums[] = {static_cast<double>(a.cell_steps), static_cast<double>(a.skeleton_steps),
                     a.kernels.predictor_s, static_cast<double>(a.kernels.predictors),
                     a.kernels.corrector_s, static_cast<double>(a.kernels.correctors)};
    double all[6];
    MPI_Reduce(times, longest, 4, MPI_DOUBLE, MPI_MAX, 0, simulation.comm());
    MPI_Reduce(sums, all, 6, MPI_DOUBLE, MPI_SUM, 0, simulation.comm());
    const Unknowns after = totals(simulation);
    const std::uint64_t sum = checksum(simulation);
    if (simulation.rank() != 0)
        return;
    std::printf(
        "seconds %.6f\nwaiting-seconds %.6f\nmeshing-seconds %.6f\nwriting-seconds %.6f\n",
        longest[0], longest[1], longest[2], longest[3]);
    std::printf("predictor-us %.3f\ncorrector-us %.3f\n", share(1e6 * all[2], all[3]),
                share(1e6 * all[4], all[5]));
    std::printf("steps %ld\ntime %.9g\ncells %d\ngrid-changes %ld\ncell-steps %.0f\n"
                "cell-steps-s %.6g\nskeleton-share %.4f\n",
                a.steps, simulation.time(), simulation.leaves(), a.changes, all[0],
                all[0] / longest[0], share(all[1], all[0]));
    if (!simulation.config().is_emulated())
        std::printf("mass %.17g\nmass-change %.3e\nenergy %.17g\nenergy-change %.3e\n", after[0],
                    (after[0] - before[0]) / before[0], after[D + 1],
                    (after[D + 1] - before[D + 1]) / before[D + 1]);
    std::printf("checksum %016" PRIx64 "\n", sum);
}

template <int D> void report_error(const Simulation<D> &simulation)
{
    const Errors e = errors(simulation);
    if (simulation.rank() == 0)
        std::printf("density-error-l1 %.6e\ndensity-error-l2 %.6e\ndensity-error-max %.6e\n", e.l1,
                    e.l2, e.max);
}

template <int D> void simulate(const Config &config, const Arguments &arguments)
{
    std::unique_ptr<Element> element = make_element(D, config.solver.order);
    if (config.is_emulated())
        element = make_sleeping(config, element->sizes());
    Simulation<D> simulation(config, *element, MPI_COMM_WORLD);
    const bool is_first = simulation.rank() == 0;
    if (!arguments.quiet && is_first)
        std::fprintf(stderr, "euler: grid: %d cells\n", simulation.leaves());
    Progress progress(is_first && !arguments.quiet && config.output.progress, config.time.end,
                      config.time.steps);
    simulation.add([&](Simulation<D> &s) {
        progress.step(s.account().steps, s.time(), s.last_step(), s.leaves());
    });
    Frames<D> frames(config, NAMES[static_cast<int>(config.name)]);
    if (!config.output.directory.empty() && config.output.vtu_every > 0)
        simulation.add([&](Simulation<D> &s) { frames.look(s); });
    const Unknowns before = totals(simulation);
    simulation.run();
    progress.finish();
    report(simulation, before);
    if (arguments.error)
        report_error(simulation);
}

int run(const Arguments &arguments, bool is_first)
{
    Config config;
    read_together(MPI_COMM_WORLD,
                  [&] { config = read_config(arguments.file, arguments.overrides); });
    if (arguments.error && (!has_solution(config) || config.is_emulated()))
        throw ConfigError(config.file +
                          ": --error: the exact solution of this scenario is not known");
    if (arguments.check) {
        if (is_first)
            std::fputs(describe(config).c_str(), stdout);
    } else if (config.domain.dimensions == 2) {
        simulate<2>(config, arguments);
    } else {
        simulate<3>(config, arguments);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments;
    argp_parse(&parser, argc, argv, 0, nullptr, &arguments);
    return run_with_mpi(&argc, &argv, "euler",
                        [&](bool is_first) { return run(arguments, is_first); });
}
