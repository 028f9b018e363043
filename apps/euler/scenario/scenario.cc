// SPDX-License-Identifier: GPL-3.0-or-later
// scenario.cc - see scenario.h.
#include "scenario.h"

#include <cmath>
#include "../element/element.h"

namespace euler {
namespace {

const double PI = std::acos(-1.0);

struct Primitive {
    double density, pressure, velocity[MOST_DIMENSIONS];
};

// From the centre, which the background has carried along; in a periodic domain the shortest way.
void from_centre(const Config &c, const double *where, double time, double *distance)
{
    const double side = c.domain.side;
    for (int axis = 0; axis < c.domain.dimensions; axis++) {
        distance[axis] = where[axis] - c.scenario.x * side - c.scenario.velocity * time;
        if (c.domain.border == Border::PERIODIC)
            distance[axis] -= side * std::round(distance[axis] / side);
    }
}

void add_vortex(const Config &c, const double *distance, Primitive &gas)
{
    const auto &s = c.scenario;
    const double radius = s.radius * c.domain.side;
    const double x = distance[0] / radius, y = distance[1] / radius, rr = x * x + y * y;
    const double heat = 1 - (GAMMA - 1) * s.amplitude * s.amplitude / (8 * GAMMA * PI * PI) *
                                std::exp(1 - rr);
    const double turn = std::sqrt(s.pressure / s.density) * s.amplitude / (2 * PI) *
                        std::exp((1 - rr) / 2);
    gas.density *= std::pow(heat, 1 / (GAMMA - 1));
    gas.pressure *= std::pow(heat, GAMMA / (GAMMA - 1));
    gas.velocity[0] -= turn * y;
    gas.velocity[1] += turn * x;
}

void add_wave(const Config &c, const double *where, double time, Primitive &gas)
{
    double phase = 0;
    for (int axis = 0; axis < c.domain.dimensions; axis++)
        phase += where[axis] - c.scenario.velocity * time;
    gas.density *= 1 + c.scenario.amplitude * std::sin(2 * PI * phase / c.domain.side);
}

void add_pulse(const Config &c, const double *distance, Primitive &gas)
{
    const double radius = c.scenario.radius * c.domain.side;
    double rr = 0;
    for (int axis = 0; axis < c.domain.dimensions; axis++)
        rr += distance[axis] * distance[axis];
    const double more = 1 + c.scenario.amplitude * std::exp(-rr / (radius * radius));
    gas.density *= more;
    gas.pressure *= more;
}

} // namespace

void gas_at(const Config &c, const double *where, double time, double *unknowns)
{
    const auto &s = c.scenario;
    const int dimensions = c.domain.dimensions;
    double distance[MOST_DIMENSIONS];
    Primitive gas{s.density, s.pressure, {s.velocity, s.velocity, s.velocity}};
    from_centre(c, where, time, distance);
    if (c.name == Name::VORTEX)
        add_vortex(c, distance, gas);
    else if (c.name == Name::WAVE)
        add_wave(c, where, time, gas);
    else
        add_pulse(c, distance, gas);
    double kinetic = 0;
    unknowns[0] = gas.density;
    for (int axis = 0; axis < dimensions; axis++) {
        unknowns[axis + 1] = gas.density * gas.velocity[axis];
        kinetic += gas.density * gas.velocity[axis] * gas.velocity[axis] / 2;
    }
    unknowns[dimensions + 1] = gas.pressure / (GAMMA - 1) + kinetic;
}

bool has_solution(const Config &config)
{
    return config.name != Name::PULSE && config.domain.border == Border::PERIODIC;
}

} // namespace euler
