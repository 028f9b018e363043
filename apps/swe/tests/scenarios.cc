// SPDX-License-Identifier: GPL-3.0-or-later
// scenarios.cc - do the exact solutions solve the shallow water equations, and are the other
// scenarios what they are said to be?  Solutions are put into the equations with differences for
// derivatives, away from their kinks, and the dam's bore into the jump conditions.
#include <fstream>
#include <functional>
#include "../scenario/faults/okada.h"
#include "../scenario/scenario.h"
#include "../../lib/promises.h"
#include "temporary.h"

using namespace swe;

namespace {

Config configured(const std::string &name, const std::vector<std::string> &words = {})
{
    return parse_config("name = \"" + name + "\"\n", "test.toml", words);
}

struct Residual {
    double mass, x, y; // m/s, m2/s2
};

// d/dt of the state minus what fluxes and bed make of it, by central differences.
Residual residual(const Scenario &s, double x, double y, double t, double dx, double dt)
{
    const double g = 9.81;
    auto at = [&](double px, double py, double pt) { return s.water(px, py, s.bed(px, py), pt); };
    Water e = at(x + dx, y, t), w = at(x - dx, y, t), n = at(x, y + dx, t), o = at(x, y - dx, t);
    Water later = at(x, y, t + dt), before = at(x, y, t - dt), here = at(x, y, t);
    auto fx = [g](Water q) { return q.hu * q.hu / q.h + g / 2 * q.h * q.h; };
    auto cross = [](Water q) { return q.hu * q.hv / q.h; };
    auto fy = [g](Water q) { return q.hv * q.hv / q.h + g / 2 * q.h * q.h; };
    double bx = (s.bed(x + dx, y) - s.bed(x - dx, y)) / (2 * dx);
    double by = (s.bed(x, y + dx) - s.bed(x, y - dx)) / (2 * dx);
    return {(later.h - before.h) / (2 * dt) + (e.hu - w.hu + n.hv - o.hv) / (2 * dx),
            (later.hu - before.hu) / (2 * dt) + (fx(e) - fx(w) + cross(n) - cross(o)) / (2 * dx) +
                g * here.h * bx,
            (later.hv - before.hv) / (2 * dt) + (cross(e) - cross(w) + fy(n) - fy(o)) / (2 * dx) +
                g * here.h * by};
}

void solves(Check &check, const Scenario &s, double x, double y, double t, double scale,
            double tolerance)
{
    Residual r = residual(s, x, y, t, scale * 1e-4, scale * 1e-5);
    std::string where =
        " at " + Check::text(x) + ", " + Check::text(y) + ", time " + Check::text(t);
    check.near(r.mass, 0, tolerance, "mass" + where);
    check.near(r.x, 0, tolerance, "momentum x" + where);
    check.near(r.y, 0, tolerance, "momentum y" + where);
}

void thacker(Check &check, const char *planar)
{
    auto s = make_scenario(configured("thacker", {"domain.square=4", "domain.x0=-2", "domain.y0=-2",
                                                  "scenario.depth=0.1", "scenario.radius=0.25",
                                                  "scenario.amplitude=0.4", planar}));
    check.that(s->has_solution(), "has a solution");
    for (double t : {0.0, 0.3, 1.1, 2.0, 5.0})
        for (double x : {-0.3, 0.0, 0.2})
            for (double y : {-0.2, 0.0, 0.3})
                if (s->water(x, y, s->bed(x, y), t).h > 0.01)
                    solves(check, *s, x, y, t, 1, 1e-6);
    check.near(s->bed(1, 0), 0, 1e-12, "the bed at the radius is at the surface");
    check.near(s->bed(0, 0), -0.1, 1e-12, "the bed at the centre");
    check.that(s->water(1.9, 1.9, s->bed(1.9, 1.9), 0.5).h == 0, "dry far outside");
}

void thacker_curved(Check &check)
{
    thacker(check, "scenario.planar=false");
    auto s = make_scenario(configured("thacker"));
    double period = 2 * 3.14159265358979323846 / std::sqrt(8 * 9.81 * 10) * 100;
    Water a = s->water(510, 520, s->bed(510, 520), 0),
          b = s->water(510, 520, s->bed(510, 520), period);
    check.near(a.h, b.h, 1e-9, "periodic");
}

void thacker_planar(Check &check) { thacker(check, "scenario.planar=true"); }

// The sum over the domain of what a solution has, by midpoints.
double total(const Scenario &s, double t, double side)
{
    const int n = 400;
    double sum = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            double x = (i + 0.5) / n * side, y = (j + 0.5) / n * side;
            sum += s.water(x, y, s.bed(x, y), t).h;
        }
    return sum * side * side / (n * n);
}

void thacker_keeps_water(Check &check)
{
    for (const char *planar : {"scenario.planar=true", "scenario.planar=false"}) {
        auto s = make_scenario(configured(
            "thacker", {"domain.square=4", "scenario.radius=0.25", "scenario.depth=0.1", planar}));
        double first = total(*s, 0, 4);
        for (double t : {0.2, 0.7, 1.5})
            check.near(total(*s, t, 4) / first, 1, 1e-4, "volume over that at time 0");
    }
}

void stoker(Check &check)
{
    auto s = make_scenario(configured("dam_break", {"scenario.planar=true", "scenario.depth=2",
                                                    "scenario.inside=8", "domain.square=1000"}));
    const double t = 20, g = 9.81;
    // Find the bore: the easternmost place that is not at rest.
    double low = 500, high = 1000;
    for (int i = 0; i < 100; i++) {
        double x = (low + high) / 2;
        (s->water(x, 0, -2, t).h > 2 ? low : high) = x;
    }
    Water behind = s->water(low - 1e-6, 0, -2, t);
    double bore = (low - 500) / t, u = behind.hu / behind.h;
    check.near(bore * (behind.h - 2), behind.hu, 1e-6, "mass over the bore");
    check.near(bore * behind.hu, behind.hu * u + g / 2 * (behind.h * behind.h - 4), 1e-5,
               "momentum over the bore");

    double c = std::sqrt(g * 10);
    check.near(u + 2 * std::sqrt(g * behind.h), 2 * c, 1e-9, "Riemann invariant behind the bore");
    double tail = 500 - t * c;
    check.near(s->water(tail + 1e-3, 0, -2, t).h, 10, 1e-4,
               "the rarefaction begins at the left depth");
    for (double x = tail + 5; x < 500; x += 40)
        solves(check, *s, x, 0, t, 100, 1e-5);
    check.near(s->water(tail - 1, 0, -2, t).hu, 0, 0, "still water to the left");
}

void ritter(Check &check)
{
    auto s = make_scenario(configured(
        "dam_break", {"scenario.planar=true", "scenario.depth=0", "scenario.inside=10"}));
    const double t = 10, c = std::sqrt(9.81 * 10);
    check.near(s->water(500, 0, 0, t).h, 10 * 4 / 9.0, 1e-12, "4/9 of the depth at the dam");
    check.near(s->water(500, 0, 0, t).hu, 8 / 27.0 * c * 10, 1e-9, "8/27 of c h through it");
    check.that(s->water(500 + 2 * c * t + 0.01, 0, 0, t).h == 0, "dry beyond the tip");
    check.that(s->water(500 + 2 * c * t - 0.1, 0, 0, t).h > 0, "wet up to the tip");
    for (double x = 500 - c * t + 5; x < 500 + 1.5 * c * t; x += 30)
        solves(check, *s, x, 0, t, 100, 1e-4);
    Water left = s->water(499.9, 0, 0, 0), right = s->water(500.1, 0, 0, 0);
    check.that(left.h == 10 && right.h == 0, "a dam at time 0");
}

void planar_volume(Check &check)
{
    for (const char *depth : {"scenario.depth=0", "scenario.depth=0.01", "scenario.depth=5"}) {
        auto s = make_scenario(
            configured("dam_break", {"scenario.planar=true", depth, "scenario.inside=6"}));
        double first = total(*s, 0, 1000);
        for (double t : {1.0, 10.0, 20.0})
            check.near(total(*s, t, 1000) / first, 1, 3e-3, std::string("volume, ") + depth);
    }
}

void radial_dam(Check &check)
{
    auto s = make_scenario(
        configured("dam_break", {"scenario.x=0.3", "scenario.y=0.35", "scenario.inside=2"}));
    check.that(!s->has_solution(), "no solution is known");
    check.near(s->bed(1, 1), -10, 0, "bed");
    check.near(s->water(300, 350, -10, 0).h, 12, 0, "inside");
    check.near(s->water(399, 350, -10, 0).h, 12, 0, "inside");
    check.near(s->water(401, 350, -10, 0).h, 10, 0, "outside");
    check.near(s->rest(), 0, 0, "rest");
    auto dry = make_scenario(configured("dam_break", {"scenario.depth=0"}));
    check.near(dry->water(1, 1, dry->bed(1, 1), 0).h, 0, 0, "dry outside");
}

// What the bed is made of is exact, and so the sum is the same on every machine.
void lake_bed(Check &check)
{
    auto s = make_scenario(configured("lake", {"scenario.seed=7", "scenario.slope_bed=0.5"}));
    auto other = make_scenario(configured("lake", {"scenario.seed=8", "scenario.slope_bed=0.5"}));
    int dry = 0, differ = 0;
    double sum = 0;
    for (int j = 0; j < 200; j++)
        for (int i = 0; i < 200; i++) {
            double x = i * 5 + 2.5, y = j * 5 + 2.5, bed = s->bed(x, y);
            Water w = s->water(x, y, bed, 3);
            dry += w.h == 0;
            differ += bed != other->bed(x, y);
            sum += bed;
            check.that(w.h == 0 || std::fabs(w.h + bed) < 1e-14, "the surface is level");
            check.that(w.hu == 0 && w.hv == 0, "at rest");
        }
    check.that(dry > 400 && dry < 20000,
               "islands and water: " + std::to_string(dry) + " dry of 40000");
    check.that(differ > 39000, "another seed is another bed");
    check.near(sum, -363823.6530747668, 0, "sum of the bed's heights");
}

void beach(Check &check)
{
    auto s = make_scenario(configured("beach", {"domain.square=100", "scenario.depth=1",
                                                "scenario.amplitude=0.1", "scenario.slope=0.1"}));
    check.near(s->bed(10, 0), -1, 0, "flat");
    check.near(s->bed(50, 0), -1, 0, "foot");
    check.near(s->bed(60, 0), 0, 1e-12, "shore");
    double highest = 0, crest = 0, twentieth = 0;
    for (double x = 0; x < 60; x += 0.01) {
        Water w = s->water(x, 5, s->bed(x, 5), 0);
        double eta = w.h + s->bed(x, 5);
        if (eta > highest) {
            highest = eta;
            crest = x;
        }
        if (x <= 50)
            twentieth = eta;
        check.that(w.hu >= 0 && w.hv == 0, "the wave moves eastwards");
    }
    check.near(highest, 0.1, 1e-6, "height of the wave");
    check.near(twentieth, 0.1 / 20, 1e-4, "a twentieth of it at the foot of the beach");
    check.near(crest, 50 - std::acosh(std::sqrt(20.0)) / std::sqrt(0.075), 0.01, "crest");
    check.near(s->water(70, 5, s->bed(70, 5), 0).h, 0, 0, "the beach is dry");
    try {
        make_scenario(configured("beach", {"scenario.x=0.01", "domain.square=100",
                                           "scenario.depth=1", "scenario.amplitude=0.1"}));
        check.that(false, "a wave that begins outside is taken");
    } catch (const ConfigError &e) {
        check.contains(e.what(), "scenario.x = 0.01: the wave would begin at x = -6.9");
        check.contains(e.what(), "must be from 0.0796 to 1");
    }
    make_scenario(configured("beach", {"scenario.x=0.0796", "domain.square=100", "scenario.depth=1",
                                       "scenario.amplitude=0.1"}));
    try {
        make_scenario(
            configured("beach", {"domain.square=1", "scenario.depth=1", "scenario.amplitude=0.1"}));
        check.that(false, "a wave that has no room is taken");
    } catch (const ConfigError &e) {
        check.contains(e.what(), "no room: the domain must be more than 7.9");
    }
}

// A list of one sub-fault, of that slip; the place is the domain's centre.
std::string one_fault(const Temporary &place, double slip)
{
    std::string file = place.path + "/" + Check::text(slip) + ".faults";
    std::ofstream(file) << "x_km y_km depth_km strike dip rake slip_m length_km width_km\n"
                        << "465 400 12 200 12 90 " << slip << " 300 80\n";
    return file;
}

// The bed moves by Okada's formulas, and the water over it with it: each place has as much as
// before.
void tsunami(Check &check)
{
    Temporary place;
    auto make = [&place](double slip) {
        return make_scenario(configured(
            "tsunami", {"domain.square=800e3", "scenario.faults=" + one_fault(place, slip)}));
    };
    auto before = make(0), s = make(20);
    SubFault fault{465e3, 400e3, 12e3, 200, 12, 90, 20, 300e3, 80e3};
    double highest = 0, lowest = 0;
    int land = 0;
    for (double y = 1e3; y < 800e3; y += 10e3)
        for (double x = 1e3; x < 800e3; x += 10e3) {
            double old = before->bed(x, y), bed = s->bed(x, y), moved = bed - old;
            Water w = s->water(x, y, bed, 0);
            check.near(moved, displacement(fault, x, y).up, 5e-3, "the bed moves");
            check.near(w.h, std::fmax(0, -old), 1e-9, "as much water as before");
            check.near(before->water(x, y, old, 0).h, std::fmax(0, -old), 0, "the sea before");
            check.that(w.hu == 0 && w.hv == 0, "still water");
            highest = std::fmax(highest, moved);
            lowest = std::fmin(lowest, moved);
            land += w.h == 0;
        }
    check.that(highest > 4 && highest < 15, "uplift of some metres: " + Check::text(highest));
    check.that(lowest < -0.5 && lowest > -8, "and a trough: " + Check::text(lowest));
    check.that(land > 200 && land < 3200, "a coast");
}

// The user that starts a tsunami reads what it is made of; a checkpoint knows it by its numbers.
void tsunami_says(Check &check)
{
    Temporary place;
    auto inputs = [&](double slip, const char *more = "scenario.lat0=38") {
        return make_scenario(
                   configured("tsunami", {"scenario.faults=" + one_fault(place, slip), more}))
            ->inputs();
    };
    check.that(inputs(20) == inputs(20) && inputs(20) != inputs(21), "slip of 20 m and of 21 m");
    check.contains(inputs(20), "sub-faults = 1 with CRC ");
    auto lines = make_scenario(configured("tsunami", {"domain.square=1600e3", "domain.x0=-800e3",
                                                      "domain.y0=-800e3"}))
                     ->summary();
    check.that(lines.size() == 3, "three lines");
    check.contains(lines.at(0),
                   "50 sub-faults of the synthetic list, magnitude 9.06; the bed moves");
    check.contains(lines.at(1), "the synthetic basin; heights about -");
    check.contains(lines.at(2), "30.805 to 45.195 north");
    check.contains(lines.at(2), "-8 % in the south and +12 % in the north");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"stoker_satisfies_equations_and_jump_conditions", stoker},
                         {"ritter_satisfies_equations", ritter},
                         {"planar_dam_keeps_its_water", planar_volume},
                         {"radial_dam_is_a_cylinder", radial_dam},
                         {"thacker_curved_satisfies_equations", thacker_curved},
                         {"thacker_planar_satisfies_equations", thacker_planar},
                         {"thacker_keeps_its_water", thacker_keeps_water},
                         {"lake_is_level_with_islands_and_the_same_everywhere", lake_bed},
                         {"beach_has_synolakis_wave", beach},
                         {"tsunami_lifts_water_with_the_bed", tsunami},
                         {"tsunami_says_what_it_is_made_of", tsunami_says}});
}
