// SPDX-License-Identifier: GPL-3.0-or-later
// checkpoint.cc - writing, and which checkpoints there are; see checkpoint.h.
#include "checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>
#include "../../../lib/output/files.h"
#include "manifest.h"
#include "../raster/netcdf_file.h"

namespace swe {

using namespace apps;

namespace fs = std::filesystem;

namespace {

const std::string PREFIX = "checkpoint-";

std::string file_name(int rank) { return PREFIX + std::to_string(rank) + ".nc"; }

std::size_t cells_of(const RankState &state)
{
    std::size_t cells = 0;
    for (const ClusterState &cluster : state.clusters) {
        if (cluster.values.size() != cluster.depth.size() * static_cast<std::size_t>(state.values))
            throw OutputError("checkpoint: a cluster of root " + std::to_string(cluster.root) +
                              " has not " + std::to_string(state.values) + " values a cell");
        cells += cluster.depth.size();
    }
    return cells;
}

void write_attributes(NetcdfFile &file, const RankState &state, std::size_t cells)
{
    file.attribute(NC_GLOBAL, "title", "checkpoint of swe, one rank's part");
    file.attribute(NC_GLOBAL, "configuration", state.configuration);
    if (!state.gauges.empty())
        file.attribute(NC_GLOBAL, "gauges", state.gauges);
    file.attribute(NC_GLOBAL, "time", state.time);
    const std::pair<const char *, double> numbers[] = {
        {"step", static_cast<double>(state.step)},
        {"shortest_steps", static_cast<double>(state.shortest_steps)},
        {"rank", state.rank},
        {"ranks", state.ranks},
        {"root_depth", state.root_depth},
        {"values", state.values},
        {"clusters", static_cast<double>(state.clusters.size())},
        {"cells", static_cast<double>(cells)}};
    for (auto [name, number] : numbers)
        file.attribute(NC_GLOBAL, name, number);
}

struct Variables {
    int root, path, levels, size, depth, value;
};

Variables define_variables(NetcdfFile &file, const RankState &state, std::size_t cells)
{
    const int cluster = file.define_dimension("cluster", state.clusters.size());
    const int cell = file.define_dimension("cell", cells);
    const int values = file.define_dimension("values", static_cast<std::size_t>(state.values));
    return {
        file.define("root", NC_INT, {cluster}),   file.define("path", NC_UINT64, {cluster}),
        file.define("levels", NC_INT, {cluster}), file.define("size", NC_INT64, {cluster}),
        file.define("depth", NC_UBYTE, {cell}),   file.define("value", NC_DOUBLE, {values, cell})};
}

void write_clusters(NetcdfFile &file, const RankState &state, const Variables &variables)
{
    const int id = file.id();
    std::size_t first = 0;
    for (std::size_t i = 0; i < state.clusters.size(); i++) {
        const ClusterState &cluster = state.clusters[i];
        const unsigned long long path = cluster.path;
        const auto size = static_cast<long long>(cluster.depth.size());
        const std::size_t start[] = {0, first};
        const std::size_t count[] = {static_cast<std::size_t>(state.values), cluster.depth.size()};
        file.check(nc_put_var1_int(id, variables.root, &i, &cluster.root), "write");
        file.check(nc_put_var1_ulonglong(id, variables.path, &i, &path), "write");
        file.check(nc_put_var1_int(id, variables.levels, &i, &cluster.levels), "write");
        file.check(nc_put_var1_longlong(id, variables.size, &i, &size), "write");
        file.check(
            nc_put_vara_uchar(id, variables.depth, start + 1, count + 1, cluster.depth.data()),
            "write");
        file.check(nc_put_vara_double(id, variables.value, start, count, cluster.values.data()),
                   "write");
        first += cluster.depth.size();
    }
}

void write_rank(const RankState &state, const std::string &path)
{
    const std::size_t cells = cells_of(state);
    NetcdfFile file = NetcdfFile::create(path, NC_64BIT_DATA);
    write_attributes(file, state, cells);
    if (cells > 0) { // a dimension of length 0 would be an unlimited one
        const Variables variables = define_variables(file, state, cells);
        file.check(nc_enddef(file.id()), "write");
        write_clusters(file, state, variables);
    }
    file.close();
    sync_path(path);
}

// The manifest, whole on rank 0 only.
Manifest gather_manifest(const RankState &state, const std::string &path, MPI_Comm comm)
{
    std::uint64_t mine[2] = {};
    all_together(comm, [&] {
        write_rank(state, path);
        const std::string bytes = read_whole_file(path);
        mine[0] = bytes.size();
        mine[1] = crc_of(bytes);
    });
    std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(state.ranks));
    MPI_Gather(mine, 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, 0, comm);
    Manifest manifest;
    manifest.step = state.step;
    for (std::size_t i = 0; i < all.size(); i += 2)
        manifest.files.push_back({all[i], all[i + 1]});
    return manifest;
}

void remove_tree(const std::string &path)
{
    std::error_code error;
    fs::remove_all(path, error);
    if (error)
        throw OutputError("cannot remove " + path + ": " + error.message());
}

// Steps of the checkpoints in the directory, in order; those read so far, if there is an error.
// Without a manifest it is none.
std::vector<long> steps_in(const std::string &directory, std::error_code &error)
{
    std::vector<long> steps;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        char *rest = nullptr;
        if (name.compare(0, PREFIX.size(), PREFIX) != 0)
            continue;
        const long step = std::strtol(name.c_str() + PREFIX.size(), &rest, 10);
        if (name == PREFIX + std::to_string(step) && fs::exists(entry->path() / "manifest", error))
            steps.push_back(step);
        if (error) // increment() would clear it
            break;
    }
    std::sort(steps.begin(), steps.end());
    return steps;
}

std::vector<long> steps_in(const std::string &directory)
{
    std::error_code error;
    std::vector<long> steps = steps_in(directory, error);
    if (error)
        throw OutputError("cannot read directory " + directory + ": " + error.message());
    return steps;
}

std::string path_of(const std::string &directory, long step)
{
    return directory + "/" + PREFIX + std::to_string(step);
}

// Of one that is about to go: no name that a user would give to a copy.
std::string former_name(const std::string &path) { return path + ".replaced"; }

// To a name that remove_leftovers() knows.
void move_away(const std::string &path)
{
    std::error_code error;
    fs::rename(path, former_name(path), error);
    if (error)
        throw OutputError("cannot rename " + path + ": " + error.message());
}

// What runs that were killed have left: of a step, and with an ending of ours.
bool is_leftover(const fs::path &name)
{
    const std::string step = name.stem().string();
    return (name.extension() == ".tmp" || name.extension() == ".replaced") &&
           step.size() > PREFIX.size() && step.compare(0, PREFIX.size(), PREFIX) == 0 &&
           step.find_first_not_of("0123456789", PREFIX.size()) == std::string::npos;
}

void remove_leftovers(const std::string &directory)
{
    std::vector<std::string> leftovers;
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
        if (is_leftover(entry.path().filename()))
            leftovers.push_back(entry.path().string());
    for (const std::string &path : leftovers)
        remove_tree(path);
}

// The new checkpoint gets its name, and then the ones that it replaces go.
void publish(const Manifest &manifest, const std::string &directory)
{
    const std::string path = path_of(directory, manifest.step);
    const std::string temporary = temporary_name(path);
    write_whole_file(temporary + "/manifest", manifest.text());
    const std::vector<long> before = steps_in(directory);
    if (fs::exists(path)) {
        // It is of the same step.  In the moment without it an earlier one is there, if there was.
        remove_tree(former_name(path));
        fs::rename(path, former_name(path));
    }
    try {
        move_into_place(path);
    } catch (const OutputError &) {
        std::error_code none_before;
        fs::rename(former_name(path), path, none_before);
        throw;
    }
    remove_tree(former_name(path));
    sync_path(directory);
    long kept = -1;
    for (long step : before)
        if (step < manifest.step)
            kept = step;
    for (long step : before)
        if (step != kept && step != manifest.step)
            remove_tree(path_of(directory, step));
}

} // namespace

void write_checkpoint(const RankState &state, const std::string &directory, MPI_Comm comm)
{
    const std::string temporary = temporary_name(path_of(directory, state.step));
    try {
        on_rank_0(comm, [&] {
            make_directories(directory);
            remove_leftovers(directory);
            make_directories(temporary);
        });
        const Manifest manifest =
            gather_manifest(state, temporary + "/" + file_name(state.rank), comm);
        on_rank_0(comm, [&] { publish(manifest, directory); });
    } catch (const OutputError &) {
        std::error_code ignored;
        if (state.rank == 0)
            fs::remove_all(temporary, ignored);
        throw;
    }
}

std::string latest_checkpoint(const std::string &directory)
{
    const std::vector<long> steps = steps_in(directory);
    if (steps.empty())
        throw OutputError("no checkpoint in " + directory +
                          ": no directory checkpoint-STEP in it has a manifest");
    return path_of(directory, steps.back());
}

std::string former_checkpoint(const std::string &checkpoint)
{
    fs::path path = checkpoint;
    if (!path.has_filename()) // ends with a slash
        path = path.parent_path();
    const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
    std::string former;
    std::error_code ignored;
    for (long step : steps_in(directory, ignored)) {
        if (PREFIX + std::to_string(step) == path.filename())
            return former;
        former = path_of(directory, step);
    }
    return ""; // it has another name
}

bool is_checkpoint_of(const std::string &place, const std::string &directory)
{
    const fs::path path = fs::canonical(place);
    std::error_code none; // as for a directory that is not there yet
    return fs::equivalent(fs::exists(path / "manifest") ? path.parent_path() : path, directory,
                          none);
}

long latest_step(const std::string &directory)
{
    if (!fs::exists(directory))
        return -1;
    const std::vector<long> steps = steps_in(directory);
    return steps.empty() ? -1 : steps.back();
}

void remove_checkpoints_after(const std::string &directory, long step)
{
    if (!fs::exists(directory))
        return;
    const std::vector<long> steps = steps_in(directory);
    for (auto later = steps.rbegin(); later != steps.rend() && *later > step; ++later) {
        const std::string path = path_of(directory, *later);
        remove_tree(former_name(path));
        move_away(path);
        sync_path(directory);
        remove_tree(former_name(path));
    }
}

} // namespace swe
