// SPDX-License-Identifier: GPL-3.0-or-later
// scenario.h - the gas at the start, and at any time where the solution is known.
//
// vortex: isentropic, carried along by the background (Shu, Essentially non-oscillatory schemes,
// 1998, doi:10.1007/BFb0096355, section 5); in three dimensions the same in each plane.  wave: of
// density alone, carried along all axes at once.  pulse: denser and hotter gas spreads.
#ifndef EULER_SCENARIO_H
#define EULER_SCENARIO_H

#include "../config.h"

namespace euler {

// The unknowns (density, momentum, energy) at a place of the domain, at a time up to which nothing
// has come round a periodic domain more than a thousand times.
void gas_at(const Config &config, const double *where, double time, double *unknowns);

// Whether gas_at() knows times after 0.
bool has_solution(const Config &config);

} // namespace euler
#endif
