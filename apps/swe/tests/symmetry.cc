// SPDX-License-Identifier: GPL-3.0-or-later
// symmetry.cc - does a simulation know left from right, or north from east?  A dam in the middle of
// the domain must give the same grid and the same water in all eight symmetric places of a
// square, and dams at mirrored or turned places mirrored or turned water.  Cells are compared by
// their lattice points.  Numbers differ by rounding only: order 0 adds up a cell's legs, then its
// hypotenuse, which stay that in all places; order 1 its edges by size, then by direction, and
// directions change.
#include <functional>
#include <map>
#include <mpi.h>
#include "../simulation.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

struct Cell {
    int depth;
    double h, hu, hv;
};
using Found = std::map<Lattice, Cell>; // by the sum of the corners

// Of a square whose corner sums go from 0 to 3 * LATTICE_UNIT: what is at (x, y) comes to ...
struct Symmetry {
    const char *name;
    int xx, xy, yx, yy; // a matrix, about the middle

    Lattice operator()(Lattice p) const
    {
        constexpr std::int64_t all = 3 * LATTICE_UNIT;
        std::int64_t x = 2 * p.x - all, y = 2 * p.y - all;
        return {(xx * x + xy * y + all) / 2, (yx * x + yy * y + all) / 2};
    }
};
constexpr Symmetry MIRROR = {"mirrored in x", -1, 0, 0, 1},
                   TURN = {"turned by a quarter", 0, -1, 1, 0},
                   DIAGONAL = {"mirrored in the diagonal", 0, 1, 1, 0};

Config config_of(const std::vector<std::string> &words)
{
    std::vector<std::string> all = {"grid.min_depth=4", "grid.max_depth=10", "time.steps=80",
                                    "time.end=1000", "scenario.radius=0.17"};
    all.insert(all.end(), words.begin(), words.end());
    return parse_config("name = \"dam_break\"\n", "symmetry", all);
}

template <class Real> Found simulate_in(const Config &config)
{
    auto scenario = make_scenario(config);
    Simulation<Real> simulation(config, *scenario, MPI_COMM_WORLD);
    simulation.run();
    Found cells;
    for (const auto &c : simulation.grid().clusters())
        for (std::int32_t i = 0; i < c->cells(); i++) {
            Triangle t = simulation.grid().site(*c, i).where;
            auto means = simulation.scheme().means();
            cells[{t.entry.x + t.exit.x + t.apex.x, t.entry.y + t.exit.y + t.apex.y}] = {
                c->depth[i], static_cast<double>(c->field(means[0])[i]),
                static_cast<double>(c->field(means[1])[i]),
                static_cast<double>(c->field(means[2])[i])};
        }
    return cells;
}

Found simulate(const Config &config)
{
    return config.solver.precision == Precision::SINGLE ? simulate_in<float>(config)
                                                        : simulate_in<double>(config);
}

void compare(Check &check, const Found &a, const Found &b, const Symmetry &s, double rounding)
{
    double worst = 0, most = 0, moving = 0;
    check.that(a.size() == b.size(), "as many cells");
    for (const auto &[place, cell] : a) {
        auto found = b.find(s(place));
        if (found == b.end() || found->second.depth != cell.depth) {
            check.that(false, std::string("the same cells, ") + s.name);
            continue;
        }
        const Cell &other = found->second;
        worst = std::max({worst, std::fabs(other.h - cell.h),
                          std::fabs(other.hu - (s.xx * cell.hu + s.xy * cell.hv)),
                          std::fabs(other.hv - (s.yx * cell.hu + s.yy * cell.hv))});
        most = std::max(most, cell.h);
        moving = std::max(moving, std::fabs(cell.hu));
    }
    check.that(moving > 0.1, "the water moves: " + Check::text(moving));
    std::printf("    %s: %zu cells, largest difference %.3g\n", s.name, a.size(), worst);
    check.near(worst, 0, rounding * most, std::string("difference, ") + s.name);
}

struct Method {
    const char *name;
    double rounding; // of the depth: what it comes to in so many steps
    std::vector<std::string> words;
};
constexpr double DOUBLE = 2e-12, SINGLE = 2e-5;

// Clusters are small, so that with local_steps there are some of several steps.
const Method METHODS[] = {
    {"order 0, Rusanov", DOUBLE, {}},
    {"order 0, augmented", DOUBLE, {"solver.flux=augmented"}},
    {"order 0, SSP-RK2", DOUBLE, {"solver.stepping=ssp_rk2", "solver.cfl=0.2"}},
    {"order 0, SSP-RK2, some steps of one stage", DOUBLE, {"solver.stepping=ssp_rk2"}},
    {"order 0, local steps",
     DOUBLE,
     {"solver.local_steps=true", "grid.split=64", "grid.join=16", "time.steps=20"}},
    {"order 0, local steps, augmented",
     DOUBLE,
     {"solver.local_steps=true", "grid.split=64", "grid.join=16", "time.steps=20",
      "solver.flux=augmented"}},
    {"order 0, single", SINGLE, {"solver.precision=single"}},
    {"order 1, Rusanov", DOUBLE, {"solver.order=1", "time.steps=40"}},
    {"order 1, augmented", DOUBLE, {"solver.flux=augmented", "solver.order=1", "time.steps=40"}},
    {"order 1, single", SINGLE, {"solver.order=1", "time.steps=40", "solver.precision=single"}}};

Found simulate(const Method &method, const std::vector<std::string> &more)
{
    std::vector<std::string> words = method.words;
    words.insert(words.end(), more.begin(), more.end());
    return simulate(config_of(words));
}

void dam_in_the_middle(Check &check, const std::vector<std::string> &water)
{
    for (const Method &method : METHODS) {
        Found cells = simulate(method, water);
        std::printf("  %s\n", method.name);
        for (const Symmetry &s : {MIRROR, TURN, DIAGONAL})
            compare(check, cells, cells, s, method.rounding);
    }
}

void dam_in_the_middle_over_water(Check &check) { dam_in_the_middle(check, {}); }
void dam_in_the_middle_over_dry_ground(Check &check)
{
    dam_in_the_middle(check, {"scenario.depth=0", "scenario.inside=5"});
}

void dam_off_the_middle(Check &check)
{
    for (const Method &method : METHODS) {
        std::printf("  %s\n", method.name);
        auto dam_at = [&method](const char *x, const char *y) {
            return simulate(method,
                            {std::string("scenario.x=") + x, std::string("scenario.y=") + y});
        };
        Found cells = dam_at("0.25", "0.375");
        compare(check, cells, dam_at("0.75", "0.375"), MIRROR, method.rounding);
        compare(check, cells, dam_at("0.625", "0.25"), TURN, method.rounding);
        compare(check, cells, dam_at("0.375", "0.25"), DIAGONAL, method.rounding);
    }
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int code =
        run_promises(argc, argv,
                     {{"dam_in_the_middle_over_water", dam_in_the_middle_over_water},
                      {"dam_in_the_middle_over_dry_ground", dam_in_the_middle_over_dry_ground},
                      {"dam_off_the_middle", dam_off_the_middle}});
    MPI_Finalize();
    return code;
}
