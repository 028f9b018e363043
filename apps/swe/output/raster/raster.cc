// SPDX-License-Identifier: GPL-3.0-or-later
// raster.cc - the raster's file; see raster.h.
#include "raster.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include "../../../lib/output/files.h"
#include "../checkpoint/identity.h"
#include "../places.h"

namespace swe {

using namespace apps;

namespace {

constexpr int FIELDS = 4;
constexpr Field FIELD[FIELDS] = {
    {"h", "height of the water above the bed", "m", ""},
    {"surface", "height of the water's surface", "m", "water_surface_height_above_reference_datum"},
    {"speed", "speed of the water, mean over its height", "m s-1", "sea_water_speed"},
    {"bed", "height of the bed", "m", ""},
};

// Time comes first among the coordinates.  A frame is there when it is synchronised.
NetcdfFile create(const std::string &path, const RasterShape &shape, const std::string &state)
{
    NetcdfFile file = create_raster_file(path);
    file.attribute(NC_GLOBAL, "configuration", state);
    const int time = file.define_dimension("time", NC_UNLIMITED);
    const int times = file.define("time", NC_DOUBLE, {time});
    file.attribute(times, "axis", "T");
    file.attribute(times, "long_name",
                   "time since the beginning; CF asks for a date, which means nothing");
    file.attribute(times, "standard_name", "time");
    file.attribute(times, "units", "seconds since 2000-01-01 00:00:00");
    file.attribute(times, "calendar", "standard");
    const PlaceDimensions of = define_places(file, shape);
    for (const Field &field : FIELD)
        file.attribute(define_field(file, field, {time, of.y, of.x}, shape), "cell_methods",
                       "time: point");
    file.check(nc_enddef(file.id()), "write");
    write_places(file, shape);
    file.check(nc_sync(file.id()), "write");
    return file;
}

NetcdfFile open_former(const std::string &path, const RasterShape &shape, const std::string &state)
{
    NetcdfFile file = NetcdfFile::open(path, NC_NOWRITE);
    check_places(file, shape);
    file.expect("configuration", state, MOVE_IT_AWAY);
    return file;
}

// Number of frames up to the time.  One that a full disk has cut off has none where its time would
// be, which reads as 0: times rise.  Of one that was cut off behind its time the file knows.
std::size_t frames_until(const NetcdfFile &file, double time)
{
    const std::size_t frames = file.dimension("time");
    const int variable = file.variable("time", NC_DOUBLE, {frames});
    std::vector<double> times(std::min<std::uint64_t>(frames, file.whole_records()));
    const std::size_t start = 0, count = times.size();
    if (count > 0)
        file.check(nc_get_vara_double(file.id(), variable, &start, &count, times.data()), "read");
    std::size_t n = 0;
    while (n < count && times[n] <= time && (n == 0 || times[n] > times[n - 1]))
        n++;
    return n;
}

void write_frame(const NetcdfFile &file, const RasterShape &shape, std::size_t frame, int field,
                 const std::vector<float> &data)
{
    const std::size_t start[] = {frame, 0, 0};
    const std::size_t count[] = {1, static_cast<std::size_t>(shape.ny),
                                 static_cast<std::size_t>(shape.nx)};
    file.check(nc_put_vara_float(file.id(), variable_id(file, FIELD[field].name), start, count,
                                 data.data()),
               "write");
}

void write_time(const NetcdfFile &file, std::size_t frame, double time)
{
    file.check(nc_put_var1_double(file.id(), variable_id(file, "time"), &frame, &time), "write");
}

double time_of(const NetcdfFile &file, std::size_t frame)
{
    double time;
    file.check(nc_get_var1_double(file.id(), variable_id(file, "time"), &frame, &time), "read");
    return time;
}

void copy_frame(const NetcdfFile &from, const NetcdfFile &to, const RasterShape &shape,
                std::size_t frame)
{
    const std::size_t start[] = {frame, 0, 0};
    const std::size_t ny = static_cast<std::size_t>(shape.ny),
                      nx = static_cast<std::size_t>(shape.nx);
    const std::size_t count[] = {1, ny, nx};
    const std::size_t frames = from.dimension("time");
    std::vector<float> data(shape.pixels());
    for (int field = 0; field < FIELDS; field++) {
        const int variable = from.variable(FIELD[field].name, NC_FLOAT, {frames, ny, nx});
        from.check(nc_get_vara_float(from.id(), variable, start, count, data.data()), "read");
        write_frame(to, shape, frame, field, data);
    }
    write_time(to, frame, time_of(from, frame));
}

// Makes the file at path hold the frames up to the time only, and returns how many these are.
// The library cannot cut a file, so they are copied.
std::size_t keep_frames_until(const std::string &path, const RasterShape &shape,
                              const std::string &state, double time)
{
    const NetcdfFile old = open_former(path, shape, state);
    const std::size_t kept = frames_until(old, time);
    if (kept == old.dimension("time"))
        return kept;
    const Temporary temporary(path);
    NetcdfFile copy = create(temporary_name(path), shape, state);
    for (std::size_t frame = 0; frame < kept; frame++)
        copy_frame(old, copy, shape, frame);
    copy.close();
    move_into_place(path);
    return kept;
}

} // namespace

void check_raster(const std::string &path, const RasterShape &shape, const std::string &state)
{
    expect_writable(path);
    if (std::filesystem::exists(path))
        frames_until(open_former(path, shape, state), 0);
}

Raster::Raster(const std::string &where, const RasterShape &raster, const std::string &state,
               std::optional<double> resume_time, MPI_Comm ranks)
    : path(where), shape(raster), comm(ranks)
{
    on_rank_0(comm, [&] {
        make_directories(std::filesystem::absolute(path).parent_path().string());
        if (resume_time && std::filesystem::exists(path)) {
            frames = keep_frames_until(path, shape, state, *resume_time);
        } else {
            const Temporary temporary(path);
            create(temporary_name(path), shape, state).close();
            move_into_place(path);
        }
        file.emplace(NetcdfFile::open(path, NC_WRITE));
        nc_set_fill(file->id(), NC_NOFILL, nullptr);
    });
}

void Raster::put(const RasterFrame &frame, double time)
{
    if (frame.pixels != shape.pixels())
        file->fail("the cells do not cover the raster: " + std::to_string(frame.pixels) + " of " +
                   std::to_string(shape.pixels()) + " pixels");
    if (frames > 0 && time_of(*file, frames - 1) == time)
        frames--;
    const std::vector<float> *const data[FIELDS] = {&frame.h, &frame.surface, &frame.speed,
                                                    &frame.bed};
    for (int field = 0; field < FIELDS; field++) {
        std::vector<float> filled = *data[field];
        for (float &value : filled)
            if (std::isnan(value))
                value = NC_FILL_FLOAT;
        write_frame(*file, shape, frames, field, filled);
    }
    write_time(*file, frames, time);
    file->check(nc_sync(file->id()), "write");
    frames++;
}

void Raster::add(const Snapshot &snapshot)
{
    RasterFrame mine = rasterise(shape, snapshot), all = mine;
    std::vector<float> RasterFrame::*const fields[] = {&RasterFrame::h, &RasterFrame::surface,
                                                       &RasterFrame::speed, &RasterFrame::bed};
    for (auto field : fields) // every pixel is of one rank, and 0 on the others
        MPI_Reduce((mine.*field).data(), (all.*field).data(), static_cast<int>(shape.pixels()),
                   MPI_FLOAT, MPI_SUM, 0, comm);
    MPI_Reduce(&mine.pixels, &all.pixels, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    on_rank_0(comm, [&] { put(all, snapshot.time); });
}

} // namespace swe
