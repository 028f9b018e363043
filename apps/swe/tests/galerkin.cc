// SPDX-License-Identifier: GPL-3.0-or-later
// galerkin.cc - checks what solver/galerkin/galerkin.h promises, on small grids of its own
// (galerkin_mesh.h).
#include <random>
#include "galerkin_mesh.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

constexpr double PI = 3.14159265358979323846, G = 9.81;

// A bed that is rough from cell to cell, between -1 and 1.
double rough(double x, double y)
{
    const double bumps = std::sin(0.37 * x) * std::cos(0.23 * y) + std::sin(0.11 * x * y);
    const double noise = std::sin(1e4 * std::sin(12.9898 * x + 78.233 * y));
    return 0.35 * bumps + 0.3 * noise;
}

template <class Real> bool is_finite(const Mesh<Real> &mesh)
{
    bool good = true;
    mesh.each([&](const typename Mesh<Real>::Cluster &k, int c) {
        for (int v = 0; v < EVOLVED; v++)
            good = good && std::isfinite(k.patch.dof[v][c]);
    });
    return good;
}

double least_depth(const Mesh<double> &mesh)
{
    double least = 1e30;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        least = std::min(least, k.patch.dof[DEPTH][c]);
    });
    return least;
}

// --- rest

void rest_over(Check &check, double base, double roughness, Flux flux, const char *what)
{
    Mesh<double> mesh(uneven_grid(5, 4), 100, Border::WALL, 3);
    const double level = 0.25;
    mesh.flux = flux;
    mesh.initialise([&](double x, double y) { return base + roughness * rough(x, y); },
                    [&](double, double, double bed) {
                        return Water{std::max(0.0, level - bed), 0, 0};
                    });
    const double mass = mesh.total(DEPTH);
    double step = mesh.stable_step();
    for (int i = 0; i < 100; i++)
        step = mesh.runge_kutta(0.45 * step);
    double surface = 0, momentum = 0;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        const auto &dof = k.patch.dof;
        if (dof[DEPTH][c] > 1e-6)
            surface = std::max(surface, std::fabs(dof[DEPTH][c] + dof[BED][c] - level));
        momentum = std::max(momentum, std::hypot(dof[HU][c], dof[HV][c]));
    });
    std::printf("%s\n", what);
    check.at_most(surface, 1e-12, "surface off its level, m");
    check.at_most(momentum, 1e-11, "momentum, m2/s");
    check.at_most(std::fabs(mesh.total(DEPTH) / mass - 1), 1e-14, "mass, relative");
}

void lake_at_rest(Check &check)
{
    rest_over(check, -10, 4, Flux::RUSANOV, "under water");
    rest_over(check, 0, 4, Flux::RUSANOV, "with dry islands");
}

void lake_at_rest_augmented(Check &check)
{
    rest_over(check, -10, 4, Flux::AUGMENTED, "under water");
    rest_over(check, 0, 4, Flux::AUGMENTED, "with dry islands");
}

// --- water is kept and is never negative

void storm(Check &check, Flux flux, double bed_scale, double depth, double speed)
{
    Mesh<double> mesh(uneven_grid(4, 4), 100, Border::WALL, 3);
    mesh.flux = flux;
    mesh.initialise([&](double x, double y) { return bed_scale * rough(x, y); },
                    [&](double x, double y, double bed) {
                        const double h = std::max(0.0, depth * rough(y + 5, x) - 0.2 * bed);
                        return Water{h, speed * h * rough(x, y + 3), speed * h * rough(x + 3, y)};
                    });
    const double mass = mesh.total(DEPTH);
    double step = mesh.stable_step(), least = 0;
    for (int i = 0; i < 300; i++) {
        step = mesh.runge_kutta(0.45 * step);
        least = std::min(least, least_depth(mesh));
    }
    std::printf("bed of %g m, water of %g m at %g m/s\n", bed_scale, depth, speed);
    check.that(is_finite(mesh), "finite");
    check.at_most(-least, 0, "negative water, m");
    check.at_most(std::fabs(mesh.total(DEPTH) / mass - 1), 1e-13, "mass, relative");
}

void storms(Check &check, Flux flux)
{
    for (double bed : {1.0, 10.0, 70.0})
        for (double depth : {0.2, 9.0})
            for (double speed : {0.3, 10.0})
                storm(check, flux, bed, depth, speed);
}

void mass_in_storm(Check &check) { storms(check, Flux::RUSANOV); }
void mass_in_storm_augmented(Check &check) { storms(check, Flux::AUGMENTED); }

// --- order

// A vortex that is carried along; an exact solution (balance of pressure and rotation, with
// h' = v^2 / (g r), v = strength r (1 + cos(w r)) within r < pi / w).
struct Vortex {
    double strength = 8, w = 4 * PI / 1.0, carry_x = 0.6, carry_y = 0.4;

    static double primitive(double z)
    {
        return 0.75 * z * z + 2 * z * std::sin(z) + 2 * std::cos(z) + 0.25 * z * std::sin(2 * z) +
               0.125 * std::cos(2 * z);
    }
    Water operator()(double x, double y, double time) const
    {
        x -= carry_x * time, y -= carry_y * time;
        x -= std::floor(x + 0.5), y -= std::floor(y + 0.5);
        const double z = w * std::hypot(x, y);
        double h = 1, u = carry_x, v = carry_y;
        if (z < PI) {
            h += strength * strength / (G * w * w) * (primitive(z) - primitive(PI));
            u -= strength * (1 + std::cos(z)) * y, v += strength * (1 + std::cos(z)) * x;
        }
        return {h, h * u, h * v};
    }
};

double vortex_error(int depth, double curvature)
{
    const Vortex vortex;
    const double end = 0.1;
    Mesh<double> mesh(even_grid(depth), 1, Border::PERIODIC, 1);
    mesh.options.curvature = curvature;
    mesh.initialise([](double, double) { return 0.0; },
                    [&](double x, double y, double) { return vortex(x, y, 0); });
    mesh.run(end, 0.45);
    double sum = 0;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) { // rule of the edges' middles
        const Triangle &t = k.leaves[c].triangle;
        double xc, yc;
        mesh.centroid(k, c, xc, yc);
        for (int side = 0; side < SIDES; side++) {
            const Lattice a = side_begin(t, side), b = side_end(t, side);
            const double x = (mesh.place(a.x) + mesh.place(b.x)) / 2;
            const double y = (mesh.place(a.y) + mesh.place(b.y)) / 2;
            const auto &q = k.patch.dof;
            const Water exact = vortex(x, y, end);
            const double h = q[DEPTH][c] + q[SURFACE_X][c] * (x - xc) + q[SURFACE_Y][c] * (y - yc);
            const double hu = q[HU][c] + q[HU_X][c] * (x - xc) + q[HU_Y][c] * (y - yc);
            const double hv = q[HV][c] + q[HV_X][c] * (x - xc) + q[HV_Y][c] * (y - yc);
            sum += mesh.area(k, c) / 3 *
                   (std::pow(h - exact.h, 2) + std::pow(hu - exact.hu, 2) +
                    std::pow(hv - exact.hv, 2));
        }
    });
    return std::sqrt(sum);
}

void second_order(Check &check)
{
    const double coarse = vortex_error(7, 10), middle = vortex_error(9, 10);
    const double fine = vortex_error(11, 10);
    std::printf("errors in L2: %.3e %.3e %.3e\n", coarse, middle, fine);
    const double order = std::log2(middle / fine);
    check.at_most(fine, 1.75e-3, "error on the finest grid");
    check.that(order >= 1.8, "order in L2: " + Check::text(order));
}

// Means of surface and momenta after waves went over a smooth bed with a current.
std::vector<double> over_hills(int depth)
{
    Mesh<double> mesh(even_grid(depth), 1, Border::PERIODIC, 1);
    mesh.options.curvature = 10;
    mesh.initialise(
        [](double x, double y) { return 0.2 * std::sin(2 * PI * x) * std::cos(2 * PI * y) - 1; },
        [](double x, double y, double bed) {
            const double h = 0.1 * std::cos(2 * PI * (x + y)) - bed;
            return Water{h, 0.5 * h, 0.3 * h * std::sin(2 * PI * x)};
        });
    mesh.run(0.1, 0.45);
    std::vector<double> values;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        const auto &q = k.patch.dof;
        values.insert(values.end(), {q[DEPTH][c] + q[BED][c], q[HU][c], q[HV][c]});
    });
    return values;
}

// Distance of the means on a grid to those on the grid that is bisected twice.
double distance(const std::vector<double> &coarse, const std::vector<double> &fine)
{
    double sum = 0;
    for (std::size_t i = 0; i < coarse.size(); i++) {
        double mean = 0;
        for (std::size_t child = 0; child < 4; child++)
            mean += fine[12 * (i / 3) + 3 * child + i % 3] / 4;
        sum += std::pow(coarse[i] - mean, 2);
    }
    return std::sqrt(sum / coarse.size());
}

void second_order_over_a_bed(Check &check)
{
    const std::vector<double> grid[3] = {over_hills(7), over_hills(9), over_hills(11)};
    const double coarse = distance(grid[0], grid[1]), fine = distance(grid[1], grid[2]);
    std::printf("distances in L2: %.3e %.3e\n", coarse, fine);
    const double order = std::log2(coarse / fine);
    check.at_most(fine, 3.3e-4, "distance of the finer grids");
    check.that(order >= 1.8, "order in L2: " + Check::text(order));
}

// --- dam breaks

// Stoker's dam break over a wet bed: depth at x / t.
struct Stoker {
    double left, right, middle, velocity, front;

    Stoker(double l, double r) : left(l), right(r)
    {
        double low = r, high = l;
        for (int i = 0; i < 200; i++) {
            middle = (low + high) / 2;
            velocity = 2 * (std::sqrt(G * l) - std::sqrt(G * middle));
            const double shock = (middle - r) * std::sqrt(G / 2 * (middle + r) / (middle * r));
            (velocity > shock ? low : high) = middle;
        }
        front = middle * velocity / (middle - r);
    }
    double depth(double speed) const
    {
        if (speed < -std::sqrt(G * left))
            return left;
        if (speed < velocity - std::sqrt(G * middle))
            return std::pow(2 * std::sqrt(G * left) - speed, 2) / (9 * G);
        return speed < front ? middle : right;
    }
};

void dam_break_with(Check &check, Flux flux)
{
    const Stoker exact(10, 1);
    const double end = 2.5;
    Mesh<double> mesh(even_grid(12), 100, Border::OPEN, 2);
    mesh.flux = flux;
    mesh.options.curvature = 10 / (100.0 * 100.0);
    mesh.initialise([](double, double) { return 0.0; },
                    [](double x, double, double) {
                        return Water{x < 0 ? 10.0 : 1.0, 0, 0};
                    });
    mesh.run(end, 0.45);
    double over = 0, under = 0, error = 0, crest = 0;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        double x, y;
        mesh.centroid(k, c, x, y);
        const double h = k.patch.dof[DEPTH][c];
        over = std::max(over, h - 10), under = std::max(under, 1 - h);
        if (x > 10) // past the rarefaction
            crest = std::max(crest, h - exact.middle);
        error += mesh.area(k, c) * std::fabs(h - exact.depth(x / end)) / 1e4;
    });
    check.at_most(over, 0.18, "over the highest initial depth, m"); // 2 % of the jump
    check.at_most(under, 0.18, "under the lowest initial depth, m");
    check.at_most(crest, 0.12, "over the state behind the shock, m");
    check.at_most(error, 0.045, "mean error of the depth, m");
}

void dam_break(Check &check) { dam_break_with(check, Flux::RUSANOV); }
void dam_break_augmented(Check &check) { dam_break_with(check, Flux::AUGMENTED); }

// Ritter's dam break over a dry bed: depth at x / t.
double ritter(double left, double speed)
{
    const double c = std::sqrt(G * left);
    if (speed < -c)
        return left;
    return speed < 2 * c ? std::pow(2 * c - speed, 2) / (9 * G) : 0;
}

void dry_dam_break_with(Check &check, Flux flux)
{
    const double end = 1.5;
    Mesh<double> mesh(even_grid(11), 100, Border::OPEN, 2);
    mesh.flux = flux;
    mesh.options.curvature = 10 / (100.0 * 100.0);
    mesh.initialise([](double, double) { return 0.0; },
                    [](double x, double, double) {
                        return Water{x < 0 ? 10.0 : 0.0, 0, 0};
                    });
    mesh.run(end, 0.45);
    double error = 0, over = 0, x, y;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        mesh.centroid(k, c, x, y);
        const double h = k.patch.dof[DEPTH][c];
        over = std::max(over, h - 10);
        error += mesh.area(k, c) * std::fabs(h - ritter(10, x / end)) / 1e4;
    });
    check.that(is_finite(mesh), "finite");
    check.at_most(-least_depth(mesh), 0, "negative water, m");
    check.at_most(over, 0.2, "over the highest initial depth, m");
    check.at_most(error, 0.06, "mean error of the depth, m");
}

void dry_dam_break(Check &check) { dry_dam_break_with(check, Flux::RUSANOV); }
void dry_dam_break_augmented(Check &check) { dry_dam_break_with(check, Flux::AUGMENTED); }

// --- a shore that moves

// Thacker 1981: a round paraboloid of water swings in a round basin.
struct Thacker {
    double a = 30, depth = 5, amplitude = 0.3; // radius of the shore at rest, depth, of 0 .. 1
    double w = std::sqrt(8 * G * depth) / a;

    double bed(double x, double y) const { return depth * ((x * x + y * y) / (a * a) - 1); }
    double water_depth(double x, double y, double bed_height, double time) const
    {
        const double c = 1 - amplitude * std::cos(w * time);
        const double b = 1 - amplitude * amplitude;
        const double rr = (x * x + y * y) / (a * a);
        const double surface = depth * (std::sqrt(b) / c - 1 - rr * (b / (c * c) - 1));
        return std::max(0.0, surface - bed_height);
    }
};

void thacker_with(Check &check, Flux flux)
{
    const Thacker exact;
    const double end = 2 * PI / exact.w;
    Mesh<double> mesh(even_grid(11), 100, Border::WALL, 2);
    mesh.flux = flux;
    mesh.options.curvature = 10 / (100.0 * 100.0);
    mesh.initialise([&](double x, double y) { return exact.bed(x, y); },
                    [&](double x, double y, double bed) {
                        return Water{exact.water_depth(x, y, bed, 0), 0, 0};
                    });
    const double mass = mesh.total(DEPTH);
    double time = 0, least = 0;
    for (double step = mesh.stable_step(); time < end;) {
        const double dt = std::min(0.45 * step, end - time);
        step = mesh.runge_kutta(dt);
        time += dt;
        least = std::min(least, least_depth(mesh));
        if (!(step > 1e-4)) {
            check.that(false, "stable step, s: " + Check::text(step));
            return;
        }
    }
    double error = 0, area = 0;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        double x, y;
        mesh.centroid(k, c, x, y);
        const double there = exact.water_depth(x, y, k.patch.dof[BED][c], end);
        error += mesh.area(k, c) * std::fabs(k.patch.dof[DEPTH][c] - there);
        area += there > 0 ? mesh.area(k, c) : 0;
    });
    check.that(is_finite(mesh), "finite");
    check.at_most(-least, 0, "negative water, m");
    check.at_most(std::fabs(mesh.total(DEPTH) / mass - 1), 1e-13, "mass, relative");
    check.at_most(error / area / exact.depth, 0.03, "mean error after a period, of the depth");
}

void thacker(Check &check) { thacker_with(check, Flux::RUSANOV); }
void thacker_augmented(Check &check) { thacker_with(check, Flux::AUGMENTED); }

// --- symmetry, clusters, precision

void mirrored(Check &check)
{
    Mesh<double> mesh(even_grid(9), 100, Border::WALL, 1);
    mesh.initialise([](double x, double y) { return 0.002 * (x * x + y * y) - 1; },
                    [](double x, double y, double bed) {
                        const double surface = std::hypot(x, y) < 20 ? 6 : 0.5;
                        return Water{std::max(0.0, surface - bed), 0, 0};
                    });
    mesh.run(4, 0.45);
    std::map<std::pair<long, long>, double> depth;
    const auto at = [](double x) { return std::lround(x * 1e5); };
    double x, y, worst = 0;
    mesh.each([&](const Mesh<double>::Cluster &k, int c) {
        mesh.centroid(k, c, x, y);
        depth[{at(x), at(y)}] = k.patch.dof[DEPTH][c];
    });
    for (const auto &cell : depth) {
        const auto [px, py] = cell.first;
        for (auto other :
             {std::make_pair(-px, py), std::make_pair(px, -py), std::make_pair(py, px)})
            worst = std::max(worst, std::fabs(cell.second - depth.at(other)));
    }
    check.at_most(worst, 1e-10, "difference to the mirrored depth, m");
}

template <class Real> std::vector<double> swing(int parts, int dof)
{
    Mesh<Real> mesh(uneven_grid(6, 3), 100, Border::WALL, parts);
    mesh.options.manning = Real(0.03);
    mesh.initialise([](double x, double y) { return 3 * rough(0.1 * x, 0.1 * y) - 2; },
                    [](double x, double, double bed) {
                        return Water{std::max(0.0, (x < 0 ? 2.0 : 0.5) - bed), 0, 0};
                    });
    for (int i = 0; i < 150; i++)
        mesh.runge_kutta(Real(0.005));
    std::vector<double> values;
    mesh.each([&](const typename Mesh<Real>::Cluster &k, int c) {
        values.push_back(double(k.patch.dof[dof][c]));
    });
    return values;
}

// Cells come to lie in other places of vectors then, or behind the last one.
template <class Real> void same_in_clusters(Check &check)
{
    for (int dof : {int(DEPTH), int(SURFACE_X), int(HU), int(HV_Y)}) {
        const std::vector<double> one = swing<Real>(1, dof);
        for (int parts : {2, 7, 30})
            check.that(one == swing<Real>(parts, dof), "same bits in clusters");
    }
}

void clusters_do_not_matter(Check &check)
{
    same_in_clusters<double>(check);
    same_in_clusters<float>(check);
}

void single_precision(Check &check)
{
    const std::vector<double> fine = swing<double>(1, DEPTH), rough_one = swing<float>(3, DEPTH);
    double worst = 0;
    for (std::size_t c = 0; c < fine.size(); c++)
        worst = std::max(worst, std::fabs(fine[c] - rough_one[c]));
    check.at_most(worst, 2e-3, "float against double, m");
}

// --- friction

// Water of all depths flows over level ground, some deep enough for slopes and some dry: one step
// against the formula that friction.h is not written by.
template <class Real> double off_manning(Real h)
{
    Mesh<Real> mesh(even_grid(3), 100, Border::PERIODIC, 3);
    mesh.options.manning = Real(0.03);
    mesh.initialise([](double, double) { return 0.0; },
                    [&](double, double, double) {
                        return Water{double(h), 3 * double(h), -4 * double(h)};
                    });
    const Real dt = Real(0.01) * mesh.stable_step();
    mesh.euler(dt);
    const double rough = G * 0.03 * 0.03 * double(dt) * 5 / std::pow(double(h), 4.0 / 3);
    const double speed = h > mesh.options.dry_tolerance ? 1 / (1 + rough) : 0;
    double worst = 0;
    mesh.each([&](const typename Mesh<Real>::Cluster &k, int c) {
        const double hu = double(k.patch.dof[HU][c]), hv = double(k.patch.dof[HV][c]);
        worst = std::max(
            {worst, std::fabs(hu / double(h) - 3 * speed), std::fabs(hv / double(h) + 4 * speed)});
    });
    return worst;
}

void friction_is_mannings(Check &check)
{
    for (double h : {1e-7, 1e-4, 0.3, 2.0, 8000.0}) {
        check.at_most(off_manning<double>(h), 1e-13, "velocity against the formula, m/s");
        check.at_most(off_manning<float>(float(h)), 1e-5, "the same, float");
    }
}

// --- changes of the grid

DgCell<double> random_cell(std::mt19937 &dice)
{
    std::uniform_real_distribution<double> number(-1, 1);
    DgCell<double> cell;
    for (double &value : cell.dof)
        value = 0.3 * number(dice);
    cell.dof[DEPTH] += 5;
    return cell;
}

// As a bed's tree has them: the children's means average to the parent's.
void align_beds(double parent_mean, double &first_mean, double &second_mean)
{
    const double half_step = (second_mean - first_mean) / 2;
    first_mean = parent_mean - half_step, second_mean = parent_mean + half_step;
}

void split_and_merge(Check &check)
{
    std::mt19937 dice(7);
    double change = 0, mass = 0;
    for (int o = 0; o < ORIENTATIONS; o++) {
        const DgShape shape = {o, 2.0};
        const DgCell<double> parent = random_cell(dice);
        DgCell<double> first = random_cell(dice), second = random_cell(dice), again = parent;
        align_beds(parent.dof[BED], first.dof[BED], second.dof[BED]);
        dg_split(shape, parent, 1e-6, first, second);
        mass = std::max(mass,
                        std::fabs((first.dof[DEPTH] + second.dof[DEPTH]) / 2 - parent.dof[DEPTH]));
        dg_merge(shape, first, second, 1e-6, again);
        for (int v = 0; v < DOFS; v++)
            change = std::max(change, std::fabs(again.dof[v] - parent.dof[v]));
    }
    check.at_most(change, 1e-14, "split and merged, change");
    check.at_most(mass, 1e-14, "mass of the children, m");
}

// Restriction is exact: the children's functions are the parent's at their corners.
void split_is_restriction(Check &check)
{
    std::mt19937 dice(9);
    const ShapeTable<double> &table = SHAPES<double>;
    double worst = 0;
    for (int o = 0; o < ORIENTATIONS; o++) {
        const DgShape shape = {o, 2.0};
        const DgCell<double> parent = random_cell(dice);
        DgCell<double> child[2] = {random_cell(dice), random_cell(dice)};
        dg_split(shape, parent, 1e-6, child[0], child[1]);
        for (int k = 0; k < 2; k++) {
            // The end of the hypotenuse that the child has: its own entry, or its own exit.
            const DgShape own = k ? dg_second(shape) : dg_first(shape);
            const auto value = [&](const DgCell<double> &q, DgShape s, int corner, int v) {
                return q.dof[v] + s.leg * (q.dof[v + 1] * table.corner_x[corner][s.orientation] +
                                           q.dof[v + 2] * table.corner_y[corner][s.orientation]);
            };
            for (int v : {int(HU), int(HV)}) {
                worst = std::max(
                    worst, std::fabs(value(child[k], own, k, v) - value(parent, shape, k, v)));
                worst = std::max(
                    worst, std::fabs(value(child[k], own, 1 - k, v) - value(parent, shape, 2, v)));
            }
        }
    }
    check.at_most(worst, 1e-14, "children against parent in the corners");
}

void rest_survives_changes(Check &check)
{
    std::mt19937 dice(11);
    double surface = 0, slope = 0;
    for (int o = 0; o < ORIENTATIONS; o++) {
        DgCell<double> parent = random_cell(dice), first = random_cell(dice);
        DgCell<double> second = random_cell(dice);
        for (int v = 0; v < EVOLVED; v++)
            parent.dof[v] = 0;
        parent.dof[DEPTH] = 2 - parent.dof[BED];
        align_beds(parent.dof[BED], first.dof[BED], second.dof[BED]);
        dg_split({o, 2.0}, parent, 1e-6, first, second);
        for (const DgCell<double> &child : {first, second}) {
            surface = std::max(surface, std::fabs(child.dof[DEPTH] + child.dof[BED] - 2));
            slope =
                std::max({slope, std::fabs(child.dof[SURFACE_X]), std::fabs(child.dof[SURFACE_Y])});
        }
        dg_merge({o, 2.0}, first, second, 1e-6, parent);
        surface = std::max(surface, std::fabs(parent.dof[DEPTH] + parent.dof[BED] - 2));
        slope =
            std::max({slope, std::fabs(parent.dof[SURFACE_X]), std::fabs(parent.dof[SURFACE_Y])});
    }
    check.at_most(surface, 2e-15, "surface off its level, m");
    check.at_most(slope, 2e-15, "its slope");
}

void shallow_water_is_split(Check &check)
{
    std::mt19937 dice(13);
    std::uniform_real_distribution<double> number(0, 1);
    double mass = 0, momentum = 0, least = 0, swifter = 0;
    for (int i = 0; i < 2000; i++) {
        DgCell<double> parent = random_cell(dice), first = random_cell(dice);
        DgCell<double> second = random_cell(dice);
        parent.dof[DEPTH] = std::pow(number(dice), 4);
        align_beds(parent.dof[BED], first.dof[BED], second.dof[BED]);
        dg_split({i % ORIENTATIONS, 1.0}, parent, 1e-6, first, second);
        mass =
            std::max(mass, std::fabs(first.dof[DEPTH] + second.dof[DEPTH] - 2 * parent.dof[DEPTH]));
        if (first.dof[DEPTH] > 1e-6 && second.dof[DEPTH] > 1e-6)
            momentum =
                std::max(momentum, std::fabs(first.dof[HU] + second.dof[HU] - 2 * parent.dof[HU]));
        least = std::min({least, first.dof[DEPTH], second.dof[DEPTH]});
        if (parent.dof[DEPTH] > 0.01 && parent.dof[DEPTH] < 0.02) // less than the bed's rise
            for (const DgCell<double> &child : {first, second})
                swifter = std::max(swifter, std::fabs(child.dof[HU]) * parent.dof[DEPTH] -
                                                std::fabs(parent.dof[HU]) * child.dof[DEPTH]);
    }
    check.at_most(swifter, 1e-15, "swifter than the parent");
    check.at_most(mass, 1e-15, "mass");
    check.at_most(momentum, 1e-14, "momentum");
    check.at_most(-least, 0, "negative water, m");
}

void fit_is_a_line(Check &check)
{
    std::mt19937 dice(5);
    double worst = 0;
    for (int o = 0; o < ORIENTATIONS; o++) {
        const DgShape shape = {o, 3.0};
        const DgCell<double> values = random_cell(dice);
        double line[3];
        dg_fit(shape, values.dof + BED, line);
        for (int side = 0; side < SIDES; side++)
            worst =
                std::max(worst, std::fabs(dg_middle(shape, line, side) - values.dof[BED + side]));
    }
    check.at_most(worst, 1e-15, "the line against its values");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"lake_at_rest", lake_at_rest},
                         {"lake_at_rest_augmented", lake_at_rest_augmented},
                         {"mass_in_storm", mass_in_storm},
                         {"mass_in_storm_augmented", mass_in_storm_augmented},
                         {"second_order", second_order},
                         {"second_order_over_a_bed", second_order_over_a_bed},
                         {"dam_break", dam_break},
                         {"dam_break_augmented", dam_break_augmented},
                         {"dry_dam_break", dry_dam_break},
                         {"dry_dam_break_augmented", dry_dam_break_augmented},
                         {"thacker", thacker},
                         {"thacker_augmented", thacker_augmented},
                         {"mirrored", mirrored},
                         {"clusters_do_not_matter", clusters_do_not_matter},
                         {"single_precision", single_precision},
                         {"friction_is_mannings", friction_is_mannings},
                         {"fit_is_a_line", fit_is_a_line},
                         {"split_and_merge", split_and_merge},
                         {"split_is_restriction", split_is_restriction},
                         {"rest_survives_changes", rest_survives_changes},
                         {"shallow_water_is_split", shallow_water_is_split}});
}
