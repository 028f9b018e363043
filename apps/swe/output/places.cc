// SPDX-License-Identifier: GPL-3.0-or-later
// places.cc - see places.h.
#include "places.h"

#include <cstdio>

namespace swe {

namespace {

const char *const GLOBE = "globe";
const char *const SOURCE = "swe";

std::vector<double> axis_places(double begin, double length, int n)
{
    std::vector<double> places;
    for (int i = 0; i < n; i++)
        places.push_back(begin + (i + 0.5) * length / n);
    return places;
}

struct Axes {
    std::vector<double> x, y;
};

Axes axes_of(const RasterShape &shape)
{
    return {axis_places(shape.x0, shape.square * shape.squares_x, shape.nx),
            axis_places(shape.y0, shape.square * shape.squares_y, shape.ny)};
}

// `from` is x or y.
int define_axis(NetcdfFile &file, const char *from, const char *axis, int length)
{
    const std::string name = from;
    const int dimension = file.define_dimension(from, static_cast<std::size_t>(length));
    const int variable = file.define(from, NC_DOUBLE, {dimension});
    file.attribute(variable, "axis", axis);
    file.attribute(variable, "units", "m");
    file.attribute(variable, "standard_name", "projection_" + name + "_coordinate");
    file.attribute(variable, "long_name", name + " of the pixel's centre");
    return dimension;
}

void define_degrees(NetcdfFile &file, const char *name, const char *standard_name,
                    const char *units, int dimension)
{
    const int variable = file.define(name, NC_DOUBLE, {dimension});
    file.attribute(variable, "standard_name", standard_name);
    file.attribute(variable, "long_name", std::string(standard_name) + " of the pixel's centre");
    file.attribute(variable, "units", units);
}

// CF has no name for the projection, but programs that know PROJ's do.
std::string projection_text(const Projection &globe)
{
    char text[300];
    std::snprintf(text, sizeof text,
                  "x and y are +proj=eqc +lat_ts=%.10g +lat_0=%.10g +lon_0=%.10g +x_0=%.10g "
                  "+y_0=%.10g +R=%.10g +units=m",
                  globe.lat0, globe.lat0, globe.lon0, globe.x0, globe.y0, EARTH_RADIUS);
    return text;
}

void define_globe(NetcdfFile &file, const Projection &globe, const PlaceDimensions &of)
{
    define_degrees(file, "lon", "longitude", "degrees_east", of.x);
    define_degrees(file, "lat", "latitude", "degrees_north", of.y);
    const int mapping = file.define(GLOBE, NC_INT, {});
    file.attribute(mapping, "grid_mapping_name", "latitude_longitude");
    file.attribute(mapping, "earth_radius", EARTH_RADIUS);
    file.attribute(mapping, "longitude_of_prime_meridian", 0.0);
    file.attribute(mapping, "comment", projection_text(globe));
}

void check_axis(const NetcdfFile &file, const char *name, const std::vector<double> &expected)
{
    std::vector<double> there(expected.size());
    const int variable = file.variable(name, NC_DOUBLE, {expected.size()});
    file.check(nc_get_var_double(file.id(), variable, there.data()), "read");
    if (there != expected)
        file.fail(std::string("a raster of another domain: its ") + name +
                  " are others.  Move it away, or set output.directory");
}

} // namespace

int variable_id(const NetcdfFile &file, const char *name)
{
    int id;
    file.check(nc_inq_varid(file.id(), name, &id), std::string("find variable ") + name + " in");
    return id;
}

NetcdfFile create_raster_file(const std::string &path)
{
    NetcdfFile file = NetcdfFile::create(path, NC_64BIT_OFFSET);
    file.attribute(NC_GLOBAL, "Conventions", "CF-1.8");
    file.attribute(NC_GLOBAL, "title", "shallow water simulation");
    file.attribute(NC_GLOBAL, "source", SOURCE);
    return file;
}

bool is_raster_file(const std::string &path)
{
    try {
        const NetcdfFile file = NetcdfFile::open(path, NC_NOWRITE);
        return file.has("source") && file.text("source") == SOURCE;
    } catch (const OutputError &) {
        return false;
    }
}

PlaceDimensions define_places(NetcdfFile &file, const RasterShape &shape)
{
    const int y = define_axis(file, "y", "Y", shape.ny), x = define_axis(file, "x", "X", shape.nx);
    if (shape.globe)
        define_globe(file, *shape.globe, {y, x});
    return {y, x};
}

int define_field(NetcdfFile &file, const Field &field, const std::vector<int> &dimensions,
                 const RasterShape &shape)
{
    const int variable = file.define(field.name, NC_FLOAT, dimensions);
    file.attribute(variable, "long_name", field.long_name);
    file.attribute(variable, "units", field.units);
    if (*field.standard_name)
        file.attribute(variable, "standard_name", field.standard_name);
    if (shape.globe) {
        file.attribute(variable, "coordinates", "lat lon");
        file.attribute(variable, "grid_mapping", std::string(GLOBE) + ": lat lon");
    }
    const float none = NC_FILL_FLOAT;
    file.check(nc_put_att_float(file.id(), variable, "_FillValue", NC_FLOAT, 1, &none), "write");
    return variable;
}

void write_places(const NetcdfFile &file, const RasterShape &shape)
{
    Axes axes = axes_of(shape);
    const auto put = [&file](const char *name, const std::vector<double> &values) {
        file.check(nc_put_var_double(file.id(), variable_id(file, name), values.data()), "write");
    };
    put("x", axes.x);
    put("y", axes.y);
    if (!shape.globe)
        return;
    for (double &x : axes.x)
        x = shape.globe->lon(x);
    for (double &y : axes.y)
        y = shape.globe->lat(y);
    put("lon", axes.x);
    put("lat", axes.y);
    const int no_number = 0;
    file.check(nc_put_var_int(file.id(), variable_id(file, GLOBE), &no_number), "write");
}

void check_places(const NetcdfFile &file, const RasterShape &shape)
{
    const auto size = [](std::size_t nx, std::size_t ny) {
        return std::to_string(nx) + " x " + std::to_string(ny);
    };
    const std::string there = size(file.dimension("x"), file.dimension("y"));
    const std::string here =
        size(static_cast<std::size_t>(shape.nx), static_cast<std::size_t>(shape.ny));
    if (there != here)
        file.fail("a raster of " + there + " points, and output.raster_nx x output.raster_ny is " +
                  here + " now.  Set these as they were, move it away, or set output.directory");
    const Axes axes = axes_of(shape);
    check_axis(file, "x", axes.x);
    check_axis(file, "y", axes.y);
}

} // namespace swe
