// SPDX-License-Identifier: GPL-3.0-or-later
// raster.h - the water on a regular raster, a NetCDF file that grows by a frame at a time.
//
// A pixel has the values of the cell in which its centre is.  Centres and corners are put on the
// lattice of the grid (grid/triangle.h), where "in" is exact: of the cells around an edge or a
// corner exactly one has a centre that falls on it, on whatever ranks they are.
#ifndef SWE_OUTPUT_RASTER_H
#define SWE_OUTPUT_RASTER_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "../../scenario/projection.h"
#include "../../../lib/output/failure.h"
#include "netcdf_file.h"
#include "../snapshot.h"

namespace swe {

using namespace apps;

// What of the domain is drawn, and how finely.
struct RasterShape {
    double x0 = 0, y0 = 0, square = 1; // lower left corner and side of a base square, m
    int squares_x = 1, squares_y = 1;
    int nx = 256, ny = 256;                         // pixels, 1 .. 65536
    std::optional<Projection> globe = std::nullopt; // where on the Earth that is

    std::size_t pixels() const
    {
        return static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny);
    }
};

// nx * ny numbers each, rows from south to north.  Where this rank has no cell, 0 in all of them.
struct RasterFrame {
    std::vector<float> h, surface, speed, bed; // m, m, m/s, m; surface is NaN where dry
    std::uint64_t pixels = 0;                  // that have a cell of this rank
};

RasterFrame rasterise(const RasterShape &shape, const Snapshot &snapshot);

// Throws OutputError if there is a file at `path` to which a run that goes on cannot add frames: it
// is of another shape or simulation, or damaged, or may not be written.  Changes nothing.  `state`:
// of checkpoints.
void check_raster(const std::string &path, const RasterShape &shape, const std::string &state);

// The file of one run.  All functions are collective over comm and throw OutputError on all ranks.
class Raster {
public:
    // A new file, or, where `resume_time` is given, the frames of the file at `path` up to that
    // time; it must be of the same shape and state.  If there is no such file, a new one.
    Raster(const std::string &path, const RasterShape &shape, const std::string &state,
           std::optional<double> resume_time, MPI_Comm comm);

    // Adds a frame, or replaces the last if that is of the same time.  The frame is on the disk
    // when this returns: a run that is killed loses none before.
    void add(const Snapshot &snapshot);

private:
    std::string path;
    RasterShape shape;
    MPI_Comm comm;
    std::optional<NetcdfFile> file; // on rank 0
    std::size_t frames = 0;

    void put(const RasterFrame &frame, double time);
};

} // namespace swe
#endif
