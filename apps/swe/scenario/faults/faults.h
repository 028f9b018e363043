// SPDX-License-Identifier: GPL-3.0-or-later
// faults.h - lists of sub-faults.
//
// A list is a text.  '#' begins a comment.  The first line names the columns, in any order:
//     lon lat (degrees) or x_m y_m or x_km y_km   a point of the sub-fault
//     depth_m or depth_km                         of this point
//     strike dip rake                             degrees
//     slip_m                                      m
//     length_m or length_km, width_m or width_km  along the strike, down the dip
// and every other line has a number for each.  Which point it is, scenario.fault_reference says:
// the rectangle's centre, the middle of its upper edge, or the end of that edge from which it goes
// along the strike.
#ifndef SWE_SCENARIO_FAULTS_H
#define SWE_SCENARIO_FAULTS_H

#include <string>
#include <string_view>
#include <vector>
#include "../../config.h"
#include "okada.h"

namespace swe {

// Throws ConfigError, with file and line.  Degrees become metres about the domain's centre.
std::vector<SubFault> read_faults(const std::string &file, const Config &config);
std::vector<SubFault> parse_faults(std::string_view text, const std::string &file,
                                   const Config &config);

// The same one with place and depth of its centre, where those given are of the reference point.
SubFault from_reference(SubFault fault, FaultReference reference);

// A made-up great earthquake, about the domain's centre: what scenarios/tohoku-like.faults has.
std::vector<SubFault> synthetic_faults(const Config &config);

// Moment magnitude, for rocks of 40 GPa.
double magnitude(const std::vector<SubFault> &faults);

} // namespace swe
#endif
