// SPDX-License-Identifier: GPL-3.0-or-later
// difference.h - how far a simulation is from the scenario's exact solution.
//
// Cell by cell against what the scheme itself would begin with at this time: at time 0 there is no
// difference, whatever the bed, and later it is the method's error alone.
#ifndef SWE_DIFFERENCE_H
#define SWE_DIFFERENCE_H

#include "simulation.h"

namespace swe {

// Of a quantity over the whole domain: mean, root of the mean square, and largest value.
struct Norms {
    double l1 = 0, l2 = 0, max = 0;
};

struct Difference {
    Norms height;   // of the water, in m
    Norms momentum; // length of the vector of its difference, in m2/s
};

// Collective.  The scenario must have a solution (scenario.h).
template <class Real> Difference difference_from_solution(Simulation<Real> &simulation);

} // namespace swe
#endif
