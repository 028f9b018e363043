// SPDX-License-Identifier: GPL-3.0-or-later
// bathymetry.cc - does a NetCDF file give the heights that are in it, whatever way round and in
// whatever numbers, and does a wrong file give a message with the variable and what is right?
#include "../scenario/basin.h"
#include "../scenario/bed/bathymetry.h"
#include <filesystem>
#include <fstream>
#include <functional>
#include <netcdf.h>
#include <unistd.h>
#include "../../lib/promises.h"
#include "temporary.h"

using namespace swe;

namespace {

// 200 km square about 143 E, 38 N.
Config domain(const std::vector<std::string> &words = {})
{
    return parse_config("name = \"tsunami\"\n[domain]\nsquare = 200e3\nx0 = -100e3\ny0 = -100e3\n",
                        "test.toml", words);
}

// A plane, so that bilinear sampling gives it back.
double plane(double lon, double lat) { return 100 * (lon - 143) - 300 * (lat - 38) - 1000; }

// What a test file is to be; the defaults are a good one.
struct Kind {
    const char *elevation = "elevation", *lat = "lat", *lon = "lon";
    nc_type type = NC_SHORT;
    double west = 141, south = 36, lon_step = 0.05, lat_step = 0.05;
    std::size_t columns = 81, rows = 81;
    double scale = 0, offset = 0;           // attributes, if scale is not 0
    double axis_scale = 0, axis_offset = 0; // the same, of both axes
    int format = 0;
    bool transposed = false;
    std::function<double(double, double)> height = plane;
    std::function<void(int file, int variable)> more = nullptr; // while definitions are open
    std::function<void(std::vector<double> &)> spoil_lat = nullptr, spoil_heights = nullptr;
};

void must(int status)
{
    if (status != NC_NOERR)
        throw std::runtime_error(nc_strerror(status));
}

void pack(int file, int variable, double scale, double offset)
{
    if (scale == 0)
        return;
    must(nc_put_att_double(file, variable, "scale_factor", NC_DOUBLE, 1, &scale));
    must(nc_put_att_double(file, variable, "add_offset", NC_DOUBLE, 1, &offset));
}

double packed(double value, double scale, double offset)
{
    return scale == 0 ? value : (value - offset) / scale;
}

void write(const std::string &path, const Kind &k)
{
    int file, dims[2], lat_id, lon_id, z;
    must(nc_create(path.c_str(), NC_CLOBBER | k.format, &file));
    must(nc_def_dim(file, k.lat, k.rows, &dims[0]));
    must(nc_def_dim(file, k.lon, k.columns, &dims[1]));
    must(nc_def_var(file, k.lat, NC_DOUBLE, 1, &dims[0], &lat_id));
    must(nc_def_var(file, k.lon, NC_DOUBLE, 1, &dims[1], &lon_id));
    if (k.transposed)
        std::swap(dims[0], dims[1]);
    must(nc_def_var(file, k.elevation, k.type, 2, dims, &z));
    pack(file, z, k.scale, k.offset);
    for (int axis : {lat_id, lon_id})
        pack(file, axis, k.axis_scale, k.axis_offset);
    if (k.more)
        k.more(file, z);
    must(nc_enddef(file));
    std::vector<double> lat, lon, heights;
    for (std::size_t i = 0; i < k.rows; i++)
        lat.push_back(k.south + double(i) * k.lat_step);
    for (std::size_t i = 0; i < k.columns; i++)
        lon.push_back(k.west + double(i) * k.lon_step);
    for (double y : lat)
        for (double x : lon)
            heights.push_back(packed(k.height(x, y), k.scale, k.offset));
    for (auto *axis : {&lat, &lon})
        for (double &degrees : *axis)
            degrees = packed(degrees, k.axis_scale, k.axis_offset);
    if (k.spoil_lat)
        k.spoil_lat(lat);
    if (k.spoil_heights)
        k.spoil_heights(heights);
    must(nc_put_var_double(file, lat_id, lat.data()));
    must(nc_put_var_double(file, lon_id, lon.data()));
    if (k.type != NC_CHAR)
        must(nc_put_var_double(file, z, heights.data()));
    must(nc_close(file));
}

void agrees(Check &check, const Kind &kind, double tolerance, const std::string &what,
            const Config &config = domain())
{
    Temporary place;
    write(place.path + "/b.nc", kind);
    Bathymetry b(place.path + "/b.nc", config);
    Projection globe(config);
    for (double y : {-1e5, -33e3, 0.0, 71e3, 1e5})
        for (double x : {-1e5, -12345.0, 0.0, 88e3, 1e5})
            check.near(b.at(x, y), kind.height(globe.lon(x), globe.lat(y)), tolerance, what);
    check.that(b.columns() < 80 && b.rows() < 80, what + ": only the domain is read");
    check.near(b.spacing(),
               std::fmin(std::fabs(kind.lat_step) * globe.metres_lat,
                         std::fabs(kind.lon_step) * globe.metres_lon),
               1, what + ": distance of points");
}

void kinds(Check &check)
{
    agrees(check, {}, 1, "whole metres");
    Kind k;
    k.type = NC_FLOAT;
    agrees(check, k, 1e-3, "floats");
    k.format = NC_NETCDF4;
    agrees(check, k, 1e-3, "NetCDF-4");
    k.elevation = "z", k.lat = "y", k.lon = "x";
    agrees(check, k, 1e-3, "COARDS");
    k.lat = "latitude", k.lon = "longitude", k.type = NC_DOUBLE, k.format = NC_64BIT_DATA;
    agrees(check, k, 1e-3, "long names");
    k = {};
    k.south = 40, k.lat_step = -0.05;
    agrees(check, k, 1, "latitude falls");
    k.west = 145, k.lon_step = -0.05;
    agrees(check, k, 1, "both fall");
    k = {};
    k.scale = 0.1, k.offset = -1000;
    agrees(check, k, 0.11, "packed");
    k.axis_scale = 1.0 / 128, k.axis_offset = 90;
    agrees(check, k, 0.11, "axes are packed, too");
}

std::function<void(int, int)> with_text(const char *name, const std::string &text)
{
    return
        [=](int file, int z) { must(nc_put_att_text(file, z, name, text.size(), text.c_str())); };
}

void attributes(Check &check)
{
    Kind k;
    k.type = NC_FLOAT;
    for (const char *units : {"", "m", "meter", "meters", "metre", "metres", "Meters", "m \n"}) {
        k.more = with_text("units", units);
        agrees(check, k, 1e-3, std::string("units ") + units);
    }
    k.more = with_text("positive", "up");
    agrees(check, k, 1e-3, "upwards");
    k.more = [](int file, int z) {
        const char *metres = "m";
        must(nc_put_att_string(file, z, "units", 1, &metres));
        double range[2] = {-2000, 100};
        must(nc_put_att_double(file, z, "valid_range", NC_DOUBLE, 2, range));
    };
    k.format = NC_NETCDF4;
    agrees(check, k, 1e-3, "words of NetCDF-4, and a range in which all is");
}

void depths(Check &check)
{
    for (const char *down : {"down", "Down"}) {
        Temporary place;
        Kind k;
        k.type = NC_FLOAT;
        k.more = with_text("positive", down);
        write(place.path + "/b.nc", k);
        Bathymetry b(place.path + "/b.nc", domain());
        check.near(b.at(0, 0), 1000, 1e-3, "a bed above the sea");
    }
}

// 179 degrees east, 179 west and 181 east, in files that count otherwise.
void meridians(Check &check)
{
    Kind k;
    k.type = NC_FLOAT;
    k.west = -180, k.lon_step = 0.5, k.columns = 720, k.lat_step = 0.5, k.south = 20;
    k.height = [](double lon, double lat) {
        return -3000 + 5 * (lat - 38) + 10 * std::remainder(lon - 180, 360);
    };
    agrees(check, k, 6, "round the date line, -180 to 179.5", domain({"scenario.lon0=180"}));
    agrees(check, k, 6, "the same, counted from the west", domain({"scenario.lon0=-180"}));
    k.columns = 721;
    agrees(check, k, 6, "with the meridian of 180 twice", domain({"scenario.lon0=179.3"}));
    k.west = 0;
    agrees(check, k, 6, "0 to 360", domain({"scenario.lon0=-179"}));
    k = {};
    k.west = 141 - 360;
    k.type = NC_FLOAT;
    k.height = [](double lon, double) { return 10 * (std::remainder(lon - 143, 360)); };
    agrees(check, k, 1e-3, "a part of the globe, a turn away");
}

void says(Check &check, const Kind &kind, const char *what, const Config &config = domain())
{
    Temporary place;
    std::string path = place.path + "/b.nc";
    write(path, kind);
    try {
        Bathymetry b(path, config);
        check.that(false, std::string("taken, where \"") + what + "\" was expected");
    } catch (const ConfigError &e) {
        check.contains(e.what(), path);
        check.contains(e.what(), what);
    }
}

void wrong_variables(Check &check)
{
    Kind k;
    k.elevation = "height";
    says(check, k, "no variable elevation or z");
    k = {};
    k.type = NC_CHAR;
    says(check, k, "variable elevation: must have numbers");
    k = {};
    k.transposed = true;
    says(check, k, "variable elevation: must have the dimensions (lat, lon), and has (lon, lat)");
    k = {};
    k.lat = "north";
    says(check, k, "must have the dimensions (lat, lon), and has (north, lon)");
    k = {};
    k.more = [](int file, int z) { must(nc_put_att_text(file, z, "scale_factor", 3, "abc")); };
    says(check, k, "variable elevation: attribute scale_factor must be one number");
    k = {};
    k.rows = 1;
    says(check, k, "dimension lat is 1 long");
}

void wrong_attributes(Check &check)
{
    Kind k;
    for (const char *units : {"km", "ft", "dm", "fathoms"}) {
        k.more = with_text("units", units);
        says(check, k,
             (std::string("variable elevation: attribute units is \"") + units +
              "\"; heights must be in m")
                 .c_str());
    }
    k.more = with_text("units", std::string(300, 'm'));
    says(check, k, "variable elevation: attribute units must be a word");
    k.more = with_text("units", "k\nm");
    says(check, k, "attribute units is \"k?m\"");
    k.more = with_text("positive", "west");
    says(check, k,
         "variable elevation: attribute positive is \"west\"; must be \"up\" or \"down\"");
    k.more = [](int file, int z) {
        short one = 1;
        must(nc_put_att_short(file, z, "positive", NC_SHORT, 1, &one));
    };
    says(check, k, "variable elevation: attribute positive must be a word");
    k.more = [](int file, int z) {
        short one = 1;
        must(nc_put_att_short(file, z, "valid_range", NC_SHORT, 1, &one));
    };
    says(check, k, "variable elevation: attribute valid_range must be 2 numbers");
}

// A number in the middle, beyond an end of the range, which would be a height without that.
void ranges(Check &check)
{
    auto beyond = [&check](const char *name, std::vector<short> values, double spoilt,
                           double scale) {
        Kind k;
        k.scale = scale;
        k.more = [=](int file, int z) {
            must(nc_put_att_short(file, z, name, NC_SHORT, values.size(), values.data()));
        };
        k.spoil_heights = [=](std::vector<double> &z) { z[40 * 81 + 40] = spoilt; };
        says(check, k, "variable elevation: missing at longitude 143, latitude 38");
    };
    for (double scale : {0.0, 0.5}) {
        beyond("valid_min", {-9000}, -9999, scale);
        beyond("valid_max", {3000}, 3001, scale);
        beyond("valid_range", {-9000, 3000}, -9999, scale);
        beyond("valid_range", {-9000, 3000}, 9999, scale);
    }
}

// What a writer leaves where it has written nothing: of the type, if no attribute says otherwise.
void unwritten(Check &check)
{
    const char *const missing = "variable elevation: missing at longitude 143, latitude 38";
    Kind k;
    k.scale = 0.1;
    auto spoilt = [&k](nc_type type, double by) {
        k.type = type;
        k.spoil_heights = [=](std::vector<double> &z) { z[40 * 81 + 40] = by; };
    };
    spoilt(NC_SHORT, NC_FILL_SHORT);
    says(check, k, missing);
    k.scale = 1e-6;
    spoilt(NC_INT, NC_FILL_INT);
    says(check, k, missing);
    k.scale = 0.1, k.offset = -4000;
    spoilt(NC_USHORT, NC_FILL_USHORT);
    k.format = NC_NETCDF4;
    says(check, k, missing);
    k = {};
    k.scale = 0.1;
    k.more = [](int file, int z) {
        short fill = -9999;
        must(nc_put_att_short(file, z, "_FillValue", NC_SHORT, 1, &fill));
    };
    k.height = [](double, double) { return double(NC_FILL_SHORT) / 10; };
    agrees(check, k, 0.11, "another value is that of nothing");
    k = {};
    k.type = NC_BYTE, k.scale = 10;
    k.height = [](double, double) { return double(NC_FILL_BYTE) * 10; };
    agrees(check, k, 1, "bytes have no such value");
}

// Numbers of 16 bits from 0 on, in a format that has only others.
void unsigned_numbers(Check &check)
{
    Kind k;
    k.more = [](int file, int z) {
        const double scale = 0.1, offset = -4000;
        must(nc_put_att_double(file, z, "scale_factor", NC_DOUBLE, 1, &scale));
        must(nc_put_att_double(file, z, "add_offset", NC_DOUBLE, 1, &offset));
        must(nc_put_att_text(file, z, "_Unsigned", 4, "true"));
    };
    k.spoil_heights = [](std::vector<double> &z) {
        for (double &value : z) {
            value = std::round((value + 4000) / 0.1);
            value -= value > 32767 ? 65536 : 0;
        }
    };
    agrees(check, k, 0.11, "depths to -4000");
    k.height = [](double lon, double lat) { return plane(lon, lat) + 1500; };
    agrees(check, k, 0.11, "heights");
    auto more = k.more;
    k.more = [more](int file, int z) {
        more(file, z);
        short range[] = {100, -100};
        must(nc_put_att_short(file, z, "valid_range", NC_SHORT, 2, range));
    };
    agrees(check, k, 0.11, "a range in such numbers");
    auto heights = k.spoil_heights;
    k.spoil_heights = [heights](std::vector<double> &z) {
        heights(z);
        z[40 * 81 + 40] = -99;
    };
    says(check, k, "variable elevation: missing at longitude 143, latitude 38");
}

void wrong_numbers(Check &check)
{
    Kind k;
    k.spoil_lat = [](std::vector<double> &lat) { lat[7] = lat[6]; };
    says(check, k, "variable lat: must rise or fall all along, and does not at element 7");
    k.spoil_lat = [](std::vector<double> &lat) { lat[7] = NAN; };
    says(check, k, "variable lat: element 7 is nan");
    k.spoil_lat = [](std::vector<double> &lat) { lat[80] = 4e5; };
    says(check, k, "variable lat: element 80 is 400000; must be degrees");
    k = {};
    k.type = NC_FLOAT;
    k.spoil_heights = [](std::vector<double> &z) { z[40 * 81 + 40] = NAN; };
    says(check, k, "variable elevation: nan m at longitude 143, latitude 38");
    k.type = NC_SHORT;
    k.spoil_heights = [](std::vector<double> &z) { z[40 * 81 + 40] = 32767; };
    says(check, k, "variable elevation: 32767 m at longitude 143, latitude 38");
    k.more = [](int file, int z) {
        short fill = -9999;
        must(nc_put_att_short(file, z, "_FillValue", NC_SHORT, 1, &fill));
    };
    k.spoil_heights = [](std::vector<double> &z) { z[40 * 81 + 40] = -9999; };
    says(check, k, "variable elevation: missing at longitude 143, latitude 38");
}

void other_places(Check &check)
{
    says(check, {}, "variable lon: the domain needs", domain({"scenario.lon0=150"}));
    says(check, {}, "variable lat: the domain needs", domain({"scenario.lat0=35"}));
    Kind narrow;
    narrow.columns = 60;
    says(check, narrow, "degrees, and the file has 141 to 143.95;", domain());
}

void other_files(Check &check)
{
    Temporary place;
    auto fails = [&](const std::string &file, const char *what) {
        try {
            Bathymetry b(file, domain());
            check.that(false, file + ": taken");
        } catch (const ConfigError &e) {
            check.contains(e.what(), file);
            check.contains(e.what(), what);
        }
    };
    fails(place.path + "/none.nc", "No such file");
    std::ofstream(place.path + "/text.nc") << "this is no NetCDF file\n";
    fails(place.path + "/text.nc", "NetCDF: ");
    std::string cut = place.path + "/cut.nc";
    for (double part : {0.0, 0.02, 0.3, 0.85, 0.9995}) {
        write(cut, {});
        std::filesystem::resize_file(
            cut, static_cast<std::uintmax_t>(part * double(std::filesystem::file_size(cut))));
        fails(cut, "cut off");
    }
    // Dimensions of which the file has nothing.
    Kind k;
    std::string huge = place.path + "/huge.nc";
    int file, dims[2], v;
    must(nc_create(huge.c_str(), NC_CLOBBER | NC_NETCDF4, &file));
    must(nc_def_dim(file, "lat", 200000, &dims[0]));
    must(nc_def_dim(file, "lon", 200000, &dims[1]));
    must(nc_def_var(file, "lat", NC_DOUBLE, 1, &dims[0], &v));
    must(nc_def_var(file, "lon", NC_DOUBLE, 1, &dims[1], &v));
    std::vector<double> lat, lon;
    for (int i = 0; i < 200000; i++) {
        lat.push_back(38 + (i - 1e5) * 1e-5);
        lon.push_back(143 + (i - 1e5) * 2e-5);
    }
    int z;
    std::size_t chunk[2] = {1000, 1000};
    must(nc_def_var(file, "elevation", NC_SHORT, 2, dims, &z));
    must(nc_def_var_chunking(file, z, NC_CHUNKED, chunk));
    must(nc_enddef(file));
    must(nc_put_var_double(file, 0, lat.data()));
    must(nc_put_var_double(file, 1, lon.data()));
    must(nc_close(file));
    fails(huge, "points are in the domain; at most 134217728");
}

// What tools/make_bathymetry writes is the basin.
void basin(Check &check)
{
    Temporary place;
    Config c = domain();
    Projection globe(c);
    Basin made(c);
    write_bathymetry(place.path + "/basin.nc", {141.5, 144.5, 36.5, 39.5}, 361, 361,
                     [&](double lon, double lat) { return made.at(globe.x(lon), globe.y(lat)); });
    Bathymetry read(place.path + "/basin.nc", c);
    double worst = 0;
    for (double y = -99e3; y < 100e3; y += 5e3)
        for (double x = -99e3; x < 100e3; x += 5e3)
            worst = std::fmax(worst, std::fabs(read.at(x, y) - made.at(x, y)));
    check.that(worst < 30, "worst difference of a km's raster: " + Check::text(worst) + " m");
}

} // namespace

int main(int argc, char **argv)
{
    return run_promises(argc, argv,
                        {{"heights_are_those_of_the_file", kinds},
                         {"longitudes_go_round_the_globe", meridians},
                         {"wrong_variables_are_told", wrong_variables},
                         {"attributes_of_good_files_are_taken", attributes},
                         {"depths_are_heights_the_other_way", depths},
                         {"attributes_with_another_meaning_are_told", wrong_attributes},
                         {"numbers_beyond_the_valid_range_are_missing", ranges},
                         {"what_was_never_written_is_missing", unwritten},
                         {"numbers_may_be_unsigned_by_an_attribute", unsigned_numbers},
                         {"wrong_numbers_are_told", wrong_numbers},
                         {"files_that_miss_the_domain_are_told", other_places},
                         {"files_that_are_cut_off_or_huge_are_told", other_files},
                         {"synthetic_basin_comes_back", basin}});
}
