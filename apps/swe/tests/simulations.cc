// SPDX-License-Identifier: GPL-3.0-or-later
// simulations.cc - whole simulations whose beginning or result is known.  With any number of ranks.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <mpi.h>
#include <sys/resource.h>
#include "../simulation.h"
#include "../studies/record.h"
#include "../studies/recording.h"
#include "../../lib/promises.h"
#include "temporary.h"

using namespace swe;

namespace {

// A simulation with all that it needs to live.
struct Run {
    Config config;
    std::unique_ptr<Scenario> scenario;
    Simulation<double> of;

    Run(const std::string &text, const std::vector<std::string> &words)
        : config(parse_config(text, "simulations", words)), scenario(make_scenario(config)),
          of(config, *scenario, MPI_COMM_WORLD)
    {
    }
};

double greatest(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

// How far the surface is from rest, and how much water moves.
struct Unrest {
    double surface = 0, momentum = 0; // m, m2/s
};

Unrest unrest(Simulation<double> &s, double rest, double dry)
{
    Unrest mine;
    auto [h, hu, hv, bed] = s.scheme().means();
    for (const auto &c : s.grid().clusters())
        for (std::int32_t i = 0; i < c->cells(); i++) {
            double surface = c->field(h)[i] + c->field(bed)[i] - rest;
            if (c->field(h)[i] > dry)
                mine.surface = std::max(mine.surface, std::fabs(surface));
            else // a pit without water
                mine.surface = std::max(mine.surface, -surface - dry);
            mine.momentum = std::max(mine.momentum, std::hypot(c->field(hu)[i], c->field(hv)[i]));
        }
    return {greatest(mine.surface), greatest(mine.momentum)};
}

// Where cells are coarse, islands and ponds are smaller than they are; a grid that is refined there
// later must not find the sea out of its level.
void sea_at_rest(Check &check, const std::vector<std::string> &more)
{
    Temporary place;
    std::string faults = place.path + "/none.faults";
    std::ofstream(faults) << "x_km y_km depth_km strike dip rake slip_m length_km width_km\n"
                             "0 0 20 0 12 90 0 50 40\n";
    std::vector<std::string> words = {"scenario.faults=" + faults,
                                      "domain.square=1600e3",
                                      "domain.x0=-800e3",
                                      "domain.y0=-800e3",
                                      "grid.min_depth=5",
                                      "grid.max_depth=11",
                                      "grid.refine=0.05",
                                      "grid.coarsen=0.01",
                                      "grid.shore=false",
                                      "grid.every=2",
                                      "grid.wander=true",
                                      "solver.flux=augmented",
                                      "solver.dry_tolerance=1e-3",
                                      "time.end=1e6",
                                      "time.steps=120"};
    words.insert(words.end(), more.begin(), more.end());
    Run run("name = \"tsunami\"\n", words);
    Unrest begin = unrest(run.of, 0, run.config.solver.dry_tolerance);
    double water = run.of.water();
    run.of.run();
    Unrest end = unrest(run.of, 0, run.config.solver.dry_tolerance);
    check.near(begin.surface, 0, 1e-12, "surface at the beginning");
    check.near(end.surface, 0, 1e-12, "surface");
    check.near(end.momentum, 0, 1e-6, "momentum");
    check.near(run.of.water() / water, 1, 1e-12, "water");
}

void sea_order_0(Check &check) { sea_at_rest(check, {}); }
void sea_order_1(Check &check) { sea_at_rest(check, {"solver.order=1"}); }

// A dam of 10 m radius in cells of 177 m: in none of their middles.
void small_source(Check &check)
{
    Run run("name = \"dam_break\"\n",
            {"grid.min_depth=4", "grid.max_depth=14", "scenario.radius=0.01", "scenario.x=0.29",
             "scenario.y=0.36", "scenario.depth=1", "scenario.inside=2"});
    int deepest = 0;
    for (const auto &c : run.of.grid().clusters())
        deepest = std::max<int>(deepest, *std::max_element(c->depth.begin(), c->depth.end()));
    check.near(greatest(deepest), 14, 0, "depth of the finest cells");
    check.near(run.of.water() - 1e6, 2 * 3.14159265 * 100, 40, "water behind the dam");
}

// The highest place that gets wet.
class RunUp final : public Simulation<double>::Watcher {
public:
    explicit RunUp(double &to_) : to(to_) {}
    void look(Simulation<double> &s) override
    {
        auto means = s.scheme().means();
        for (const auto &c : s.grid().clusters()) {
            const double *h = c->field(means[0]), *bed = c->field(means[3]);
            for (std::int32_t i = 0; i < c->cells(); i++)
                if (h[i] > 1e-3)
                    to = std::max(to, h[i] + bed[i]);
        }
    }

private:
    double &to;
};

// Synolakis 1987, 3.7 and his figure 13: H/d = 0.0185 on 1 : 19.85, without breaking.
void run_up(Check &check)
{
    Run run("name = \"beach\"\n",
            {"domain.square=0.5", "domain.nx=128", "domain.west=open", "grid.min_depth=1",
             "grid.max_depth=4", "grid.refine=5e-4", "grid.coarsen=1e-4", "solver.flux=augmented",
             "solver.dry_tolerance=1e-4", "time.end=22", "scenario.depth=1",
             "scenario.amplitude=0.0185", "scenario.slope=0.05037783", "scenario.x=0.45"});
    double mine = 0;
    run.of.add(std::make_unique<RunUp>(mine));
    run.of.run();
    double expected = 2.831 * std::sqrt(19.85) * std::pow(0.0185, 1.25), found = greatest(mine);
    std::printf("    run-up %.4f, expected %.4f\n", found, expected);
    check.near(found / expected, 1, 0.12, "run-up over that of the theory");
}

class EachChange final : public Simulation<double>::Watcher {
public:
    EachChange(Check &check_, int every_) : check(check_), every(every_) {}
    void look(Simulation<double> &s) override
    {
        const Account &now = s.account();
        check.that(now.shortest_steps / every == now.adaptions,
                   std::to_string(now.shortest_steps) + " of the shortest steps and " +
                       std::to_string(now.adaptions) + " changes");
        if (now.steps > 0 && !s.at_end()) // the last one is cut short
            longest = std::max(longest, now.shortest_steps - before);
        before = now.shortest_steps;
    }
    ~EachChange() override { check.that(longest > 1, "rounds of more than one"); }

private:
    Check &check;
    long every, before = 0, longest = 0;
};

// Also when rounds are of different lengths.
void grid_changes_in_time(Check &check)
{
    for (int every : {3, 12, 13}) {
        Run run("name = \"dam_break\"\n",
                {"grid.min_depth=4", "grid.max_depth=11", "grid.split=64", "grid.join=16",
                 "solver.local_steps=true", "time.end=12", "grid.every=" + std::to_string(every)});
        run.of.add(std::make_unique<EachChange>(check, every));
        run.of.run();
    }
}

class Aborting final : public Simulation<double>::Watcher {
    void look(Simulation<double> &s) override
    {
        if (s.step() == 3)
            throw std::runtime_error("aborted");
    }
};

// A dam break, recorded; what ends it, and the record.
struct Recorded {
    std::string file, error, text;

    Recorded(bool aborts, rlim_t room)
    {
        Temporary place;
        file = recording_file(place.path + "/record", rank_of(MPI_COMM_WORLD));
        rlimit before{}, limit{};
        getrlimit(RLIMIT_FSIZE, &before);
        limit = {room, before.rlim_max};
        auto handler = std::signal(SIGXFSZ, SIG_IGN);
        try {
            Run run("name = \"dam_break\"\n",
                    {"grid.min_depth=5", "grid.max_depth=7", "grid.every=100", "time.steps=5"});
            add_record(run.of, place.path + "/record");
            if (aborts)
                run.of.add(std::make_unique<Aborting>());
            setrlimit(RLIMIT_FSIZE, &limit);
            run.of.run();
        } catch (const std::runtime_error &e) {
            error = e.what();
        }
        setrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, handler);
        std::ifstream in(file);
        text.assign(std::istreambuf_iterator<char>(in), {});
    }

    bool has_end() const { return text.find(RECORDING_END) != text.npos; }

private:
    static int rank_of(MPI_Comm comm)
    {
        int rank;
        MPI_Comm_rank(comm, &rank);
        return rank;
    }
};

void record_ends_with_the_run(Check &check)
{
    Recorded whole(false, RLIM_INFINITY), aborted(true, RLIM_INFINITY);
    check.that(whole.error.empty() && whole.has_end(), "a whole run has a whole record");
    check.contains(aborted.error, "aborted");
    check.that(!aborted.has_end() && aborted.text.size() < whole.text.size(),
               "the record of an aborted run has no end");
}

// Room for what is written before the end.
void record_that_cannot_be_ended(Check &check)
{
    const Recorded aborted(true, RLIM_INFINITY), full(false, aborted.text.size() + 5);
    check.contains(full.error, "run.record: cannot write ");
    check.contains(full.error, "File too large");
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int code =
        run_promises(argc, argv,
                     {{"sea_with_a_coast_stays_at_rest", sea_order_0},
                      {"sea_with_a_coast_stays_at_rest_with_order_1", sea_order_1},
                      {"small_source_is_not_missed", small_source},
                      {"solitary_wave_runs_up_as_high_as_it_should", run_up},
                      {"grid_changes_after_so_many_of_the_shortest_steps", grid_changes_in_time},
                      {"record_ends_with_the_run", record_ends_with_the_run},
                      {"record_that_cannot_be_ended_is_told", record_that_cannot_be_ended}});
    MPI_Finalize();
    return code;
}
