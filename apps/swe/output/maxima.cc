// SPDX-License-Identifier: GPL-3.0-or-later
// maxima.cc - see maxima.h.
#include "maxima.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include "../config_keys.h"
#include "../../lib/output/files.h"
#include "places.h"

namespace swe {

using namespace apps;

namespace {

enum : int { SURFACE, DEPTH, SPEED, ARRIVAL, FIELDS };
constexpr Field FIELD[FIELDS] = {
    {"max_surface", "greatest height of the water's surface", "m",
     "water_surface_height_above_reference_datum"},
    {"max_h", "greatest height of the water above the bed", "m", ""},
    {"max_speed", "greatest speed of the water, mean over its height", "m s-1", "sea_water_speed"},
    {"arrival", "time since the beginning when the surface first was far from rest", "s", ""},
};
constexpr float NONE[FIELDS] = {
    -std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
    -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};

} // namespace

Maxima::Maxima(const std::string &where, const RasterShape &raster, const std::string &state,
               double rest_, double arrival_, std::optional<double> resume_time, double every,
               MPI_Comm ranks)
    : path(where), shape(raster),
      configuration(state + "output.arrival = " + toml_number(arrival_) + '\n'), rest(rest_),
      arrival(arrival_), first_look(std::numeric_limits<double>::infinity()),
      last_look(-std::numeric_limits<double>::infinity()), own_look(last_look),
      longest(every * (1 + 1e-9)), comm(ranks)
{
    for (int f = 0; f < FIELDS; f++)
        field[f].assign(shape.pixels(), NONE[f]);
    on_rank_0(comm, [&] {
        if (!resume_time || !std::filesystem::exists(path))
            return;
        read();
        find_gap(*resume_time);
    });
    for (auto &values : field)
        MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_FLOAT, 0, comm);
    MPI_Bcast(&first_look, 1, MPI_DOUBLE, 0, comm);
}

void Maxima::read()
{
    const NetcdfFile file = NetcdfFile::open(path, NC_NOWRITE);
    check_places(file, shape);
    file.expect("configuration", configuration, "; take it away to begin anew");
    first_look = file.number_of("since");
    // Earlier versions say nothing of later looks: they are taken for granted.
    last_look = file.has("until") ? file.number_of("until")
                                  : std::numeric_limits<double>::infinity();
    const auto ends = file.has("gaps") ? file.numbers_of("gaps") : std::vector<double>();
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2)
        missed.push_back({ends[i], ends[i + 1]});
    for (int f = 0; f < FIELDS; f++) {
        const int variable =
            file.variable(FIELD[f].name, NC_FLOAT,
                          {static_cast<std::size_t>(shape.ny), static_cast<std::size_t>(shape.nx)});
        file.check(nc_get_var_float(file.id(), variable, field[f].data()), "read");
        std::replace(field[f].begin(), field[f].end(), NC_FILL_FLOAT, NONE[f]);
    }
}

// Looks after the time stay: the run may end before it has come to them again.
void Maxima::find_gap(double resume_time)
{
    if (last_look == std::numeric_limits<double>::infinity())
        last_look = resume_time;
    if (std::isfinite(last_look) && last_look < resume_time - longest)
        missed.push_back({last_look, resume_time});
    if (std::isfinite(first_look) && first_look > resume_time)
        missed.push_back({resume_time, first_look});
    std::vector<Gap> before;
    for (const Gap &gap : missed) {
        if (gap.begin < resume_time)
            before.push_back({gap.begin, std::min(gap.end, resume_time)});
        if (gap.end > resume_time)
            to_come.push_back({std::max(gap.begin, resume_time), gap.end});
    }
    missed = std::move(before);
}

void Maxima::add(const Snapshot &snapshot)
{
    const RasterFrame now = rasterise(shape, snapshot);
    const auto time = static_cast<float>(snapshot.time);
    first_look = std::min(first_look, snapshot.time);
    last_look = std::max(last_look, snapshot.time);
    own_look = snapshot.time;
    for (std::size_t i = 0; i < now.h.size(); i++) {
        if (!(static_cast<double>(now.h[i]) > snapshot.dry))
            continue; // also where no cell of this rank is
        field[SURFACE][i] = std::max(field[SURFACE][i], now.surface[i]);
        field[DEPTH][i] = std::max(field[DEPTH][i], now.h[i]);
        field[SPEED][i] = std::max(field[SPEED][i], now.speed[i]);
        if (std::fabs(static_cast<double>(now.surface[i]) - rest) > arrival)
            field[ARRIVAL][i] = std::min(field[ARRIVAL][i], time);
    }
}

void Maxima::write()
{
    std::vector<float> all[FIELDS];
    for (int f = 0; f < FIELDS; f++) {
        all[f] = field[f];
        MPI_Reduce(field[f].data(), all[f].data(), static_cast<int>(all[f].size()), MPI_FLOAT,
                   f == ARRIVAL ? MPI_MIN : MPI_MAX, 0, comm);
        std::replace(all[f].begin(), all[f].end(), NONE[f], NC_FILL_FLOAT);
    }
    on_rank_0(comm, [&] { save(all); });
}

void Maxima::save(const std::vector<float> *all) const
{
    make_directories(std::filesystem::absolute(path).parent_path().string());
    const Temporary temporary(path);
    NetcdfFile file = create_raster_file(temporary_name(path));
    const PlaceDimensions of = define_places(file, shape);
    int variable[FIELDS];
    for (int f = 0; f < FIELDS; f++)
        variable[f] = define_field(file, FIELD[f], {of.y, of.x}, shape);
    for (int f = 0; f < ARRIVAL; f++)
        file.attribute(variable[f], "cell_methods", "time: maximum");
    file.attribute(variable[ARRIVAL], "displacement_m", arrival);
    file.attribute(NC_GLOBAL, "configuration", configuration);
    file.attribute(NC_GLOBAL, "since", first_look);
    file.attribute(NC_GLOBAL, "until", last_look);
    std::vector<double> ends;
    auto add_gap = [&ends](double begin, double end) {
        if (!ends.empty() && ends.back() == begin)
            ends.back() = end;
        else
            ends.insert(ends.end(), {begin, end});
    };
    for (const Gap &gap : missed)
        add_gap(gap.begin, gap.end);
    for (const Gap &gap : to_come)
        if (gap.end - std::max(gap.begin, own_look) > longest)
            add_gap(std::max(gap.begin, own_look), gap.end);
    if (!ends.empty())
        file.attribute(NC_GLOBAL, "gaps", ends);
    file.check(nc_enddef(file.id()), "write");
    write_places(file, shape);
    for (int f = 0; f < FIELDS; f++)
        file.check(nc_put_var_float(file.id(), variable[f], all[f].data()), "write");
    file.close();
    move_into_place(path);
}

} // namespace swe
