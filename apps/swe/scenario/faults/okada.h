// SPDX-License-Identifier: GPL-3.0-or-later
// okada.h - how the surface of the Earth moves when a rectangle in it slips.
//
// Okada 1985, doi 10.1785/BSSA0750041135: closed formulas for an elastic half-space that is the
// same everywhere; his equations (25) to (30), Chinnery's notation.
#ifndef SWE_SCENARIO_OKADA_H
#define SWE_SCENARIO_OKADA_H

namespace swe {

struct Displacement {
    double east, north, up; // m, or x, y, z of the fault's own coordinates
};

// Slip along the strike (left-lateral positive), up the dip (thrust positive), and apart, m.
struct Slip {
    double strike, dip, open;
};

// In the paper's coordinates: x along the strike, z up, the surface at z = 0, and the rectangle's
// lower edge from (0, 0, -depth) to (length, 0, -depth); it rises towards positive y with the angle
// `dip` (radians).  `medium` is mu / (lambda + mu): 1/2 if both are the same, as rocks' are nearly.
Displacement okada(double x, double y, double depth, double dip, double length, double width,
                   const Slip &slip, double medium = 0.5);

// One rectangle of a fault, as seismologists give it.
struct SubFault {
    double x, y, depth;       // of its centre, m; depth is positive
    double strike, dip, rake; // degrees: clockwise from north, down to the right of it, of the slip
    double slip;              // m
    double length, width;     // along the strike and down the dip, m
};

// Displacement of the surface at x (east), y (north), in m.
Displacement displacement(const SubFault &fault, double x, double y);

} // namespace swe
#endif
