// SPDX-License-Identifier: GPL-3.0-or-later
// checkpoint_read.cc - reading a checkpoint, which is believed only after every check.
//
// Bytes are checked by the manifest's CRCs before the NetCDF library sees them, as there are
// damaged headers at which libnetcdf 4.9 crashes.  A file may still be of another program or
// version: so the tree is checked as a tree.  A cell or cluster that is l levels below its
// subtree's root covers 2^-l of it; in the order of the curve, each must begin at a multiple of
// its own size, and the last must end at 1.
#include "checkpoint.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include "../../../lib/output/files.h"
#include "manifest.h"
#include "../raster/netcdf_file.h"
#include "../../grid/patch.h"

namespace swe {

using namespace apps;

namespace {

// Walks along a subtree of which leaves are given in order, in units of 2^-DEPTHS.
class Cover {
public:
    // False: no leaf of these levels can be here.
    bool add(int levels)
    {
        if (levels < 0 || levels > DEPTHS)
            return false;
        const std::uint64_t size = WHOLE >> levels;
        if (position % size != 0 || position + size > WHOLE)
            return false;
        position += size;
        return true;
    }
    bool complete() const { return position == WHOLE; }
    std::uint64_t where() const { return position; }

private:
    static constexpr std::uint64_t WHOLE = std::uint64_t{1} << DEPTHS;
    std::uint64_t position = 0;
};

struct Part {
    RankState state; // without clusters
    std::size_t clusters, cells;
};

Part read_attributes(const NetcdfFile &file, const Resume &resume, const Manifest &manifest,
                     int rank)
{
    Part part;
    RankState &state = part.state;
    state.configuration = file.text("configuration");
    file.expect("configuration", resume.configuration);
    if (file.has("gauges")) // earlier checkpoints do not say where they were
        state.gauges = file.text("gauges");
    state.time = file.number_of("time");
    state.step = file.integer("step");
    // Earlier checkpoints do not say it.
    state.shortest_steps = file.has("shortest_steps") ? file.integer("shortest_steps") : state.step;
    if (state.shortest_steps < 0)
        file.fail("shortest_steps is negative");
    state.rank = rank;
    state.ranks = static_cast<int>(manifest.files.size());
    state.values = resume.values;
    const long long root_depth = file.integer("root_depth");
    if (root_depth < 0 || root_depth > 20)
        file.fail("roots cannot be of depth " + std::to_string(root_depth));
    state.root_depth = static_cast<int>(root_depth);
    if (file.integer("rank") != rank || file.integer("ranks") != state.ranks ||
        state.step != manifest.step)
        file.fail("its rank, ranks or step are not those of the manifest");
    if (file.integer("values") != resume.values)
        file.fail(std::to_string(file.integer("values")) + " values a cell, not " +
                  std::to_string(resume.values));
    if (!std::isfinite(state.time))
        file.fail("time is not a finite number");
    const long long clusters = file.integer("clusters"), cells = file.integer("cells");
    if (clusters < 0 || cells < clusters || (clusters == 0 && cells > 0) ||
        static_cast<std::uint64_t>(cells) >
            manifest.files[static_cast<std::size_t>(rank)].size / sizeof(double))
        file.fail(std::to_string(clusters) + " clusters with " + std::to_string(cells) +
                  " cells cannot be in it");
    part.clusters = static_cast<std::size_t>(clusters);
    part.cells = static_cast<std::size_t>(cells);
    return part;
}

std::string name_of(const ClusterState &cluster)
{
    return "cluster " + std::to_string(cluster.path) + " of " + std::to_string(cluster.levels) +
           " levels below root " + std::to_string(cluster.root);
}

void check_cells(const NetcdfFile &file, const ClusterState &cluster, int root_depth)
{
    const int above = root_depth + cluster.levels;
    Cover cover;
    for (std::size_t c = 0; c < cluster.depth.size(); c++) {
        const int depth = cluster.depth[c];
        if (depth >= DEPTHS)
            file.fail(name_of(cluster) + ": cell " + std::to_string(c) + " has depth " +
                      std::to_string(depth) + ", which must be less than " +
                      std::to_string(DEPTHS));
        if (!cover.add(depth - above))
            file.fail(name_of(cluster) + ": its cells are not a binary tree: no leaf of depth " +
                      std::to_string(depth) + " can be cell " + std::to_string(c));
    }
    if (!cover.complete())
        file.fail(name_of(cluster) + ": its cells are not a whole binary tree: some are missing");
    for (std::size_t i = 0; i < cluster.values.size(); i++)
        if (!std::isfinite(cluster.values[i]))
            file.fail(name_of(cluster) + ": value " + std::to_string(i / cluster.depth.size()) +
                      " of cell " + std::to_string(i % cluster.depth.size()) +
                      " is not a finite number");
}

void read_cells(const NetcdfFile &file, ClusterState &cluster, std::size_t first, std::size_t size,
                int depth, int value, std::size_t values)
{
    const std::size_t start[] = {0, first}, count[] = {values, size};
    cluster.depth.resize(size);
    cluster.values.resize(values * size);
    file.check(nc_get_vara_uchar(file.id(), depth, start + 1, count + 1, cluster.depth.data()),
               "read");
    file.check(nc_get_vara_double(file.id(), value, start, count, cluster.values.data()), "read");
}

// --- other roots: of a grid whose quarters are cut once more or less often (run.cut)

// Appends the two halves of a cluster whose root is at depth `above`.
void halve(const NetcdfFile &file, const ClusterState &whole, int above,
           std::vector<ClusterState> &to)
{
    const std::size_t n = whole.depth.size(), values = whole.values.size() / n;
    std::size_t half = 0;
    for (std::uint64_t covered = 0; covered < std::uint64_t{1} << (DEPTHS - 1); half++) {
        if (whole.depth[half] <= above)
            file.fail(name_of(whole) + ": a cell of depth " + std::to_string(above) +
                      " cannot be cut: run.cut is too large");
        covered += (std::uint64_t{1} << DEPTHS) >> (whole.depth[half] - above);
    }
    for (unsigned k = 0; k < 2; k++) {
        const std::size_t first = k ? half : 0, last = k ? n : half;
        ClusterState part{whole.root, whole.path << 1 | k, whole.levels + 1, {}, {}};
        const auto begin = whole.depth.begin();
        part.depth.assign(begin + static_cast<std::ptrdiff_t>(first),
                          begin + static_cast<std::ptrdiff_t>(last));
        for (std::size_t v = 0; v < values; v++)
            for (std::size_t c = first; c < last; c++)
                part.values.push_back(whole.values[v * n + c]);
        to.push_back(std::move(part));
    }
}

// Roots are numbered along the curve: a root's number and the path below it are one path.
void move_up(ClusterState &cluster, int levels)
{
    const std::uint64_t low =
        static_cast<std::uint64_t>(cluster.root) & ((std::uint64_t{1} << levels) - 1);
    cluster.path |= low << cluster.levels;
    cluster.root >>= levels;
    cluster.levels += levels;
}

void move_down(ClusterState &cluster, int levels)
{
    cluster.levels -= levels;
    cluster.root = static_cast<std::int32_t>(static_cast<std::uint64_t>(cluster.root) << levels |
                                             cluster.path >> cluster.levels);
    cluster.path &= (std::uint64_t{1} << cluster.levels) - 1;
}

// The cluster below roots of the depth that this run has, cut up if it is larger than they are.
std::vector<ClusterState> below_my_roots(const NetcdfFile &file, ClusterState &&cluster,
                                         int root_depth, const Resume &resume)
{
    const int down = resume.root_depth - root_depth;
    std::vector<ClusterState> parts;
    parts.push_back(std::move(cluster));
    for (int levels = parts[0].levels; levels < down; levels++) {
        std::vector<ClusterState> halves;
        for (const ClusterState &part : parts)
            halve(file, part, root_depth + levels, halves);
        parts = std::move(halves);
    }
    for (ClusterState &part : parts)
        if (down >= 0)
            move_down(part, down);
        else
            move_up(part, -down);
    return parts;
}

// Is any of the cluster's cells below one of my roots?
bool is_mine(const ClusterState &cluster, int root_depth, const Resume &resume)
{
    const int down = resume.root_depth - root_depth;
    ClusterState at{cluster.root, cluster.path, cluster.levels, {}, {}};
    if (down <= at.levels) {
        down >= 0 ? move_down(at, down) : move_up(at, -down);
        return resume.mine(at.root);
    }
    const int more = down - at.levels;
    move_down(at, at.levels);
    for (std::int64_t k = 0; k < std::int64_t{1} << more; k++)
        if (resume.mine(static_cast<int>((static_cast<std::int64_t>(at.root) << more) + k)))
            return true;
    return false;
}

// What a file says of its clusters, an element each, and the variables of their cells.
struct Listed {
    std::vector<int> root, levels;
    std::vector<unsigned long long> path;
    std::vector<long long> size; // cells
    int depth, value;
};

Listed read_list(const NetcdfFile &file, std::size_t n, std::size_t cells, std::size_t values)
{
    Listed all{std::vector<int>(n),
               std::vector<int>(n),
               std::vector<unsigned long long>(n),
               std::vector<long long>(n),
               file.variable("depth", NC_UBYTE, {cells}),
               file.variable("value", NC_DOUBLE, {values, cells})};
    const auto variable = [&](const char *name, nc_type type) {
        return file.variable(name, type, {n});
    };
    const int id = file.id();
    file.check(nc_get_var_int(id, variable("root", NC_INT), all.root.data()), "read");
    file.check(nc_get_var_int(id, variable("levels", NC_INT), all.levels.data()), "read");
    file.check(nc_get_var_ulonglong(id, variable("path", NC_UINT64), all.path.data()), "read");
    file.check(nc_get_var_longlong(id, variable("size", NC_INT64), all.size.data()), "read");
    return all;
}

// Cluster i of the list, without cells, of which at most `left` can be its; of a grid of `roots`.
ClusterState listed_cluster(const NetcdfFile &file, const Listed &all, std::size_t i,
                            std::int64_t roots, std::size_t left)
{
    ClusterState cluster;
    cluster.root = all.root[i];
    cluster.path = all.path[i];
    cluster.levels = all.levels[i];
    if (cluster.root < 0 || cluster.root >= roots || cluster.levels < 0 ||
        cluster.levels >= DEPTHS || cluster.path >> cluster.levels != 0)
        file.fail("there is no " + name_of(cluster) + "; the grid has " + std::to_string(roots) +
                  " roots");
    if (all.size[i] < 1 || static_cast<std::size_t>(all.size[i]) > left)
        file.fail(name_of(cluster) + ": there are no " + std::to_string(all.size[i]) + " cells");
    return cluster;
}

// Appends the clusters of the file that are of my roots.
void read_clusters(const NetcdfFile &file, const Part &part, const Resume &resume,
                   std::vector<ClusterState> &clusters)
{
    const auto values = static_cast<std::size_t>(resume.values);
    const Listed all = read_list(file, part.clusters, part.cells, values);
    const int root_depth = part.state.root_depth, down = resume.root_depth - root_depth;
    const std::int64_t roots =
        down < 0 ? static_cast<std::int64_t>(resume.roots) << -down : resume.roots >> down;
    std::size_t first = 0;
    for (std::size_t i = 0; i < part.clusters; i++) {
        ClusterState cluster = listed_cluster(file, all, i, roots, part.cells - first);
        const auto size = static_cast<std::size_t>(all.size[i]);
        if (is_mine(cluster, root_depth, resume)) {
            read_cells(file, cluster, first, size, all.depth, all.value, values);
            check_cells(file, cluster, root_depth);
            for (ClusterState &of : below_my_roots(file, std::move(cluster), root_depth, resume))
                if (resume.mine(of.root))
                    clusters.push_back(std::move(of));
        }
        first += size;
    }
    if (first != part.cells)
        file.fail("its clusters have " + std::to_string(first) + " cells, not " +
                  std::to_string(part.cells));
}

Manifest read_manifest(const std::string &path)
{
    return Manifest::parse(path, read_whole_file(path));
}

void check_bytes(const std::string &path, const Manifest::File &expected)
{
    const std::string bytes = read_whole_file(path);
    if (bytes.size() != expected.size)
        throw OutputError(path + ": damaged: " + std::to_string(bytes.size()) + " bytes, not the " +
                          std::to_string(expected.size) + " of the manifest");
    if (crc_of(bytes) != expected.crc)
        throw OutputError(path + ": damaged: the check sum is not that of the manifest");
}

// Does what may find files of the checkpoint damaged or missing.
template <class Work> auto with_advice(const std::string &checkpoint, Work work)
{
    try {
        return work();
    } catch (const OutputError &error) {
        const std::string former = former_checkpoint(checkpoint);
        throw OutputError(error.what() +
                          (former.empty() ? "" : ".  The one before: --restart=" + former));
    }
}

// Beginning of the cluster within its root, in units of 2^-DEPTHS.
std::uint64_t begin_of(const ClusterState &cluster)
{
    return cluster.path << (DEPTHS - cluster.levels);
}

// Puts clusters into the order of the curve; every root of mine must be filled, without overlap.
void check_roots(std::vector<ClusterState> &clusters, const Resume &resume,
                 const std::string &place)
{
    std::sort(clusters.begin(), clusters.end(), [](const ClusterState &a, const ClusterState &b) {
        return a.root != b.root ? a.root < b.root : begin_of(a) < begin_of(b);
    });
    auto cluster = clusters.begin();
    for (int root = 0; root < resume.roots; root++) {
        if (!resume.mine(root))
            continue;
        Cover cover;
        for (; cluster != clusters.end() && cluster->root == root; ++cluster)
            if (begin_of(*cluster) != cover.where() || !cover.add(cluster->levels))
                throw OutputError(place + ": " + name_of(*cluster) +
                                  " does not follow the one before: one is missing or double");
        if (!cover.complete())
            throw OutputError(place + ": clusters of root " + std::to_string(root) +
                              " are missing");
    }
}

} // namespace

RankState read_checkpoint(const std::string &place, const Resume &resume)
{
    const bool is_one = std::filesystem::exists(place + "/manifest");
    const std::string path = is_one ? place : latest_checkpoint(place);
    const Manifest manifest =
        with_advice(path, [&] { return read_manifest(path + "/manifest"); });
    RankState state;
    for (std::size_t rank = 0; rank < manifest.files.size(); rank++) {
        const std::string name = path + "/checkpoint-" + std::to_string(rank) + ".nc";
        with_advice(path, [&] { check_bytes(name, manifest.files[rank]); });
        const NetcdfFile file = NetcdfFile::open(name, NC_NOWRITE);
        const Part part = read_attributes(file, resume, manifest, static_cast<int>(rank));
        if (rank == 0)
            state = part.state;
        if (part.state.time != state.time)
            file.fail("its time is not that of rank 0");
        if (part.clusters > 0)
            read_clusters(file, part, resume, state.clusters);
    }
    check_roots(state.clusters, resume, path);
    return state;
}

} // namespace swe
