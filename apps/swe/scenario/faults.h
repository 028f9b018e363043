// SPDX-License-Identifier: GPL-3.0-or-later
// faults.h - lists of sub-faults, and the displacement of the bed that they make together.
//
// A list is a text.  '#' begins a comment.  The first line names the columns, in any order:
//     lon lat (degrees) or x_m y_m or x_km y_km   place of the sub-fault's centre
//     depth_m or depth_km                         of the centre
//     strike dip rake                             degrees
//     slip_m                                      m
//     length_m or length_km, width_m or width_km  along the strike, down the dip
// and every other line has a number for each.
#ifndef SWE_SCENARIO_FAULTS_H
#define SWE_SCENARIO_FAULTS_H

#include <string>
#include <string_view>
#include <vector>
#include "../config.h"
#include "okada.h"

namespace swe {

// Throws ConfigError, with file and line.  Degrees become metres about the domain's centre.
std::vector<SubFault> read_faults(const std::string &file, const Config &config);
std::vector<SubFault> parse_faults(std::string_view text, const std::string &file,
                                   const Config &config);

// A made-up great earthquake, about the domain's centre: what scenarios/tohoku-like.faults has.
std::vector<SubFault> synthetic_faults(const Config &config);

// Moment magnitude, for rocks of 40 GPa.
double magnitude(const std::vector<SubFault> &faults);

// The vertical displacement that sub-faults make: computed once on a raster over the domain, since
// Okada's formulas take a microsecond a sub-fault; cubic between its points.
class Uplift {
public:
    Uplift(const std::vector<SubFault> &faults, const Config &config);

    double at(double x, double y) const;

private:
    int nx_, ny_; // points; one beyond the domain on each side, and another
    double x0_, y0_, step_;
    std::vector<double> up_;
};

} // namespace swe
#endif
