// SPDX-License-Identifier: GPL-3.0-or-later
// bathymetry.h - heights of the bed from a NetCDF file as GEBCO and others give it.
//
// The file has a variable `elevation` or `z` in m, upwards unless its attribute positive is "down",
// of any numeric type; its two dimensions are latitude and longitude (`lat` and `lon`, `latitude`
// and `longitude`, or `y` and `x`), with a coordinate variable each, in degrees, rising or falling.
// All of them with scale_factor and add_offset or without.  What _FillValue (without it: the
// type's), missing_value, valid_min, valid_max or valid_range exclude is missing; they are of the
// numbers in the file, which may be _Unsigned.
// Only what the domain needs is read.  Between points heights are bilinear.
#ifndef SWE_SCENARIO_BATHYMETRY_H
#define SWE_SCENARIO_BATHYMETRY_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include "../../config.h"
#include "../projection.h"

namespace swe {

class Bathymetry {
public:
    // Throws ConfigError with file and variable: what is missing or of a wrong kind, a file that
    // does not cover the domain, missing or impossible heights, more points than memory is for.
    Bathymetry(const std::string &file, const Config &config);

    // Height of the bed at a place of the domain; the nearest, at others.
    double at(double x, double y) const;

    // CRC-32 of the heights in use and of their places.
    std::uint32_t crc() const;

    // The shortest distance of two points at the domain's centre, m.
    double spacing() const;

    double west() const { return lon_.front(); }
    double east() const { return lon_.back(); }
    double south() const { return lat_.front(); }
    double north() const { return lat_.back(); }
    std::size_t columns() const { return lon_.size(); }
    std::size_t rows() const { return lat_.size(); }

private:
    Projection globe_;
    std::vector<double> lon_, lat_; // rising
    std::vector<float> height_;     // [rows][columns]
};

// Writes such a file, in NetCDF's classic format: heights in whole metres at columns x rows points,
// those at the ends included.  Throws std::runtime_error.
struct Region {
    double west, east, south, north; // degrees
};
void write_bathymetry(const std::string &file, const Region &region, std::size_t columns,
                      std::size_t rows,
                      const std::function<double(double lon, double lat)> &height);

} // namespace swe
#endif
