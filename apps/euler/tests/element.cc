// SPDX-License-Identifier: GPL-3.0-or-later
// element.cc - promises of the scheme in one cell, and between cells of two levels.
#include <cmath>
#include <vector>
#include "../../lib/promises.h"
#include "../basis/gauss.h"
#include "../element/element.h"

using namespace apps;
using namespace euler;

namespace {

using Numbers = std::vector<double>;

// Gas that varies smoothly over a cell.
Numbers smooth_gas(const Element &element, double variation)
{
    const Sizes &sizes = element.sizes();
    const std::size_t points = sizes.state / sizes.unknowns;
    Numbers state(sizes.state);
    for (std::size_t k = 0; k < points; k++) {
        double where[MOST_DIMENSIONS] = {};
        element.place(k, where);
        const double wave =
            variation * std::sin(1 + where[0] + 2 * where[1] - (sizes.dimensions - 2) * where[2]);
        state[k] = 1 + wave;
        for (int axis = 1; axis <= sizes.dimensions; axis++)
            state[axis * points + k] = 0.3 * axis + wave;
        state[(sizes.dimensions + 1) * points + k] = 4 + wave;
    }
    return state;
}

struct Predicted {
    Numbers volume, traces, scratch;
    Predicted(const Element &element, const Numbers &state, double step)
        : volume(element.sizes().state),
          traces(2 * element.sizes().dimensions * element.sizes().trace),
          scratch(element.sizes().scratch)
    {
        element.predict(state.data(), step, volume.data(), traces.data(), scratch.data());
    }
    const double *trace(const Element &element, int face) const
    {
        return &traces[face * element.sizes().trace];
    }
};

Numbers means_of(const Element &element, const Numbers &state)
{
    Numbers means(element.sizes().unknowns);
    element.means(state.data(), means.data());
    return means;
}

template <class F> void for_elements(F use)
{
    for (int dimensions = 2; dimensions <= 3; dimensions++)
        for (int order = LOWEST_ORDER; order <= (dimensions == 2 ? HIGHEST_ORDER : 6); order++)
            use(*make_element(dimensions, order),
                "d = " + std::to_string(dimensions) + ", order " + std::to_string(order));
}

void gauss_points_integrate_polynomials(Check &check)
{
    for (int points = 1; points <= HIGHEST_ORDER + 1; points++) {
        const Gauss gauss(points);
        for (int degree = 0; degree < 2 * points; degree++) {
            double sum = 0;
            for (int i = 0; i < points; i++)
                sum += gauss.weight[i] * std::pow(gauss.node[i], degree);
            check.near(sum, 1.0 / (degree + 1), 1e-14, "integral of x^" + std::to_string(degree));
        }
    }
}

void an_order_that_is_not_there_is_refused(Check &check)
{
    check.that(!make_element(2, HIGHEST_ORDER + 1) && !make_element(3, 0) && !make_element(4, 3),
               "make_element() gives none");
}

// With neighbours that are alike, of any level.
void gas_that_is_the_same_everywhere_stays_so(Check &check)
{
    for_elements([&](const Element &element, const std::string &name) {
        const Numbers before = smooth_gas(element, 0);
        const Predicted own(element, before, 0.01);
        for (FaceKind kind : {FaceKind::SAME, FaceKind::COARSER, FaceKind::FINER}) {
            Numbers after = before, scratch = own.scratch;
            Faces faces;
            for (int f = 0; f < 2 * element.sizes().dimensions; f++) {
                faces[f].kind = kind;
                faces[f].sub_face = 2;
                faces[f].other.fill(own.trace(element, f ^ 1));
            }
            element.correct(after.data(), 0.01, own.volume.data(), own.traces.data(), faces,
                            scratch.data());
            double most = 0;
            for (std::size_t i = 0; i < after.size(); i++)
                most = std::max(most, std::fabs(after[i] - before[i]));
            check.at_most(most, 1e-12, name + ": change");
        }
    });
}

void a_wall_lets_no_mass_and_no_energy_through(Check &check)
{
    for_elements([&](const Element &element, const std::string &name) {
        Numbers state = smooth_gas(element, 0.1);
        const Numbers before = means_of(element, state);
        Predicted own(element, state, 0.005);
        element.correct(state.data(), 0.005, own.volume.data(), own.traces.data(), Faces(),
                        own.scratch.data());
        const Numbers after = means_of(element, state);
        const int energy = element.sizes().unknowns - 1;
        check.near(after[0], before[0], 1e-13, name + ": mass");
        check.near(after[energy], before[energy], 1e-13, name + ": energy");
        check.that(after[1] != before[1], name + ": momentum changes");
    });
}

// One coarse cell among fine ones: what goes out of it through a face comes into them.
void what_leaves_a_cell_comes_into_its_finer_neighbours(Check &check)
{
    for_elements([&](const Element &element, const std::string &name) {
        const Sizes &sizes = element.sizes();
        const int subs = sizes.dimensions == 2 ? 3 : 9;
        const double step = 0.002;
        Numbers coarse = smooth_gas(element, 0.1), fine = smooth_gas(element, 0.3);
        Predicted big(element, coarse, step), small(element, fine, 3 * step);
        for (int face = 0; face < 2 * sizes.dimensions; face++) {
            Numbers coarse_after = coarse, none(sizes.state);
            Faces faces;
            faces[face].kind = FaceKind::FINER;
            faces[face].other.fill(small.trace(element, face ^ 1));
            // All other faces are walls, which change mass on neither side.
            element.correct(coarse_after.data(), step, none.data(), big.traces.data(), faces,
                            big.scratch.data());
            const double out = means_of(element, coarse_after)[0] - means_of(element, coarse)[0];
            double in = 0;
            for (int sub = 0; sub < subs; sub++) {
                Numbers after = fine;
                Faces others;
                others[face ^ 1].kind = FaceKind::COARSER;
                others[face ^ 1].sub_face = static_cast<unsigned char>(sub);
                others[face ^ 1].other[0] = big.trace(element, face);
                element.correct(after.data(), 3 * step, none.data(), small.traces.data(), others,
                                small.scratch.data());
                in += (means_of(element, after)[0] - means_of(element, fine)[0]) / (3 * subs);
            }
            check.near(out + in, 0, 1e-14, name + ": mass through face " + std::to_string(face));
            check.that(std::fabs(out) > 1e-6, name + ": there is a flow");
        }
    });
}

void children_joined_are_the_cell_that_was_cut(Check &check)
{
    for_elements([&](const Element &element, const std::string &name) {
        const Sizes &sizes = element.sizes();
        const int children = sizes.dimensions == 2 ? 9 : 27;
        const Numbers before = smooth_gas(element, 0.2);
        Numbers joined(sizes.state), child(sizes.state), scratch(sizes.scratch);
        Numbers mass(1);
        for (int c = 0; c < children; c++) {
            element.refine(before.data(), c, child.data(), scratch.data());
            element.add_child(child.data(), c, joined.data(), scratch.data());
            mass[0] += means_of(element, child)[0] / children;
        }
        double most = 0;
        for (std::size_t i = 0; i < before.size(); i++)
            most = std::max(most, std::fabs(joined[i] - before[i]));
        check.at_most(most, 1e-12, name + ": difference");
        check.near(mass[0], means_of(element, before)[0], 1e-14, name + ": mass of the children");
    });
}

void gas_that_is_no_number_has_no_speed(Check &check)
{
    const auto element = make_element(2, 3);
    Numbers state = smooth_gas(*element, 0.1);
    check.that(std::isfinite(element->look(state.data()).speed), "a speed");
    state[5] = -1;
    check.that(!std::isfinite(element->look(state.data()).speed), "none where density is negative");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(
        argc, argv,
        {{"gauss_points_integrate_polynomials", gauss_points_integrate_polynomials},
         {"an_order_that_is_not_there_is_refused", an_order_that_is_not_there_is_refused},
         {"gas_that_is_the_same_everywhere_stays_so", gas_that_is_the_same_everywhere_stays_so},
         {"a_wall_lets_no_mass_and_no_energy_through", a_wall_lets_no_mass_and_no_energy_through},
         {"what_leaves_a_cell_comes_into_its_finer_neighbours",
          what_leaves_a_cell_comes_into_its_finer_neighbours},
         {"children_joined_are_the_cell_that_was_cut", children_joined_are_the_cell_that_was_cut},
         {"gas_that_is_no_number_has_no_speed", gas_that_is_no_number_has_no_speed}});
}
