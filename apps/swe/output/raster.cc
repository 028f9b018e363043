// SPDX-License-Identifier: GPL-3.0-or-later
// raster.cc - the raster's file; see raster.h.
#include "raster.h"

#include <cmath>
#include <filesystem>
#include "files.h"

namespace swe {

namespace {

struct Field {
    const char *name, *long_name, *units, *standard_name;
};
constexpr int FIELDS = 4;
constexpr Field FIELD[FIELDS] = {
    {"h", "height of the water above the bed", "m", ""},
    {"surface", "height of the water's surface", "m", "water_surface_height_above_reference_datum"},
    {"speed", "speed of the water, mean over its height", "m s-1", "sea_water_speed"},
    {"bed", "height of the bed", "m", ""},
};

std::size_t pixels(const RasterShape &shape)
{
    return static_cast<std::size_t>(shape.nx) * static_cast<std::size_t>(shape.ny);
}

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

int define_axis(NetcdfFile &file, const char *name, const char *axis, std::size_t length)
{
    const int dimension = file.define_dimension(name, length);
    const int variable = file.define(name, NC_DOUBLE, {dimension});
    file.attribute(variable, "axis", axis);
    return dimension;
}

void define_times(NetcdfFile &file, int time)
{
    file.attribute(time, "long_name",
                   "time since the beginning; CF asks for a date, which means nothing");
    file.attribute(time, "standard_name", "time");
    file.attribute(time, "units", "seconds since 2000-01-01 00:00:00");
    file.attribute(time, "calendar", "standard");
}

int variable_id(const NetcdfFile &file, const char *name)
{
    int id;
    file.check(nc_inq_varid(file.id(), name, &id), std::string("find variable ") + name + " in");
    return id;
}

void define_places(NetcdfFile &file)
{
    for (const char *name : {"x", "y"}) {
        const int variable = variable_id(file, name);
        file.attribute(variable, "units", "m");
        file.attribute(variable, "standard_name",
                       std::string("projection_") + name + "_coordinate");
        file.attribute(variable, "long_name", std::string(name) + " of the pixel's centre");
    }
}

// Classic with 64-bit offsets: every tool reads it, and a frame is there when it is synchronised.
NetcdfFile create(const std::string &path, const RasterShape &shape)
{
    NetcdfFile file = NetcdfFile::create(path, NC_64BIT_OFFSET);
    file.attribute(NC_GLOBAL, "Conventions", "CF-1.8");
    file.attribute(NC_GLOBAL, "title", "shallow water simulation");
    file.attribute(NC_GLOBAL, "source", "swe");
    const int time = define_axis(file, "time", "T", NC_UNLIMITED);
    const int y = define_axis(file, "y", "Y", static_cast<std::size_t>(shape.ny));
    const int x = define_axis(file, "x", "X", static_cast<std::size_t>(shape.nx));
    define_times(file, variable_id(file, "time"));
    define_places(file);
    for (const Field &field : FIELD) {
        const int variable = file.define(field.name, NC_FLOAT, {time, y, x});
        file.attribute(variable, "long_name", field.long_name);
        file.attribute(variable, "units", field.units);
        file.attribute(variable, "cell_methods", "time: point");
        if (*field.standard_name)
            file.attribute(variable, "standard_name", field.standard_name);
        const float none = NC_FILL_FLOAT;
        file.check(nc_put_att_float(file.id(), variable, "_FillValue", NC_FLOAT, 1, &none),
                   "write");
    }
    file.check(nc_enddef(file.id()), "write");
    const Axes axes = axes_of(shape);
    file.check(nc_put_var_double(file.id(), variable_id(file, "x"), axes.x.data()), "write");
    file.check(nc_put_var_double(file.id(), variable_id(file, "y"), axes.y.data()), "write");
    file.check(nc_sync(file.id()), "write");
    return file;
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

// Number of frames up to the time.
std::size_t frames_until(const NetcdfFile &file, double time)
{
    std::vector<double> times(file.dimension("time"));
    const int variable = file.variable("time", NC_DOUBLE, {times.size()});
    if (!times.empty())
        file.check(nc_get_var_double(file.id(), variable, times.data()), "read");
    std::size_t n = 0;
    while (n < times.size() && times[n] <= time)
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
    std::vector<float> data(pixels(shape));
    for (int field = 0; field < FIELDS; field++) {
        const int variable = from.variable(FIELD[field].name, NC_FLOAT, {frames, ny, nx});
        from.check(nc_get_vara_float(from.id(), variable, start, count, data.data()), "read");
        write_frame(to, shape, frame, field, data);
    }
    write_time(to, frame, time_of(from, frame));
}

// Makes the file at path hold the frames up to the time only, and returns how many these are.
// The library cannot cut a file, so they are copied.
std::size_t keep_frames_until(const std::string &path, const RasterShape &shape, double time)
{
    const NetcdfFile old = NetcdfFile::open(path, NC_NOWRITE);
    const Axes axes = axes_of(shape);
    check_axis(old, "x", axes.x);
    check_axis(old, "y", axes.y);
    const std::size_t kept = frames_until(old, time);
    if (kept == old.dimension("time"))
        return kept;
    NetcdfFile copy = create(temporary_name(path), shape);
    for (std::size_t frame = 0; frame < kept; frame++)
        copy_frame(old, copy, shape, frame);
    copy.close();
    move_into_place(path);
    return kept;
}

} // namespace

Raster::Raster(const std::string &where, const RasterShape &raster,
               std::optional<double> resume_time, MPI_Comm ranks)
    : path(where), shape(raster), comm(ranks)
{
    on_rank_0(comm, [&] {
        make_directories(std::filesystem::absolute(path).parent_path().string());
        if (resume_time && std::filesystem::exists(path)) {
            frames = keep_frames_until(path, shape, *resume_time);
        } else {
            create(temporary_name(path), shape).close();
            move_into_place(path);
        }
        file.emplace(NetcdfFile::open(path, NC_WRITE));
        nc_set_fill(file->id(), NC_NOFILL, nullptr);
    });
}

void Raster::put(const RasterFrame &frame, double time)
{
    if (frame.pixels != pixels(shape))
        file->fail("the cells do not cover the raster: " + std::to_string(frame.pixels) + " of " +
                   std::to_string(pixels(shape)) + " pixels");
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
        MPI_Reduce((mine.*field).data(), (all.*field).data(), static_cast<int>(pixels(shape)),
                   MPI_FLOAT, MPI_SUM, 0, comm);
    MPI_Reduce(&mine.pixels, &all.pixels, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    on_rank_0(comm, [&] { put(all, snapshot.time); });
}

} // namespace swe
