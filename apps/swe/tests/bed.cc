// SPDX-License-Identifier: GPL-3.0-or-later
// bed.cc - are the means of the bed (bed_tree.h) means, and consistent from parent to children
// at all depths; and does exactly one triangle contain each point (triangle.h)?
#include "../scenario/bed/tree_bed.h"
#include "../scenario/noise.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

const Triangle SOUTH = {{0, 0}, {LATTICE_UNIT, 0}, {LATTICE_UNIT / 2, LATTICE_UNIT / 2}};
constexpr double UNIT = 1.0 / LATTICE_UNIT;

double hills(double x, double y) { return 100 * Noise(3).rough(9 * x * UNIT, 9 * y * UNIT, 5); }

std::uint64_t random_path(std::uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 12;
}

void consistent(Check &check)
{
    BedTree tree(SOUTH, 0, 12, hills);
    std::uint64_t state = 1;
    for (int levels = 0; levels < 40; levels++)
        for (int k = 0; k < 50; k++) {
            std::uint64_t path = random_path(state) & ((std::uint64_t{1} << levels) - 1);
            double first = tree.mean(2 * path, levels + 1),
                   second = tree.mean(2 * path + 1, levels + 1);
            double mean = tree.mean(path, levels);
            check.near((first + second) / 2, mean, 4e-14 * (1 + std::fabs(mean)) + 2e-14 * 100,
                       "children's mean, level " + std::to_string(levels));
        }
}

// What a polynomial's mean over a triangle is: the middles of its sides give it to degree 2.
void polynomials(Check &check)
{
    auto bed = [](double x, double y) {
        x *= UNIT, y *= UNIT;
        return 3 + 2 * x - 5 * y + 4 * x * x - x * y + 7 * y * y;
    };
    BedTree tree(SOUTH, 0, 6, bed);
    std::uint64_t state = 5;
    for (int levels : {0, 1, 3, 6}) {
        std::uint64_t path = random_path(state) & ((std::uint64_t{1} << levels) - 1);
        Triangle t = tree.triangle(path, levels);
        double expected = 0;
        for (int side = 0; side < SIDES; side++) {
            Lattice a = side_begin(t, side), b = side_end(t, side);
            expected += bed(double(a.x + b.x) / 2, double(a.y + b.y) / 2) / 3;
        }
        check.near(tree.mean(path, levels), expected, 1e-13, "mean of a parabola");
    }
    auto plane = [](double x, double y) { return 3 + 2 * x * UNIT - 5 * y * UNIT; };
    BedTree flat(SOUTH, 0, 4, plane);
    for (int levels : {2, 4, 9, 21}) {
        std::uint64_t path = random_path(state) & ((std::uint64_t{1} << levels) - 1);
        Triangle t = flat.triangle(path, levels);
        double x = double(t.entry.x + t.exit.x + t.apex.x) / 3;
        double y = double(t.entry.y + t.exit.y + t.apex.y) / 3;
        check.near(flat.mean(path, levels), plane(x, y), 1e-13, "mean of a plane at any level");
    }
}

// Each bit of a path takes the child that Triangle has.
void paths(Check &check)
{
    BedTree tree(SOUTH, 3, 8, hills);
    Triangle t = SOUTH.second().first().first().second();
    Triangle u = tree.triangle(9, 4);
    check.that(t.entry == u.entry && t.exit == u.exit && t.apex == u.apex,
               "1001 is 2nd 1st 1st 2nd");
    // High bits that are no part of it do not matter.
    check.that(tree.mean(9 | 0xff0, 4) == tree.mean(9, 4), "higher bits are ignored");
}

// A larger table has other means, but not by much where the bed is smooth.
void table_depth(Check &check)
{
    auto smooth = [](double x, double y) { return 100 * Noise(3)(9 * x * UNIT, 9 * y * UNIT); };
    BedTree small(SOUTH, 0, 10, smooth), large(SOUTH, 0, 16, smooth);
    BedTree again(SOUTH, 0, 10, smooth);
    double worst = 0;
    for (std::uint64_t path = 0; path < 4096; path++) {
        worst = std::fmax(worst, std::fabs(small.mean(path, 12) - large.mean(path, 12)));
        check.that(small.mean(path, 12) == again.mean(path, 12), "the same when built again");
    }
    check.that(worst < 2,
               "tables of 10 and 16 levels differ by " + Check::text(worst) + " of 100 m");
}

// A bed that is known by points closer than the smallest cells.
class Survey final : public Scenario {
public:
    explicit Survey(double spacing) : spacing_(spacing) {}
    double bed(double x, double y) const override { return 100 * Noise(3)(x * 64, y * 64); }
    double spacing() const override { return spacing_; }
    Water water(double, double, double, double) const override { return {0, 0, 0}; }
    double rest() const override { return 0; }

private:
    double spacing_;
};

void all_points_count(Check &check)
{
    Config config = parse_config("name = \"lake\"\n", "bed",
                                 {"domain.square=1", "grid.min_depth=2", "grid.max_depth=4"});
    Forest forest(config, 1);
    auto worst = [&](double spacing) {
        Survey survey(spacing), exact(1. / 1024);
        TreeBed bed(forest, survey, config, 0), expected(forest, exact, config, 0);
        double most = 0;
        for (int root = 0; root < 4; root++)
            for (unsigned path = 0; path < 16; path++)
                most = std::fmax(
                    most, std::fabs(bed.mean({root, path, 4}) - expected.mean({root, path, 4})));
        return most;
    };
    check.that(worst(0) > 20, "three points of a cell are no mean: " + Check::text(worst(0)));
    check.that(worst(1. / 128) < 1, "all points are: " + Check::text(worst(1. / 128)));
}

// Only triangles that may be cells count for what crosses a height.
void crossing(Check &check)
{
    BedTree tree(SOUTH, 0, 12, hills);
    auto is_under = [&](std::uint64_t path) { return tree.mean(path, 6) < 0; };
    for (std::uint64_t path = 0; path < 16; path++) {
        bool crosses = false;
        for (std::uint64_t part = 4 * path; part < 4 * path + 4; part++)
            crosses = crosses || is_under(part) != is_under(4 * path);
        check.that(tree.crosses(path, 4, 0, 6) == crosses, "two levels below");
        check.that(!tree.crosses(path, 4, 0, 4), "the cell itself does not cross");
        check.that(!crosses || tree.crosses(path, 4, 0, 12), "nor fewer further down");
    }
}

// All triangles of a square, conforming or not, at random depths.
void leaves(const Triangle &t, int depth, std::uint64_t &state, std::vector<Triangle> &found)
{
    if (depth == 0 || random_path(state) % 8 == 0) {
        found.push_back(t);
        return;
    }
    leaves(t.first(), depth - 1, state, found);
    leaves(t.second(), depth - 1, state, found);
}

std::vector<Triangle> square(std::uint64_t &state)
{
    const std::int64_t u = LATTICE_UNIT;
    Lattice sw{0, 0}, se{u, 0}, ne{u, u}, nw{0, u}, middle{u / 2, u / 2};
    std::vector<Triangle> found;
    for (Triangle t : {Triangle{sw, se, middle}, Triangle{se, ne, middle}, Triangle{ne, nw, middle},
                       Triangle{nw, sw, middle}})
        leaves(t, 9, state, found);
    return found;
}

void one_owner(Check &check)
{
    std::uint64_t state = 77;
    std::vector<Triangle> grid = square(state);
    auto owners = [&grid](Lattice p) {
        int n = 0;
        for (const Triangle &t : grid)
            n += contains(t, p);
        return n;
    };
    auto inside = [](Lattice p) { return p.x < LATTICE_UNIT && p.y < LATTICE_UNIT; };
    for (int k = 0; k < 300; k++) {
        Lattice p{static_cast<std::int64_t>(random_path(state) % LATTICE_UNIT),
                  static_cast<std::int64_t>(random_path(state) % LATTICE_UNIT)};
        check.that(owners(p) == 1, "one owner of a point");
        const Triangle &t = grid[random_path(state) % grid.size()];
        for (int side = 0; side < SIDES; side++) {
            Lattice corner = opposite(t, side);
            Lattice half = middle(side_begin(t, side), side_end(t, side));
            check.that(owners(corner) == (inside(corner) ? 1 : 0), "one owner of a corner");
            check.that(owners(half) == (inside(half) ? 1 : 0), "one owner of an edge's middle");
        }
    }
    check.that(owners({0, 0}) == 1, "the south-west corner is of the domain");
    check.that(owners({-1, 5}) == 0 && owners({5, LATTICE_UNIT}) == 0,
               "nobody owns points outside");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"mean_of_children_is_the_parents", consistent},
                         {"means_of_polynomials_are_exact", polynomials},
                         {"paths_are_those_of_triangle", paths},
                         {"table_depth_matters_little", table_depth},
                         {"all_points_of_a_survey_count", all_points_count},
                         {"crossing_is_that_of_cells", crossing},
                         {"one_triangle_owns_each_point", one_owner}});
}
