// SPDX-License-Identifier: GPL-3.0-or-later
// make_bathymetry.cc - CONFIG OUTPUT.nc [SECONDS] [KEY=VALUE...]: writes the synthetic basin of a
// tsunami scenario as a NetCDF file like GEBCO's, a point every SECONDS of arc (60) and some way
// beyond the domain: to try programs out that want a file, and for tests.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include "../scenario/basin.h"
#include "../scenario/bed/bathymetry.h"

namespace {

void write(const swe::Config &config, const std::string &file, double seconds)
{
    swe::Projection globe(config);
    swe::Basin basin(config);
    double degrees = seconds / 3600;
    const auto &d = config.domain;
    auto down = [degrees](double v) { return std::floor(v / degrees - 1) * degrees; };
    auto up = [degrees](double v) { return std::ceil(v / degrees + 1) * degrees; };
    swe::Region region{down(globe.lon(d.x0)), up(globe.lon(d.x0 + config.width())),
                       down(globe.lat(d.y0)), up(globe.lat(d.y0 + config.height()))};
    auto columns = static_cast<std::size_t>(std::lround((region.east - region.west) / degrees)) + 1;
    auto rows = static_cast<std::size_t>(std::lround((region.north - region.south) / degrees)) + 1;
    if (columns > 100000 || rows > 100000 || columns * rows > 1000000000)
        throw std::runtime_error(std::to_string(columns) + " x " + std::to_string(rows) +
                                 " points: too many; take more SECONDS");
    swe::write_bathymetry(file, region, columns, rows, [&](double lon, double lat) {
        return basin.at(globe.x(lon), globe.y(lat));
    });
    std::printf("%s: %zu x %zu points, longitude %g to %g, latitude %g to %g\n", file.c_str(),
                columns, rows, region.west, region.east, region.south, region.north);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return std::fprintf(stderr, "usage: %s CONFIG OUTPUT.nc [SECONDS] [KEY=VALUE...]\n",
                            argv[0]),
               2;
    char *end = nullptr;
    double seconds = argc > 3 ? std::strtod(argv[3], &end) : 60;
    bool given = end && end != argv[3] && !*end;
    if (!given)
        seconds = 60;
    if (!(seconds >= 1 && seconds <= 36000))
        return std::fprintf(stderr, "%s: SECONDS must be from 1 to 36000\n", argv[3]), 2;
    try {
        write(swe::read_config(argv[1], {argv + (given ? 4 : 3), argv + argc}), argv[2], seconds);
    } catch (const std::exception &e) {
        return std::fprintf(stderr, "%s\n", e.what()), 1;
    }
    return 0;
}
