// SPDX-License-Identifier: GPL-3.0-or-later
// projection.h - degrees on the globe and metres in the domain.
//
// Equirectangular about the domain's centre: true to length along its meridian and along its
// parallel of latitude.  Off the latter lengths from west to east are wrong by the ratio of the
// cosines of latitude: at 800 km off 38 degrees north they are 12 % too long to the north of it and
// 8 % too short to the south.
#ifndef SWE_SCENARIO_PROJECTION_H
#define SWE_SCENARIO_PROJECTION_H

#include <cmath>
#include "../config.h"

namespace swe {

constexpr double PI = 3.14159265358979323846;
constexpr double EARTH_RADIUS = 6371000.8; // m, mean radius of WGS 84 (IUGG)

struct Projection {
    double x0, y0, lon0, lat0;     // the centre, in m and in degrees
    double metres_lon, metres_lat; // of a degree

    explicit Projection(const Config &c)
        : x0(c.domain.x0 + c.width() / 2), y0(c.domain.y0 + c.height() / 2), lon0(c.scenario.lon0),
          lat0(c.scenario.lat0), metres_lon(EARTH_RADIUS * PI / 180 * std::cos(lat0 * PI / 180)),
          metres_lat(EARTH_RADIUS * PI / 180)
    {
    }

    double lon(double x) const { return lon0 + (x - x0) / metres_lon; }
    double lat(double y) const { return lat0 + (y - y0) / metres_lat; }

    // By which part lengths from west to east are too long at y; negative: too short.
    double stretch(double y) const
    {
        return std::cos(lat0 * PI / 180) / std::cos(lat(y) * PI / 180) - 1;
    }

    // Any of lon, lon + 360, lon - 360: the place nearest to the centre.
    double x(double lon) const { return x0 + std::remainder(lon - lon0, 360) * metres_lon; }
    double y(double lat) const { return y0 + (lat - lat0) * metres_lat; }
};

} // namespace swe
#endif
