// SPDX-License-Identifier: GPL-3.0-or-later
// steps.cc - the time loop with water that is hard to step: films that hang over deep water, and
// water that is no number.  With any number of ranks, started by mpiexec.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <mpi.h>
#include "../../lib/output/failure.h"
#include "../scenario/noise.h"
#include "../simulation.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

// Water over a bed of steps, from functions of the place.
class Made final : public Scenario {
public:
    std::function<double(double, double)> height = [](double, double) { return 0; };
    std::function<Water(double, double)> of = [](double, double) { return Water{1, 0, 0}; };

    double bed(double x, double y) const override { return height(x, y); }
    Water water(double x, double y, double, double) const override { return of(x, y); }
    double rest() const override { return 0; }
};

using Words = std::vector<std::string>;

Words operator+(Words words, const Words &more)
{
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

const Words SQUARE = {"domain.square=100", "grid.min_depth=6", "grid.max_depth=9",
                      "grid.refine=0.2",   "grid.coarsen=0.1", "run.cut=1"};

const Words METHODS[] = {{"solver.flux=rusanov"},
                         {"solver.flux=augmented"},
                         {"solver.stepping=ssp_rk2"},
                         {"solver.local_steps=true", "grid.split=32", "grid.join=8"},
                         {"solver.order=1"}};

// What is thrown, or nothing.
template <class Real> std::string refusal(const Made &made, const Words &words)
{
    Config config = parse_config("name = \"lake\"\n", "steps", SQUARE + words);
    try {
        Simulation<Real>(config, made, MPI_COMM_WORLD).run();
    } catch (const CommonError &error) {
        return error.what();
    }
    return "";
}

// The place that it names is less than `most` m from here.
void names_place(Check &check, const std::string &told, double x, double y, double most)
{
    double there_x = NAN, there_y = NAN;
    std::size_t at = std::min(told.find("x = "), told.size());
    std::sscanf(told.c_str() + at, "x = %lf, y = %lf", &there_x, &there_y);
    check.that(std::hypot(there_x - x, there_y - y) < most,
               '"' + told + "\" names a place " +
                   Check::text(std::hypot(there_x - x, there_y - y)) + " m away");
}

void water_that_is_no_number_stops_all_ranks(Check &check)
{
    const Water wrong[] = {{NAN, 0, 0}, {1, NAN, 0}, {1, 0, INFINITY}, {INFINITY, 0, 0}};
    for (const Words &method : METHODS)
        for (const Water &there : wrong) {
            Made made;
            made.of = [&](double x, double y) {
                return std::hypot(x - 70, y - 20) < 10 ? there : Water{1, 0, 0};
            };
            std::string told = refusal<double>(made, method + Words{"time.steps=2"});
            check.contains(told, "after step 0, at 0 s, the water near x = ");
            names_place(check, told, 70, 20, 15);
            check.contains(told, "solver.cfl");
            told = refusal<float>(made, method + Words{"time.steps=2", "solver.precision=single"});
            check.contains(told, "solver.cfl");
        }
}

// Numbers that are finite, but not after a step with them.
void water_that_gets_no_number_stops_all_ranks(Check &check)
{
    for (const Words &method : METHODS) {
        Made made;
        made.of = [&](double x, double y) {
            return Water{std::hypot(x - 70, y - 20) < 10 ? 1e25 : 1, 0, 0};
        };
        std::string told =
            refusal<float>(made, method + Words{"solver.precision=single", "time.steps=1"});
        check.contains(told, "after step 1");
        check.contains(told, "solver.cfl");
        names_place(check, told, 70, 20, 20);
    }
}

// The others move, and the further away, the faster: up to `most`.
void cell_that_stops_a_run_is_the_one_that_is_named(Check &check)
{
    const double x0 = 68.75, y0 = 25; // middle of a hypotenuse
    const auto told = [=](double radius, Water there, double most, const char *order) {
        Made made;
        made.of = [=](double x, double y) {
            double from = std::hypot(x - x0, y - y0);
            return from < radius ? there : Water{1, most * std::min(from / 20, 1.0), 0};
        };
        return refusal<float>(
            made, Words{"solver.precision=single", "grid.max_depth=6", "time.steps=2", order});
    };
    // Squares of momenta in corners are too large for the numbers, and of no cell's mean.
    names_place(check, told(1, {1, 2.5e19, 0}, 1.2e19, "solver.order=1"), x0, y0, 3);
    names_place(check, told(3, {1e38, 0, 0}, 1, "solver.order=0"), x0, y0, 3);
}

// Terraces of random heights, most of them with a film, beside a deep basin.
Made terraces(unsigned seed, double film)
{
    Made made;
    auto random = [seed](double x, double y, unsigned what) { // of a place of 5 m x 5 m
        return 0.5 + 0.5 * Noise(3 * seed + what).at(std::int64_t(x / 5), std::int64_t(y / 5));
    };
    made.height = [random](double x, double y) { return x > 50 ? -10 : 4 * random(x, y, 0); };
    made.of = [random, film](double x, double y) {
        return Water{x > 50 ? 11 : random(x, y, 1) > 0.2 ? film * random(x, y, 2) : 0, 0, 0};
    };
    return made;
}

// How much the water of the terraces changes, relatively, in so many steps.
double change(const Words &words, unsigned seed, double film, std::int64_t *work = nullptr)
{
    Made made = terraces(seed, film);
    Config config = parse_config("name = \"lake\"\n", "steps", SQUARE + words);
    Simulation<double> simulation(config, made, MPI_COMM_WORLD);
    double before = simulation.water();
    simulation.run();
    if (work)
        *work = simulation.account().cell_steps;
    return std::fabs(simulation.water() / before - 1);
}

void no_water_is_made(Check &check, const Words &words)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        for (double film : {1e-4, 1e-2, 1.0})
            for (const char *flux : {"rusanov", "augmented"}) {
                double made = change(words + Words{"solver.flux=" + std::string(flux)}, seed, film);
                check.that(made < 1e-13, std::string(flux) + ", film " + Check::text(film) +
                                             ": change of the water " + Check::text(made));
            }
}

void local_steps_make_no_water(Check &check)
{
    no_water_is_made(check, {"solver.local_steps=true", "grid.every=32", "grid.split=32",
                             "grid.join=8", "time.steps=30", "time.end=100"});
}

void steps_of_two_stages_make_no_water(Check &check)
{
    no_water_is_made(check, {"solver.stepping=ssp_rk2", "time.steps=60", "time.end=100"});
}

void longest_steps_make_no_water(Check &check)
{
    no_water_is_made(check, {"solver.cfl=0.5", "time.steps=100", "time.end=100"});
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int code = run_promises(
        argc, argv,
        {{"water_that_is_no_number_stops_all_ranks", water_that_is_no_number_stops_all_ranks},
         {"water_that_gets_no_number_stops_all_ranks", water_that_gets_no_number_stops_all_ranks},
         {"cell_that_stops_a_run_is_the_one_that_is_named",
          cell_that_stops_a_run_is_the_one_that_is_named},
         {"local_steps_make_no_water", local_steps_make_no_water},
         {"steps_of_two_stages_make_no_water", steps_of_two_stages_make_no_water},
         {"longest_steps_make_no_water", longest_steps_make_no_water}});
    MPI_Finalize();
    return code;
}
