// SPDX-License-Identifier: GPL-3.0-or-later
// okada.cc - is the displacement of the surface Okada's?  Against the checklist of his paper (table
// 2 of doi 10.1785/BSSA0750041135), and against another way to the same: by Betti's theorem the
// rise of a point is the work of the slip against the stress that a force of 1 upwards at this
// point makes on the fault, which Boussinesq's solution gives.  Then lists of sub-faults, their
// errors, and the uplift of all of a list.
#include "../scenario/faults/faults.h"
#include "../scenario/projection.h"
#include "../scenario/faults/uplift.h"
#include "../../lib/promises.h"

using namespace swe;

namespace {

constexpr double DEGREE = PI / 180;

struct Row {
    double x, y, depth, dip;
    Slip slip;
    double u[3];
};

void table(Check &check)
{
    const Row rows[] = {
        {2, 3, 4, 70, {1, 0, 0}, {-8.689e-3, -4.298e-3, -2.747e-3}},
        {2, 3, 4, 70, {0, 1, 0}, {-4.682e-3, -3.527e-2, -3.564e-2}},
        {2, 3, 4, 70, {0, 0, 1}, {-2.660e-4, 1.056e-2, 3.214e-3}},
        {0, 0, 4, 90, {1, 0, 0}, {0, 5.253e-3, 0}},
        {0, 0, 4, 90, {0, 1, 0}, {0, 0, 0}},
        {0, 0, 4, 90, {0, 0, 1}, {1.223e-2, 0, -1.606e-2}},
        {0, 0, 4, -90, {1, 0, 0}, {0, -1.303e-3, 0}},
        {0, 0, 4, -90, {0, 1, 0}, {0, 0, 0}},
        {0, 0, 4, -90, {0, 0, 1}, {3.507e-3, 0, -7.740e-3}},
    };
    for (const Row &r : rows) {
        Displacement u = okada(r.x, r.y, r.depth, r.dip * DEGREE, 3, 2, r.slip);
        double got[3] = {u.east, u.north, u.up};
        for (int i = 0; i < 3; i++) // four digits are printed
            check.near(got[i], r.u[i], std::fmax(5.1e-4 * std::fabs(r.u[i]), 1e-15),
                       "component " + std::to_string(i) + ", dip " + Check::text(r.dip));
    }
}

// Stress at (x, y, z), z < 0, of a force of 1 upwards at the origin of a half-space with
// Poisson's ratio 1/4 (Boussinesq 1885; Timoshenko and Goodier, Theory of Elasticity, §138).
void boussinesq(double x, double y, double z, double stress[3][3])
{
    double Z = -z, r = std::sqrt(x * x + y * y), R = std::sqrt(r * r + Z * Z), m = 0.5; // 1 - 2 nu
    double c = r > 0 ? x / r : 1, s = r > 0 ? y / r : 0, f = -1 / (2 * PI), R5 = std::pow(R, 5);
    double radial = f * (m / (R * (R + Z)) - 3 * r * r * Z / R5);
    double hoop = f * m * (Z / (R * R * R) - 1 / (R * (R + Z)));
    double shear = f * -3 * r * Z * Z / R5, vertical = f * -3 * Z * Z * Z / R5;
    stress[0][0] = radial * c * c + hoop * s * s;
    stress[1][1] = radial * s * s + hoop * c * c;
    stress[0][1] = stress[1][0] = (radial - hoop) * c * s;
    stress[2][2] = vertical;
    stress[0][2] = stress[2][0] = -shear * c; // z upwards turns its sign
    stress[1][2] = stress[2][1] = -shear * s;
}

double rise(double x, double y, double depth, double dip, double length, double width, Slip slip)
{
    const int n = 150;
    double c = std::cos(dip), s = std::sin(dip), normal[3] = {0, -s, c}, sum = 0;
    double moved[3] = {slip.strike, slip.dip * c - slip.open * s, slip.dip * s + slip.open * c};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double along = (i + 0.5) / n * length, up = (j + 0.5) / n * width, stress[3][3];
            boussinesq(along - x, up * c - y, up * s - depth, stress);
            for (int k = 0; k < 9; k++)
                sum += moved[k / 3] * stress[k / 3][k % 3] * normal[k % 3];
        }
    return sum * length * width / (n * n);
}

void betti(Check &check)
{
    for (double dip : {12.0, 45.0, 70.0, 89.9, 90.0})
        for (double x : {-3.0, 0.7, 2.0, 6.0})
            for (double y : {-4.0, -0.5, 1.3, 5.0})
                for (Slip slip : {Slip{1, 0, 0}, Slip{0, 1, 0}, Slip{0, 0, 1}}) {
                    double expected = rise(x, y, 4, dip * DEGREE, 3, 2, slip);
                    check.near(okada(x, y, 4, dip * DEGREE, 3, 2, slip).up, expected, 2e-6,
                               "rise at " + Check::text(x) + ", " + Check::text(y) + ", dip " +
                                   Check::text(dip));
                }
}

void symmetry(Check &check)
{
    // Thrust on a plane that strikes north: the same north and south of the middle.
    SubFault f{0, 0, 20e3, 0, 15, 90, 10, 100e3, 50e3};
    for (double x : {-70e3, -10e3, 30e3}) {
        Displacement a = displacement(f, x, 40e3), b = displacement(f, x, -40e3);
        check.near(a.up, b.up, 1e-12, "rise, mirrored");
        check.near(a.north, -b.north, 1e-12, "northward, mirrored");
    }
    check.that(displacement(f, -20e3, 0).up > 1, "rises over the upper edge, west of the centre");
    // Turned by 90 degrees it is the same turned.
    SubFault turned = f;
    turned.strike = 90;
    Displacement a = displacement(f, 13e3, 29e3), b = displacement(turned, 29e3, -13e3);
    check.near(a.up, b.up, 1e-12, "rise, turned");
    check.near(a.east, -b.north, 1e-12, "east becomes south");
    check.near(a.north, b.east, 1e-12, "north becomes east");
    // In two halves it is the same.
    SubFault north = f, south = f;
    north.length = south.length = 50e3;
    north.y = 25e3;
    south.y = -25e3;
    check.near(displacement(north, 5e3, 7e3).up + displacement(south, 5e3, 7e3).up,
               displacement(f, 5e3, 7e3).up, 1e-12, "two halves");
}

// Places where terms of the formulas are 0 / 0.
void finite(Check &check)
{
    for (double dip : {0.0, 30.0, 90.0})
        for (double top : {0.0, 3e3}) {
            double width = 20e3, s = std::sin(dip * DEGREE), c = std::cos(dip * DEGREE);
            if (dip == 0 && top == 0)
                continue;
            SubFault f{0, 0, top + width / 2 * s, 0, dip, 30, 5, 40e3, width};
            for (double x : {-width / 2 * c, 0.0, width / 2 * c, 1e3, -1e6})
                for (double y : {-20e3, 0.0, 20e3, 30e3}) {
                    Displacement u = displacement(f, x, y);
                    check.that(std::fabs(u.up) < 10 && std::fabs(u.east) < 10 &&
                                   std::fabs(u.north) < 10,
                               "finite at " + Check::text(x) + ", " + Check::text(y) + ", dip " +
                                   Check::text(dip) + ", top " + Check::text(top));
                }
        }
}

Config ocean()
{
    return parse_config("name = \"tsunami\"\n[domain]\nsquare = 1600e3\nx0 = -800e3\ny0 = -800e3\n",
                        "test.toml");
}

void magnitudes(Check &check)
{
    // 1e20 N m: (20 - 9.1) / 1.5.
    check.near(magnitude({{0, 0, 10e3, 0, 10, 90, 2.5, 100e3, 10e3}}), 7.2667, 1e-4, "one fault");
    check.near(magnitude(synthetic_faults(ocean())), 9.06, 0.01, "the synthetic earthquake");
}

void lists(Check &check)
{
    auto f =
        parse_faults("# a comment\n\nlat lon depth_km strike dip rake slip_m length_km width_km\r\n"
                     "38 143 20 200 12 90 5 50 40 # one\n39,143,20,200,12,90,5,50,40\n",
                     "f", ocean());
    check.that(f.size() == 2, "two sub-faults");
    check.near(f.at(0).x, 0, 1e-6, "at the domain's centre");
    check.near(f.at(1).y, 111195, 1, "a degree north");
    check.near(f.at(0).depth, 20000, 0, "depth in m");
    check.near(f.at(0).length, 50000, 0, "length in m");
    f = parse_faults("\xef\xbb\xbfx_m y_m depth_m strike dip rake slip_m length_m width_m\r\n"
                     "7 0 20000 200 12 90 5 50000 40000\n",
                     "f", ocean());
    check.that(f.size() == 1, "a list with a byte-order mark");
    check.near(f.at(0).x, 7, 0, "whose first column is known");
}

void list_errors(Check &check)
{
    const std::string head = "x_km y_km depth_km strike dip rake slip_m length_km width_km\n";
    const struct {
        std::string text;
        const char *place, *says;
    } cases[] = {
        {"", "f:", "no sub-faults"},
        {head, "f:", "no sub-faults"},
        {"x_km y_km\n", "f:1:", "no column depth_m (or depth_km)"},
        {"#\nx_km y_km depth\n", "f:2:", "\"depth\": no such column"},
        {"x_km x_m\n", "f:1:", "\"x_m\": the list has this column already"},
        {"lon y_km depth_km strike dip rake slip_m length_km width_km\n", "f:1:", "lon and lat"},
        {head + "1 2 3\n", "f:2:", "3 numbers; must be 9"},
        {head + "\n1 2 20 0 12 90 nan 50 40\n",
         "f:3:", "slip_m = nan: must be a number from 0 to 1000"},
        {head + "1 2 20 0 12x 90 1 50 40\n", "f:2:", "dip = 12x: must be a number from 0 to 90"},
        {head + "1 2 20 0 91 90 1 50 40\n", "f:2:", "dip = 91"},
        {head + "1 2 1 0 45 90 1 50 40\n", "f:2:", "over the surface"},
    };
    for (const auto &c : cases) {
        try {
            parse_faults(c.text, "f", ocean());
            check.that(false, "taken: " + c.text);
        } catch (const ConfigError &e) {
            check.contains(e.what(), c.place);
            check.contains(e.what(), c.says);
        }
    }
}

double rise_of(const std::vector<SubFault> &faults, double x, double y)
{
    double up = 0;
    for (const SubFault &f : faults)
        up += displacement(f, x, y).up;
    return up;
}

void near_the_formulas(Check &check, const Uplift &uplift, const std::vector<SubFault> &faults)
{
    double worst = 0, squares = 0, all = 0, highest = 0;
    for (double y = -300e3; y < 300e3; y += 13.7e3)
        for (double x = -200e3; x < 200e3; x += 5.3e3) {
            double exact = rise_of(faults, x, y), error = uplift.at(x, y) - exact;
            worst = std::fmax(worst, std::fabs(error));
            highest = std::fmax(highest, exact);
            squares += error * error;
            all += exact * exact;
        }
    std::printf("    %zu squares, worst error %.4f m of %.1f m, root mean square %.4f %%\n",
                uplift.squares(), worst, highest, 100 * std::sqrt(squares / all));
    check.that(worst < 0.02, "worst error " + Check::text(worst) + " m");
    check.that(std::sqrt(squares / all) < 5e-4, "root mean square of the error");
    check.that(highest <= uplift.highest() + 0.02 && highest > 0.95 * uplift.highest(),
               "highest " + Check::text(uplift.highest()));
    check.that(std::isfinite(uplift.at(-800e3, -800e3)) && std::isfinite(uplift.at(800e3, 800e3)),
               "finite at the corners");
}

void uplift(Check &check)
{
    auto faults = synthetic_faults(ocean());
    near_the_formulas(check, Uplift(faults, ocean()), faults);
}

// The same slip, as lists from inversions of data have it.
void a_thousand(Check &check)
{
    auto faults = synthetic_faults(ocean());
    std::vector<SubFault> parts;
    for (SubFault f : faults)
        for (int k = 0; k < 20; k++) {
            double along = (k % 5 - 2) * f.length / 5, down = (k / 5 - 1.5) * f.width / 4;
            double s = std::sin(f.strike * DEGREE), c = std::cos(f.strike * DEGREE);
            double right = down * std::cos(f.dip * DEGREE);
            parts.push_back({f.x + along * s + right * c, f.y + along * c - right * s,
                             f.depth + down * std::sin(f.dip * DEGREE), f.strike, f.dip, f.rake,
                             f.slip, f.length / 5, f.width / 4});
        }
    check.near(rise_of(parts, 20e3, 10e3), rise_of(faults, 20e3, 10e3), 1e-9,
               "it is the same slip");
    near_the_formulas(check, Uplift(parts, ocean()), faults);
}

// A step in the bed, where a fault comes to the surface: not known to a metre, but no more than
// that.
void at_the_surface(Check &check)
{
    Config c = parse_config("name = \"tsunami\"\n[domain]\nsquare = 200e3\n", "test.toml");
    std::vector<SubFault> faults = {{100e3, 100e3, 5e3, 10, 90, 90, 5, 50e3, 10e3}};
    Uplift uplift(faults, c);
    for (double x = 1e3; x < 200e3; x += 2e3)
        check.near(uplift.at(x, 105e3), rise_of(faults, x, 105e3), x > 98e3 && x < 104e3 ? 5 : 2e-3,
                   "rise at " + Check::text(x));
    check.that(uplift.highest() < 5 && uplift.lowest() > -5, "no more than the slip");
}

// Place and depth may be of other points of the rectangle.
void references(Check &check)
{
    const std::string head = "x_km y_km depth_km strike dip rake slip_m length_km width_km\n";
    auto read = [&head](const char *reference, const char *line) {
        Config c = parse_config("name = \"tsunami\"\n", "test.toml",
                                {std::string("scenario.fault_reference=") + reference});
        return parse_faults(head + line, "f", c).at(0);
    };
    // It strikes to the north and dips to the east: 30 km along, 20 km down 30 degrees.
    SubFault centre = read("centre", "10 20 9 0 30 90 1 30 20");
    double right = 10 * std::cos(30 * DEGREE) * 1e3;
    SubFault top = read("top_centre", "10 20 9 0 30 90 1 30 20");
    SubFault corner = read("top_corner", "10 20 9 0 30 90 1 30 20");
    check.that(centre.x == 10e3 && centre.y == 20e3 && centre.depth == 9e3, "the centre as given");
    check.near(top.x, 10e3 + right, 1e-6, "x, of the upper edge's middle");
    check.near(top.y, 20e3, 1e-6, "y, of the upper edge's middle");
    check.near(top.depth, 14e3, 1e-6, "depth, of the upper edge");
    check.near(corner.x, 10e3 + right, 1e-6, "x, of the corner");
    check.near(corner.y, 35e3, 1e-6, "y, of the corner: along the strike from it");
    check.near(corner.depth, 14e3, 1e-6, "depth, of the corner");
    check.near(read("top_corner", "10 20 0 0 30 90 1 30 20").depth, 5e3, 1e-6, "at the surface");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"okada_agrees_with_his_checklist", table},
                         {"okada_agrees_with_boussinesq_by_betti", betti},
                         {"okada_is_symmetric_and_additive", symmetry},
                         {"okada_is_finite_everywhere", finite},
                         {"moment_magnitude", magnitudes},
                         {"lists_are_read_with_units", lists},
                         {"list_errors_name_line_and_range", list_errors},
                         {"lists_give_the_point_that_is_said", references},
                         {"uplift_is_near_the_formulas", uplift},
                         {"uplift_of_a_thousand_faults_is_near_the_formulas", a_thousand},
                         {"uplift_is_finite_where_a_fault_is_at_the_surface", at_the_surface}});
}
