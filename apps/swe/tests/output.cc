// SPDX-License-Identifier: GPL-3.0-or-later
// output.cc - checks what apps/swe writes and reads again: that files are whole or not there, that
// damage and other configurations are noticed and told, that rasters have one cell a pixel.
//
//   output [--list | PROMISE [DIRECTORY]]
//
// Without a promise all are checked.  Works with any number of ranks.  Files go to the directory,
// which stays, for other programs to read them; else to a temporary one.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <sys/resource.h>
#include <unistd.h>

#include "../grid/patch.h"
#include "../output/checkpoint/checkpoint.h"
#include "../../lib/output/files.h"
#include "../output/checkpoint/manifest.h"
#include "../output/maxima.h"
#include "../output/places.h"
#include "../../lib/output/progress.h"
#include "../output/raster/raster.h"
#include "../output/vtu.h"

using namespace swe;
namespace fs = std::filesystem;

namespace {

int rank = 0, ranks = 1, failures = 0;

#define EXPECT(condition) expect(condition, #condition, __LINE__)

void expect(bool good, const std::string &what, int line)
{
    if (good)
        return;
    std::printf("rank %d, line %d: not so: %s\n", rank, line, what.c_str());
    failures++;
}

// The message of the OutputError that work throws; all ranks must throw or none.
template <class Work> std::string message_of(Work work)
{
    try {
        work();
    } catch (const OutputError &error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

// --- a grid: quarters of 2 x 1 squares, bisected where a wave is -------------------------------

constexpr int SQUARES_X = 2, SQUARES_Y = 1, ROOTS = 4 * SQUARES_X * SQUARES_Y;
constexpr double X0 = -500, Y0 = 100, SQUARE = 1000;

Triangle root_triangle(int root)
{
    const std::int64_t u = LATTICE_UNIT, x = root / 4 % SQUARES_X * u, y = root / 4 / SQUARES_X * u;
    const Lattice corner[] = {{x, y}, {x + u, y}, {x + u, y + u}, {x, y + u}};
    return {corner[root % 4], corner[(root + 1) % 4], {x + u / 2, y + u / 2}};
}

double metres(std::int64_t lattice, double begin)
{
    return begin + static_cast<double>(lattice) * (SQUARE / static_cast<double>(LATTICE_UNIT));
}

void bisect(const Triangle &triangle, int depth,
            const std::function<bool(const Triangle &, int)> &fine,
            const std::function<void(const Triangle &, int)> &leaf)
{
    if (fine(triangle, depth)) {
        leaf(triangle, depth);
        return;
    }
    bisect(triangle.first(), depth + 1, fine, leaf);
    bisect(triangle.second(), depth + 1, fine, leaf);
}

double distance(const Triangle &t)
{
    const double x = metres((t.entry.x + t.exit.x + t.apex.x) / 3, X0);
    const double y = metres((t.entry.y + t.exit.y + t.apex.y) / 3, Y0);
    return std::hypot(x - 300, y - 500);
}

void add_cell(Snapshot &snapshot, const Triangle &t, int depth, double radius)
{
    for (Lattice p : {t.entry, t.exit, t.apex}) {
        snapshot.corners.push_back(metres(p.x, X0));
        snapshot.corners.push_back(metres(p.y, Y0));
    }
    const double r = distance(t), bed = -20 + r * r / 30000;
    const double surface = 6 * std::exp(-(r - radius) * (r - radius) / 8000);
    const double h = std::max(0.0, surface - bed);
    snapshot.bed.push_back(bed);
    snapshot.h.push_back(h);
    snapshot.hu.push_back(0.5 * h);
    snapshot.hv.push_back(-0.25 * h);
    snapshot.depth.push_back(depth);
}

// This rank's cells, finer where the wave is, `radius` metres from its centre.
Snapshot make_snapshot(double radius, long step, int coarse = 6, int finest = 11)
{
    Snapshot snapshot;
    snapshot.time = radius / 10;
    snapshot.step = step;
    snapshot.rank = rank;
    snapshot.ranks = ranks;
    const auto fine = [&](const Triangle &t, int depth) {
        const double off = std::fabs(distance(t) - radius) / 60;
        return depth >= coarse && depth >= finest - static_cast<int>(off);
    };
    for (int root = rank; root < ROOTS; root += ranks)
        bisect(root_triangle(root), 0, fine, [&](const Triangle &t, int depth) {
            add_cell(snapshot, t, depth, radius);
            snapshot.cluster.push_back(root);
        });
    return snapshot;
}

// --- a state: random trees ---------------------------------------------------------------------

constexpr int ROOT_DEPTH = 2, VALUES = 3;
const char *const CONFIGURATION = "domain.nx = 2\ngrid.max_depth = 14\nsolver.order = 0\n";

void random_tree(std::mt19937 &random, int depth, int deepest, std::vector<std::uint8_t> &leaves)
{
    if (depth >= deepest || random() % 3 == 0) {
        leaves.push_back(static_cast<std::uint8_t>(depth));
        return;
    }
    random_tree(random, depth + 1, deepest, leaves);
    random_tree(random, depth + 1, deepest, leaves);
}

void random_clusters(std::mt19937 &random, ClusterState cluster,
                     std::vector<ClusterState> &clusters)
{
    if (cluster.levels < 3 && random() % 2) {
        cluster.levels++;
        cluster.path *= 2;
        random_clusters(random, cluster, clusters);
        cluster.path++;
        random_clusters(random, cluster, clusters);
        return;
    }
    const int depth = ROOT_DEPTH + cluster.levels;
    random_tree(random, depth, depth + 6, cluster.depth);
    std::uniform_real_distribution<double> number(-1e3, 1e3);
    for (std::size_t i = 0; i < VALUES * cluster.depth.size(); i++)
        cluster.values.push_back(number(random));
    clusters.push_back(cluster);
}

// Clusters depend on the root alone, so that any number of ranks makes the same.
std::vector<ClusterState> clusters_of(int root)
{
    std::mt19937 random(static_cast<unsigned>(root));
    std::vector<ClusterState> clusters;
    ClusterState whole;
    whole.root = root;
    random_clusters(random, whole, clusters);
    return clusters;
}

bool is_mine(int root) { return root * ranks / ROOTS == rank; }

RankState make_state(long step)
{
    RankState state;
    state.time = 0.1 * static_cast<double>(step);
    state.step = step;
    state.rank = rank;
    state.ranks = ranks;
    state.root_depth = ROOT_DEPTH;
    state.values = VALUES;
    state.configuration = CONFIGURATION;
    for (int root = 0; root < ROOTS; root++)
        if (is_mine(root))
            for (ClusterState &cluster : clusters_of(root))
                state.clusters.push_back(std::move(cluster));
    return state;
}

Resume resume_as(int reader, int readers)
{
    Resume resume;
    resume.configuration = CONFIGURATION;
    resume.values = VALUES;
    resume.roots = ROOTS;
    resume.root_depth = ROOT_DEPTH;
    resume.mine = [=](int root) { return root * readers / ROOTS == reader; };
    return resume;
}

bool same(const ClusterState &a, const ClusterState &b)
{
    return a.root == b.root && a.path == b.path && a.levels == b.levels && a.depth == b.depth &&
           a.values == b.values;
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void save_state(long step, const std::string &directory)
{
    write_checkpoint(make_state(step), directory, MPI_COMM_WORLD);
    barrier();
}

std::string refusal_to_resume(const std::string &path, const Resume &resume = resume_as(0, 1))
{
    return message_of([&] { read_checkpoint(path, resume); });
}

void write_bytes(const std::string &path, const std::string &bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

// --- promises ----------------------------------------------------------------------------------

void frames_for_readers(const std::string &directory)
{
    VtuSeries series(directory, "wave", CONFIGURATION, std::nullopt, MPI_COMM_WORLD);
    for (int frame = 0; frame < 3; frame++)
        series.add(make_snapshot(100 + 150 * frame, 10 * frame));
    EXPECT(!fs::exists(directory + "/wave.pvd.tmp"));
}

void series_is_cut_where_a_run_restarts(const std::string &directory)
{
    // Time and step, in order.
    const auto expect_frames = [&](const std::string &frames, int line) {
        barrier();
        std::string there;
        const std::string series = read_whole_file(directory + "/wave.pvd");
        for (int step = 0; step < 9; step++)
            for (int time = 0; time < 90; time++)
                if (contains(series, "timestep=\"" + std::to_string(time) +
                                         "\" part=\"0\" file=\"wave-0000000" +
                                         std::to_string(step) + ".pvtu\""))
                    there += std::to_string(time) + "-" + std::to_string(step) + " ";
        expect(there == frames, there, line);
        EXPECT(contains(series, "</VTKFile>"));
        barrier();
    };
    {
        VtuSeries series(directory, "wave", CONFIGURATION, std::nullopt, MPI_COMM_WORLD);
        for (int frame : {0, 1, 2, 3})
            series.add(make_snapshot(100 * frame, frame, 2, 3));
        expect_frames("0-0 10-1 20-2 30-3 ", __LINE__);
    }
    VtuSeries series(directory, "wave", CONFIGURATION, 10.0, MPI_COMM_WORLD);
    expect_frames("0-0 10-1 ", __LINE__); // before any step
    series.add(make_snapshot(150, 2, 2, 3));
    series.add(make_snapshot(350, 3, 2, 3));
    expect_frames("0-0 10-1 15-2 35-3 ", __LINE__);
    series.add(make_snapshot(400, 3, 2, 3)); // a file has one time
    expect_frames("0-0 10-1 15-2 40-3 ", __LINE__);
    VtuSeries anew(directory, "wave", CONFIGURATION, std::nullopt, MPI_COMM_WORLD);
    barrier();
    EXPECT(!fs::exists(directory + "/wave.pvd"));
}

// Files of another simulation, and of an earlier version, which did not say of which they were.
void series_of_another_simulation_is_not_gone_on_with(const std::string &directory)
{
    const std::string path = directory + "/wave.pvd", state = "name = \"a--->%\xc3\xa4\"\n";
    const auto refusal = [&](const std::string &now) {
        barrier();
        const std::string before = read_whole_file(path), said = message_of([&] {
                              VtuSeries(directory, "wave", now, 10.0, MPI_COMM_WORLD);
                          });
        EXPECT(message_of([&] { check_series(directory, "wave", now); }) == said);
        EXPECT(read_whole_file(path) == before);
        barrier();
        return said;
    };
    VtuSeries series(directory, "wave", state, std::nullopt, MPI_COMM_WORLD);
    series.add(make_snapshot(100, 1, 2, 3));
    EXPECT(refusal(state).empty());
    EXPECT(contains(refusal("name = \"b\"\n"),
                    path + ": written with another configuration: line 1 is 'name = "
                           "\"a-%2d%2d>%25%c3%a4\"' there and 'name = \"b\"' now; move it away"));
    std::string text = read_whole_file(path);
    text.erase(text.find("<!--"), text.find("-->\n") + 4 - text.find("<!--"));
    barrier();
    if (rank == 0)
        write_bytes(path, text);
    EXPECT(contains(refusal(state), path + ": does not say which simulation it is of"));
}

void failed_write_names_file_and_reason(const std::string &directory)
{
    write_bytes(directory + "/file", "x");
    barrier();
    const Snapshot snapshot = make_snapshot(100, 1);
    const std::string below = directory + "/file/below";
    const std::string messages[] = {
        message_of([&] {
            VtuSeries(below, "wave", CONFIGURATION, std::nullopt, MPI_COMM_WORLD).add(snapshot);
        }),
        message_of([&] { write_checkpoint(make_state(1), below, MPI_COMM_WORLD); }),
        message_of([&] {
            Raster raster(below + "/raster.nc", RasterShape{}, CONFIGURATION, std::nullopt,
                          MPI_COMM_WORLD);
        })};
    for (const std::string &message : messages) {
        EXPECT(contains(message, below));
        EXPECT(contains(message, std::strerror(ENOTDIR)));
    }
}

// As on a full disk, writing fails after some bytes, and on one rank only.
class Limit {
public:
    explicit Limit(rlim_t bytes, int of)
    {
        std::signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before);
        rlimit small = before;
        small.rlim_cur = bytes;
        if (rank == of)
            setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Limit() { setrlimit(RLIMIT_FSIZE, &before); }

private:
    rlimit before;
};

void full_disk_stops_all_ranks_and_leaves_the_former(const std::string &directory)
{
    VtuSeries series(directory, "wave", CONFIGURATION, std::nullopt, MPI_COMM_WORLD);
    series.add(make_snapshot(100, 1));
    save_state(1, directory);
    std::string vtu, checkpoint;
    {
        Limit limit(1000, ranks - 1);
        vtu = message_of([&] { series.add(make_snapshot(200, 2)); });
        checkpoint =
            message_of([&] { write_checkpoint(make_state(2), directory, MPI_COMM_WORLD); });
        message_of([&] { write_checkpoint(make_state(1), directory, MPI_COMM_WORLD); });
    }
    barrier();
    for (const std::string &message : {vtu, checkpoint}) {
        EXPECT(contains(message, directory));
        EXPECT(contains(message, std::strerror(EFBIG)));
    }
    const std::string last = std::to_string(ranks - 1);
    EXPECT(!fs::exists(directory + "/wave-00000002-" + last + ".vtu"));
    EXPECT(!fs::exists(directory + "/wave-00000002-" + last + ".vtu.tmp"));
    EXPECT(!contains(read_whole_file(directory + "/wave.pvd"), "00000002"));
    EXPECT(latest_checkpoint(directory) == directory + "/checkpoint-1");
    const RankState state = read_checkpoint(directory, resume_as(rank, ranks));
    EXPECT(state.step == 1);
    EXPECT(!fs::exists(directory + "/checkpoint-2.tmp"));
}

void checkpoint_comes_back_with_any_number_of_ranks(const std::string &directory)
{
    save_state(7, directory);
    for (int readers : {1, 2, 3, 5, ROOTS})
        for (int reader = 0; reader < readers; reader++) {
            const Resume resume = resume_as(reader, readers);
            const RankState state = read_checkpoint(directory, resume);
            EXPECT(state.time == 0.1 * 7 && state.step == 7);
            EXPECT(state.configuration == CONFIGURATION && state.values == VALUES);
            std::vector<ClusterState> expected;
            for (int root = 0; root < ROOTS; root++)
                if (resume.mine(root))
                    for (const ClusterState &cluster : clusters_of(root))
                        expected.push_back(cluster);
            EXPECT(state.clusters.size() == expected.size());
            EXPECT(
                std::equal(state.clusters.begin(), state.clusters.end(), expected.begin(), same));
        }
}

void last_two_checkpoints_are_kept(const std::string &directory)
{
    for (long step : {10, 20, 30, 30, 40})
        write_checkpoint(make_state(step), directory, MPI_COMM_WORLD);
    barrier();
    EXPECT(!fs::exists(directory + "/checkpoint-20"));
    EXPECT(fs::exists(directory + "/checkpoint-30") && fs::exists(directory + "/checkpoint-40"));
    EXPECT(read_checkpoint(directory + "/checkpoint-30", resume_as(0, 1)).step == 30);
    EXPECT(read_checkpoint(directory, resume_as(0, 1)).step == 40);
    barrier();
    save_state(35, directory); // from 30 anew
    EXPECT(read_checkpoint(directory, resume_as(0, 1)).step == 35);
    EXPECT(fs::exists(directory + "/checkpoint-30") && !fs::exists(directory + "/checkpoint-40"));
}

void checkpoint_before_a_damaged_one_is_told(const std::string &directory)
{
    for (long step : {30, 35})
        write_checkpoint(make_state(step), directory, MPI_COMM_WORLD);
    barrier();
    const std::string latest = directory + "/checkpoint-35/", former = directory + "/checkpoint-30";
    for (const std::string &path : {latest + "checkpoint-0.nc", latest + "manifest"}) {
        const std::string whole = read_whole_file(path);
        for (const std::string &bytes : {std::string("damaged"), std::string(whole.size(), 'x')}) {
            barrier();
            if (rank == 0)
                write_bytes(path, bytes);
            barrier();
            const std::string message = refusal_to_resume(directory);
            expect(contains(message, path + ": ") &&
                       contains(message, ".  The one before: --restart=" + former),
                   message, __LINE__);
        }
        barrier();
        if (rank == 0)
            write_bytes(path, whole);
    }
    barrier();
    if (rank == 0)
        fs::remove(latest + "checkpoint-0.nc");
    barrier();
    EXPECT(contains(refusal_to_resume(directory),
                    "checkpoint-0.nc: " + std::string(std::strerror(ENOENT)) +
                        ".  The one before: --restart=" + former));
    EXPECT(contains(refusal_to_resume(latest), former));
    EXPECT(read_checkpoint(former, resume_as(0, 1)).step == 30);
    barrier();
    if (rank == 0)
        fs::remove(former + "/checkpoint-0.nc");
    barrier();
    EXPECT(!contains(refusal_to_resume(former), "before"));
}

void interrupted_checkpoint_is_none(const std::string &directory)
{
    write_checkpoint(make_state(10), directory, MPI_COMM_WORLD);
    if (rank == 0) { // killed before the directory had its name; copied without the manifest
        fs::copy(directory + "/checkpoint-10", directory + "/checkpoint-20.tmp");
        fs::copy(directory + "/checkpoint-10", directory + "/checkpoint-30");
        fs::remove(directory + "/checkpoint-30/manifest");
        fs::create_directory(directory + "/empty");
        fs::copy(directory + "/checkpoint-10", directory + "/checkpoint-10.old"); // a user's
    }
    barrier();
    EXPECT(read_checkpoint(directory, resume_as(0, 1)).step == 10);
    EXPECT(
        contains(message_of([&] { latest_checkpoint(directory + "/empty"); }), "no checkpoint in"));
    EXPECT(contains(message_of([&] { latest_checkpoint(directory + "/nowhere"); }), "/nowhere"));
    barrier();
    save_state(40, directory);
    EXPECT(!fs::exists(directory + "/checkpoint-20.tmp"));
    EXPECT(fs::exists(directory + "/checkpoint-10.old"));
}

void other_configuration_is_told(const std::string &directory)
{
    save_state(1, directory);
    Resume resume = resume_as(0, 1);
    resume.configuration.replace(resume.configuration.find("14"), 2, "15");
    const std::string message = refusal_to_resume(directory, resume);
    EXPECT(
        contains(message, "line 2 is 'grid.max_depth = 14' there and 'grid.max_depth = 15' now"));
    EXPECT(contains(message, directory));
    resume = resume_as(0, 1);
    resume.values = 9;
    EXPECT(contains(refusal_to_resume(directory, resume), "3 values a cell, not 9"));
    resume = resume_as(0, 1);
    resume.roots = 3;
    EXPECT(contains(refusal_to_resume(directory, resume), "the grid has 3 roots"));
}

// Writes the state with a mistake and reads it.
std::string after(const std::string &directory, const std::function<void(RankState &)> &mistake)
{
    RankState state = make_state(1);
    if (!state.clusters.empty())
        mistake(state);
    write_checkpoint(state, directory, MPI_COMM_WORLD);
    barrier();
    const std::string message = refusal_to_resume(directory);
    barrier();
    return message;
}

void impossible_trees_are_told(const std::string &directory)
{
    const auto says = [&](const char *words, const std::function<void(RankState &)> &mistake) {
        const std::string message = after(directory, mistake);
        expect(contains(message, words), message + ": should say: " + words, __LINE__);
        expect(contains(message, directory), message + ": should name the file", __LINE__);
    };
    const auto shape = [](ClusterState &cluster, std::vector<int> levels) {
        cluster.depth.clear();
        for (int level : levels)
            cluster.depth.push_back(static_cast<std::uint8_t>(ROOT_DEPTH + cluster.levels + level));
        cluster.values.assign(VALUES * cluster.depth.size(), 1);
    };
    EXPECT(after(directory, [&](RankState &s) { shape(s.clusters[0], {2, 2, 1}); }).empty());
    says("not a binary tree", [&](RankState &s) { shape(s.clusters[0], {2, 1, 2}); });
    says("some are missing", [&](RankState &s) { shape(s.clusters[0], {2, 2}); });
    says("not a binary tree", [&](RankState &s) { shape(s.clusters[0], {1, 1, 1}); });
    says("not a binary tree", [&](RankState &s) { shape(s.clusters[0], {-1}); });
    says("less than 48", [&](RankState &s) { s.clusters[0].depth[0] = 200; });
    says("value 1 of cell 0 is not a finite", [&](RankState &s) {
        s.clusters[0].values[s.clusters[0].depth.size()] = std::numeric_limits<double>::quiet_NaN();
    });
    says("there is no cluster", [&](RankState &s) { s.clusters[0].root = ROOTS; });
    says("there is no cluster", [&](RankState &s) { s.clusters[0].levels = -1; });
    says("there is no cluster", [&](RankState &s) { s.clusters[0].path = 1u << 20; });
    says("missing", [&](RankState &s) { s.clusters.pop_back(); });
    says("double", [&](RankState &s) { s.clusters.push_back(s.clusters[0]); });
    says("not a finite number", [&](RankState &s) { s.time = INFINITY; });
}

// Every byte may be damaged, and the end may be missing.
void damaged_checkpoint_is_told(const std::string &directory)
{
    write_checkpoint(make_state(3), directory, MPI_COMM_WORLD);
    if (rank == 0) {
        std::mt19937 random(1);
        for (int round = 0; round < 300; round++) {
            const int file = static_cast<int>(random() % static_cast<unsigned>(ranks + 1));
            const std::string path = directory + "/checkpoint-3/" +
                                     (file == ranks ? std::string("manifest")
                                                    : "checkpoint-" + std::to_string(file) + ".nc");
            const std::string whole = read_whole_file(path);
            std::string bytes = whole;
            if (round % 3 == 0)
                bytes.resize(random() % bytes.size());
            else
                bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
            write_bytes(path, bytes);
            const std::string message = refusal_to_resume(directory);
            expect(contains(message, path), "round " + std::to_string(round) + ": " + message,
                   __LINE__);
            write_bytes(path, whole);
        }
        EXPECT(read_checkpoint(directory, resume_as(0, 1)).step == 3);
        fs::remove(directory + "/checkpoint-3/checkpoint-0.nc");
        EXPECT(contains(refusal_to_resume(directory), "checkpoint-0.nc: No such file"));
    }
    barrier();
}

// Earlier ones had next_dt, the length of the last step.
void attributes_of_earlier_checkpoints_do_no_harm(const std::string &directory)
{
    save_state(3, directory);
    if (rank == 0) {
        const std::string path = directory + "/checkpoint-3/checkpoint-0.nc";
        const std::string list = directory + "/checkpoint-3/manifest";
        NetcdfFile file = NetcdfFile::open(path, NC_WRITE);
        EXPECT(nc_redef(file.id()) == NC_NOERR);
        file.attribute(NC_GLOBAL, "next_dt", 1.0 / 3);
        file.close();
        const std::string bytes = read_whole_file(path);
        Manifest manifest = Manifest::parse(list, read_whole_file(list));
        manifest.files[0] = {bytes.size(), crc_of(bytes)};
        write_bytes(list, manifest.text());
        EXPECT(read_checkpoint(directory, resume_as(0, 1)).step == 3);
    }
    barrier();
}

// Bytes of a rank's file after its header: of the clusters and of the cells.
std::size_t data_size(const RankState &state)
{
    std::size_t cells = 0;
    for (const ClusterState &cluster : state.clusters)
        cells += cluster.depth.size();
    return state.clusters.size() * (4 + 8 + 4 + 8) + (cells + 3) / 4 * 4 + cells * VALUES * 8;
}

// Bad contents may have good check sums, when the writer was wrong: whatever is read then is a
// whole grid of finite numbers, or an error.  Headers are left as they are: what is read there are
// names.
void sealed_nonsense_is_an_error_or_a_grid(const std::string &directory)
{
    save_state(3, directory);
    if (rank == 0) {
        const std::string path = directory + "/checkpoint-3/checkpoint-0.nc";
        const std::string list = directory + "/checkpoint-3/manifest",
                          whole = read_whole_file(path);
        Manifest manifest = Manifest::parse(list, read_whole_file(list));
        std::mt19937 random(2);
        int errors = 0;
        for (int round = 0; round < 400; round++) {
            std::string bytes = whole;
            const std::size_t data = data_size(make_state(3)), header = bytes.size() - data;
            const std::size_t among = round % 2 ? data : data / 5;
            for (unsigned changes = 1 + random() % 3; changes > 0; changes--)
                bytes[header + random() % among] = static_cast<char>(random());
            write_bytes(path, bytes);
            manifest.files[0] = {bytes.size(), crc_of(bytes)};
            write_bytes(list, manifest.text());
            const std::string message = message_of([&] {
                for (const ClusterState &cluster :
                     read_checkpoint(directory, resume_as(0, 1)).clusters)
                    for (double value : cluster.values)
                        EXPECT(std::isfinite(value));
            });
            errors += !message.empty();
        }
        EXPECT(errors > 100 && errors < 400);
    }
    barrier();
}

void pixels_have_one_cell_each(const std::string &)
{
    std::mt19937 random(3);
    for (int round = 0; round < 40; round++) {
        RasterShape shape{X0, Y0, SQUARE, SQUARES_X, SQUARES_Y, 0, 0};
        // Powers of two put centres on the edges of cells; other numbers do not.
        shape.nx = round % 2 ? 1 << random() % 9 : 1 + static_cast<int>(random() % 300);
        shape.ny = round % 4 < 2 ? 1 << random() % 9 : 1 + static_cast<int>(random() % 300);
        const int coarse = static_cast<int>(random() % 8);
        Snapshot snapshot =
            make_snapshot(static_cast<double>(random() % 800), 0, coarse, coarse + 6);
        std::fill(snapshot.h.begin(), snapshot.h.end(), 1.0);
        const RasterFrame frame = rasterise(shape, snapshot);
        std::vector<float> hits(frame.h.size());
        std::uint64_t pixels = 0;
        MPI_Allreduce(frame.h.data(), hits.data(), static_cast<int>(hits.size()), MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&frame.pixels, &pixels, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(pixels == hits.size());
        EXPECT(std::all_of(hits.begin(), hits.end(), [](float n) { return n == 1; }));
    }
}

void pixels_have_the_cell_of_their_centre(const std::string &)
{
    const RasterShape shape{X0, Y0, SQUARE, SQUARES_X, SQUARES_Y, 200, 100};
    const RasterFrame frame = rasterise(shape, make_snapshot(300, 0, 10, 12));
    for (int j = 0; j < shape.ny; j++)
        for (int i = 0; i < shape.nx; i++) {
            const auto pixel = static_cast<std::size_t>(j * shape.nx + i);
            if (frame.bed[pixel] == 0)
                continue; // of another rank
            const double x = X0 + (i + 0.5) * 10, y = Y0 + (j + 0.5) * 10;
            const double r = std::hypot(x - 300, y - 500);
            EXPECT(std::fabs(frame.bed[pixel] - (-20 + r * r / 30000)) < 3);
            EXPECT(std::isnan(frame.surface[pixel]) == (frame.h[pixel] <= 1e-6f));
        }
}

RasterShape raster_shape() { return {X0, Y0, SQUARE, SQUARES_X, SQUARES_Y, 80, 40}; }

// Frames number n are of the time 10 n, as of a run from the beginning.
void write_raster(const std::string &path, std::initializer_list<int> frames)
{
    Raster raster(path, raster_shape(), CONFIGURATION, std::nullopt, MPI_COMM_WORLD);
    for (int frame : frames)
        raster.add(make_snapshot(100 * frame, frame));
}

std::vector<double> times_in(const std::string &path)
{
    const NetcdfFile file = NetcdfFile::open(path, NC_NOWRITE);
    std::vector<double> times(file.dimension("time"));
    EXPECT(nc_get_var_double(file.id(), file.variable("time", NC_DOUBLE, {times.size()}),
                             times.data()) == NC_NOERR);
    return times;
}

// What a run says that goes on at 10 s.
std::string refusal(const std::string &path, const RasterShape &shape,
                    const std::string &state = CONFIGURATION)
{
    return message_of([&] { Raster raster(path, shape, state, 10.0, MPI_COMM_WORLD); });
}

// Frames of the times 0, 10, 20; then a restart at 10, and 20, 30 again.
void raster_goes_on_after_a_restart(const std::string &directory)
{
    const std::string path = directory + "/raster.nc";
    write_raster(path, {0, 1, 2});
    {
        Raster raster(path, raster_shape(), CONFIGURATION, 10.0, MPI_COMM_WORLD);
        for (int frame : {1, 2, 3})
            raster.add(make_snapshot(100 * frame, frame));
        barrier();
        if (rank == 0) // while it is open, as after a kill
            EXPECT((times_in(path) == std::vector<double>{0, 10, 20, 30}));
    }
    RasterShape other = raster_shape();
    other.x0 += 1;
    EXPECT(contains(refusal(path, other), "another domain"));
    other = raster_shape();
    other.nx = 90;
    EXPECT(contains(refusal(path, other),
                    "a raster of 80 x 40 points, and output.raster_nx x output.raster_ny is "
                    "90 x 40 now"));
    write_bytes(directory + "/none.nc", "not NetCDF");
    barrier();
    EXPECT(contains(refusal(directory + "/none.nc", other), "none.nc"));
}

void raster_of_another_simulation_is_not_gone_on_with(const std::string &directory)
{
    const std::string path = directory + "/raster.nc";
    write_raster(path, {1});
    EXPECT(refusal(path, raster_shape()).empty());
    const std::string other = std::string(CONFIGURATION) + "scenario.x = 0.5\n";
    EXPECT(contains(refusal(path, raster_shape(), other),
                    path + ": written with another configuration: line 4 is '' there and "
                           "'scenario.x = 0.5' now; move it away to begin a new one"));
    barrier();
    if (rank == 0) { // as of an earlier version
        NetcdfFile file = NetcdfFile::open(path, NC_WRITE);
        EXPECT(nc_redef(file.id()) == NC_NOERR);
        EXPECT(nc_del_att(file.id(), NC_GLOBAL, "configuration") == NC_NOERR);
        file.close();
    }
    barrier();
    EXPECT(contains(refusal(path, raster_shape()), path + ": does not say which simulation it is"));
}

// A new file, one that is cut for a run that goes on, and maxima; what was there stays.
void full_disk_leaves_no_part_of_a_raster(const std::string &directory)
{
    const std::string path = directory + "/raster.nc", most = directory + "/maxima.nc";
    write_raster(path, {0, 1, 2});
    Maxima maxima(most, raster_shape(), CONFIGURATION, 0, 0.1, std::nullopt, 1, MPI_COMM_WORLD);
    maxima.add(make_snapshot(100, 1));
    maxima.write();
    barrier();
    const std::string frames = read_whole_file(path), former = read_whole_file(most);
    barrier();
    for (rlim_t bytes : {500, 5000, 40000}) {
        Limit limit(bytes, 0);
        const std::string messages[] = {refusal(path, raster_shape()),
                                        message_of([&] { maxima.write(); })};
        for (const std::string &message : messages)
            expect(contains(message, directory) && contains(message, std::strerror(EFBIG)), message,
                   __LINE__);
    }
    {
        Limit limit(500, 0);
        const std::string anew = directory + "/new.nc";
        EXPECT(contains(message_of([&] {
                            Raster(anew, raster_shape(), CONFIGURATION, std::nullopt,
                                   MPI_COMM_WORLD);
                        }),
                        anew));
    }
    barrier();
    EXPECT(read_whole_file(path) == frames && read_whole_file(most) == former);
    for (const auto &entry : fs::directory_iterator(directory))
        EXPECT(entry.path() == path || entry.path() == most);
}

// libnetcdf 4.9 crashes at some (in NC_hashmapadd, called by nc_open).
void damaged_raster_is_an_error_or_a_raster(const std::string &directory)
{
    const std::string path = directory + "/raster.nc";
    write_raster(path, {0});
    if (rank == 0) {
        const std::string whole = read_whole_file(path);
        std::mt19937 random(5);
        int errors = 0;
        for (int round = 0; round < 2000; round++) {
            std::string bytes = whole;
            for (unsigned changes = 1 + random() % 3; changes > 0; changes--)
                bytes[random() % 1500] = static_cast<char>(random() % 8 ? random() % 16 : random());
            write_bytes(path, bytes);
            errors +=
                !message_of([&] { check_raster(path, raster_shape(), CONFIGURATION); }).empty();
            is_raster_file(path);
        }
        EXPECT(errors > 500);
    }
    barrier();
}

// Cut off behind its time, which is what comes first in it.
void frame_of_a_raster_that_was_cut_short_goes_with_a_restart(const std::string &directory)
{
    const std::string path = directory + "/raster.nc";
    write_raster(path, {0, 1, 2});
    if (rank == 0)
        fs::resize_file(path, fs::file_size(path) - 100);
    barrier();
    {
        Raster raster(path, raster_shape(), CONFIGURATION, 40.0, MPI_COMM_WORLD);
        raster.add(make_snapshot(300, 3));
    }
    barrier();
    if (rank == 0)
        EXPECT((times_in(path) == std::vector<double>{0, 10, 30}));
}

// A full disk: the file has one frame more, and where its time would be, nothing.
void frame_that_was_cut_off_goes_with_a_restart(const std::string &directory)
{
    const std::string path = directory + "/raster.nc";
    write_raster(path, {0, 1, 2});
    if (rank == 0) {
        NetcdfFile file = NetcdfFile::open(path, NC_WRITE);
        EXPECT(nc_set_fill(file.id(), NC_NOFILL, nullptr) == NC_NOERR);
        const std::size_t last[] = {3, 39, 79};
        const float value = 1;
        int speed;
        EXPECT(nc_inq_varid(file.id(), "speed", &speed) == NC_NOERR);
        EXPECT(nc_put_var1_float(file.id(), speed, last, &value) == NC_NOERR);
        EXPECT(file.dimension("time") == 4);
        file.close();
    }
    barrier();
    for (double restart : {40.0, 20.0}) {
        Raster raster(path, raster_shape(), CONFIGURATION, restart, MPI_COMM_WORLD);
        raster.add(make_snapshot(300, 3));
    }
    barrier();
    if (rank == 0)
        EXPECT((times_in(path) == std::vector<double>{0, 10, 20, 30}));
}

void cells_that_leave_a_gap_are_told(const std::string &directory)
{
    Raster raster(directory + "/raster.nc", raster_shape(), CONFIGURATION, std::nullopt,
                  MPI_COMM_WORLD);
    Snapshot snapshot = make_snapshot(100, 1, 4, 4);
    if (rank == 0)
        for (auto *field : {&snapshot.h, &snapshot.hu, &snapshot.hv, &snapshot.bed})
            field->pop_back();
    EXPECT(contains(message_of([&] { raster.add(snapshot); }), "do not cover"));
}

void progress_says_how_long_it_takes(const std::string &directory)
{
    double now = 100;
    std::FILE *log = std::fopen((directory + "/progress" + std::to_string(rank)).c_str(), "w+");
    {
        Progress progress(true, 10, -1, log, [&] { return now; });
        Progress silent(false, 10, -1, log, [&] { return now; });
        for (int step = 1; step <= 100; step++, now += 0.5) {
            progress.step(step, 0.1 * step, 0.1, 1000);
            silent.step(step, 0.1 * step, 0.1, 1000);
        }
    }
    std::rewind(log);
    char line[300];
    int lines = 0;
    while (std::fgets(line, sizeof line, log))
        if (lines++ == 0)
            EXPECT(std::string(line) == "t 2.1 of 10 s  step 21  dt 0.1 s  1000 cells  "
                                        "2e+03 cells/s  ETA 0:00:40\n" ||
                   (std::printf("%s", line), false));
    std::fclose(log);
    EXPECT(lines == 4);
    EXPECT(hours(3725) == "1:02:05" && hours(NAN) == "?" && hours(INFINITY) == "?");
}

struct Promise {
    const char *name;
    void (*check)(const std::string &directory);
};
#define PROMISE(name) \
    {                 \
#name, name   \
    }
constexpr Promise PROMISES[] = {
    PROMISE(frames_for_readers),
    PROMISE(series_is_cut_where_a_run_restarts),
    PROMISE(series_of_another_simulation_is_not_gone_on_with),
    PROMISE(failed_write_names_file_and_reason),
    PROMISE(full_disk_stops_all_ranks_and_leaves_the_former),
    PROMISE(checkpoint_comes_back_with_any_number_of_ranks),
    PROMISE(last_two_checkpoints_are_kept),
    PROMISE(checkpoint_before_a_damaged_one_is_told),
    PROMISE(interrupted_checkpoint_is_none),
    PROMISE(other_configuration_is_told),
    PROMISE(impossible_trees_are_told),
    PROMISE(damaged_checkpoint_is_told),
    PROMISE(attributes_of_earlier_checkpoints_do_no_harm),
    PROMISE(sealed_nonsense_is_an_error_or_a_grid),
    PROMISE(pixels_have_one_cell_each),
    PROMISE(pixels_have_the_cell_of_their_centre),
    PROMISE(raster_goes_on_after_a_restart),
    PROMISE(raster_of_another_simulation_is_not_gone_on_with),
    PROMISE(full_disk_leaves_no_part_of_a_raster),
    PROMISE(frame_that_was_cut_off_goes_with_a_restart),
    PROMISE(frame_of_a_raster_that_was_cut_short_goes_with_a_restart),
    PROMISE(damaged_raster_is_an_error_or_a_raster),
    PROMISE(cells_that_leave_a_gap_are_told),
    PROMISE(progress_says_how_long_it_takes),
};

// Rank 0's, for all.
std::string temporary_directory()
{
    char name[] = "/tmp/swe-output-XXXXXX";
    if (rank == 0 && !mkdtemp(name))
        std::perror(name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    return name;
}

int run_all();

// An empty name: all.
int run(const std::string &name, const char *directory)
{
    if (name.empty())
        return run_all();
    const auto *promise = std::find_if(std::begin(PROMISES), std::end(PROMISES),
                                       [&](const Promise &p) { return p.name == name; });
    if (promise == std::end(PROMISES)) {
        std::fprintf(stderr, "output: no promise '%s'; see --list\n", name.c_str());
        return 2;
    }
    const std::string place = directory ? directory : temporary_directory();
    try {
        promise->check(place);
    } catch (const std::exception &error) {
        expect(false, error.what(), __LINE__);
    }
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!directory && rank == 0)
        fs::remove_all(place);
    return all > 0;
}

int run_all()
{
    int code = 0;
    for (const Promise &promise : PROMISES)
        code |= run(promise.name, nullptr);
    return code;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
        for (const Promise &promise : PROMISES)
            std::puts(promise.name);
        return 0;
    }
    if (argc > 3) {
        std::fputs("usage: output [--list | PROMISE [DIRECTORY]]\n", stderr);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int code = run(argc > 1 ? argv[1] : "", argc == 3 ? argv[2] : nullptr);
    MPI_Finalize();
    return code;
}
