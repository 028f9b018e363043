// SPDX-License-Identifier: GPL-3.0-or-later
// places.h - where the pixels of a raster are: its dimensions and coordinates in a NetCDF file, by
// the CF conventions 1.8, https://cfconventions.org.
//
// x and y are metres in the domain.  Where the domain is a part of the Earth, each x has a
// longitude and each y a latitude as well, which programs that draw maps go by.
#ifndef SWE_OUTPUT_PLACES_H
#define SWE_OUTPUT_PLACES_H

#include "raster/netcdf_file.h"
#include "raster/raster.h"

namespace swe {

// A quantity of each pixel.
struct Field {
    const char *name, *long_name, *units, *standard_name; // the last may be empty
};

struct PlaceDimensions {
    int y, x;
};

// A new file in the classic format with 64-bit offsets, which every tool reads, in define mode.
NetcdfFile create_raster_file(const std::string &path);

// Is this one of ours?
bool is_raster_file(const std::string &path);

// Defines the dimensions, and the coordinates as variables.
PlaceDimensions define_places(NetcdfFile &file, const RasterShape &shape);

// Defines a variable of floats with these dimensions, the last of which are y and x.
int define_field(NetcdfFile &file, const Field &field, const std::vector<int> &dimensions,
                 const RasterShape &shape);

// Writes the coordinates; in data mode.
void write_places(const NetcdfFile &file, const RasterShape &shape);

// Throws OutputError if the file is of another raster.
void check_places(const NetcdfFile &file, const RasterShape &shape);

int variable_id(const NetcdfFile &file, const char *name);

} // namespace swe
#endif
