// SPDX-License-Identifier: GPL-3.0-or-later
// vtu.cc - see vtu.h.
#include "vtu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>
#include "../../lib/output/files.h"
#include "../../lib/output/vtk.h"
#include "checkpoint/identity.h"

namespace swe {

using namespace apps;

namespace {

// Around the state in the series.
const char *const COMMENT_BEGIN = "<!-- configuration:\n";
const char *const COMMENT_END = "-->\n";

// A line of the series: its time, and its file without the ending.
const char *const FRAME_READ = "<DataSet timestep=\"%lf\" part=\"0\" file=\"%199[^.\"].pvtu";

const std::vector<VtkArray> CELL_ARRAYS = {
    {"Float64", "h"},       {"Float64", "hu"},  {"Float64", "hv"},    {"Float64", "bed"},
    {"Float64", "surface"}, {"UInt8", "depth"}, {"Int32", "cluster"}, {"Int32", "rank"},
};

std::string format_byte(char c)
{
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(c));
    return text;
}

// The points of all cells, each once.  Neighbours compute the same numbers for the corners that
// they share, so that points are equal or different bit by bit.
struct Points {
    std::vector<double> xyz;
    std::vector<std::int64_t> of_corners; // 3 a cell
};

std::uint64_t hash(double x, double y)
{
    std::uint64_t a, b;
    std::memcpy(&a, &x, sizeof a);
    std::memcpy(&b, &y, sizeof b);
    a = (a ^ (b << 29 | b >> 35)) * 0x9e3779b97f4a7c15u;
    return (a ^ a >> 31) * 0xbf58476d1ce4e5b9u;
}

Points share_points(const std::vector<double> &corners)
{
    const std::size_t count = corners.size() / 2;
    int bits = 4;
    while ((std::size_t{1} << bits) < count) // points are about half of the cells
        bits++;
    std::vector<std::int64_t> table(std::size_t{1} << bits, -1);
    Points points;
    points.of_corners.reserve(count);
    for (std::size_t c = 0; c < count; c++) {
        const double x = corners[2 * c] + 0.0, y = corners[2 * c + 1] + 0.0; // -0 is 0
        std::size_t slot = hash(x, y) >> (64 - bits);
        while (table[slot] >= 0 && (points.xyz[3 * static_cast<std::size_t>(table[slot])] != x ||
                                    points.xyz[3 * static_cast<std::size_t>(table[slot]) + 1] != y))
            slot = (slot + 1) & (table.size() - 1);
        if (table[slot] < 0) {
            table[slot] = static_cast<std::int64_t>(points.xyz.size() / 3);
            points.xyz.insert(points.xyz.end(), {x, y, 0.0});
        }
        points.of_corners.push_back(table[slot]);
    }
    return points;
}

// VTK wants corners counterclockwise; the curve meets every other triangle clockwise.
void turn_counterclockwise(const std::vector<double> &corners, std::vector<std::int64_t> &points)
{
    for (std::size_t c = 0; 3 * c < points.size(); c++) {
        const double *p = &corners[6 * c];
        if ((p[2] - p[0]) * (p[5] - p[1]) < (p[3] - p[1]) * (p[4] - p[0]))
            std::swap(points[3 * c], points[3 * c + 1]);
    }
}

void append_cells(std::string &xml, const Snapshot &snapshot)
{
    const std::size_t cells = snapshot.h.size();
    Points points = share_points(snapshot.corners);
    turn_counterclockwise(snapshot.corners, points.of_corners);
    std::vector<std::int64_t> ends(cells);
    for (std::size_t c = 0; c < cells; c++)
        ends[c] = 3 * static_cast<std::int64_t>(c + 1);
    xml += "<Piece NumberOfPoints=\"" + std::to_string(points.xyz.size() / 3) +
           "\" NumberOfCells=\"" + std::to_string(cells) + "\">\n<Points>\n";
    append_vtk_array(xml, "Float64", "points", points.xyz, " NumberOfComponents=\"3\"");
    xml += "</Points>\n<Cells>\n";
    append_vtk_array(xml, "Int64", "connectivity", points.of_corners);
    append_vtk_array(xml, "Int64", "offsets", ends);
    append_vtk_array(xml, "UInt8", "types", std::vector<std::uint8_t>(cells, 5)); // VTK_TRIANGLE
    xml += "</Cells>\n";
}

void append_cell_data(std::string &xml, const Snapshot &snapshot)
{
    const std::size_t cells = snapshot.h.size();
    std::vector<double> surface(cells);
    for (std::size_t c = 0; c < cells; c++)
        surface[c] = snapshot.h[c] > snapshot.dry ? snapshot.h[c] + snapshot.bed[c]
                                                  : std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> *const reals[] = {&snapshot.h, &snapshot.hu, &snapshot.hv,
                                                &snapshot.bed, &surface};
    xml += "<CellData Scalars=\"surface\">\n";
    for (int i = 0; i < 5; i++)
        append_vtk_array(xml, CELL_ARRAYS[i].type, CELL_ARRAYS[i].name, *reals[i]);
    append_vtk_array(xml, "UInt8", "depth",
                     std::vector<std::uint8_t>(snapshot.depth.begin(), snapshot.depth.end()));
    append_vtk_array(xml, "Int32", "cluster", snapshot.cluster);
    append_vtk_array(xml, "Int32", "rank", std::vector<std::int32_t>(cells, snapshot.rank));
    xml += "</CellData>\n";
}

std::string piece(const Snapshot &snapshot)
{
    std::string xml = begin_vtk_piece(snapshot.time);
    append_cells(xml, snapshot);
    append_cell_data(xml, snapshot);
    return xml + VTK_PIECE_END;
}

std::string series_path(const std::string &directory, const std::string &name)
{
    return directory + "/" + name + ".pvd";
}

// As it may be in a comment: of ASCII, without two '-' in a row.
std::string commented(const std::string &text)
{
    std::string safe;
    char before = 0;
    for (char c : text) {
        if (c == '\n' || (c >= ' ' && c <= '~' && c != '%' && (c != '-' || before != '-')))
            safe += c;
        else
            safe += "%" + format_byte(c);
        before = c;
    }
    return safe;
}

void expect_state(const std::string &path, const std::string &series, const std::string &state)
{
    const std::size_t comment = series.find(COMMENT_BEGIN);
    if (comment == series.npos)
        fail_without_identity(path, MOVE_IT_AWAY);
    const std::size_t begin = comment + std::strlen(COMMENT_BEGIN);
    const std::size_t end = std::min(series.find(COMMENT_END, begin), series.size());
    expect_same(path, "configuration", series.substr(begin, end - begin), commented(state),
                MOVE_IT_AWAY);
}

} // namespace

void check_series(const std::string &directory, const std::string &name, const std::string &state)
{
    const std::string path = series_path(directory, name);
    if (std::filesystem::exists(path))
        expect_state(path, read_whole_file(path), state);
}

bool is_series(const std::string &path)
{
    return std::filesystem::is_regular_file(path) &&
           read_whole_file(path).find(COMMENT_BEGIN) != std::string::npos;
}

VtuSeries::VtuSeries(const std::string &where, const std::string &name_, const std::string &state_,
                     std::optional<double> resume_time, MPI_Comm ranks)
    : directory(where), name(name_), state(state_), comm(ranks)
{
    on_rank_0(comm, [&] {
        if (!resume_time)
            remove_file(path());
        if (!resume_time || !std::filesystem::exists(path()))
            return;
        read();
        const auto later = std::remove_if(frames.begin(), frames.end(), [&](const VtkFrame &frame) {
            return frame.time > *resume_time;
        });
        if (later == frames.end())
            return;
        frames.erase(later, frames.end());
        write();
    });
}

std::string VtuSeries::path() const { return series_path(directory, name); }

// Lines are our own, one a frame.
void VtuSeries::read()
{
    const std::string series = read_whole_file(path());
    expect_state(path(), series, state);
    std::istringstream lines(series);
    std::string line;
    double time;
    char file[200];
    while (std::getline(lines, line))
        if (std::sscanf(line.c_str(), FRAME_READ, &time, file) == 2)
            frames.push_back({time, file});
}

void VtuSeries::write() const
{
    write_whole_file(path(),
                     vtk_collection(frames, COMMENT_BEGIN + commented(state) + COMMENT_END));
}

void VtuSeries::add(const Snapshot &snapshot)
{
    const VtkFrame now{snapshot.time, vtk_frame_name(name, snapshot.step)};
    const std::string base = directory + "/";
    on_rank_0(comm, [&] { make_directories(directory); });
    all_together(comm, [&] {
        write_whole_file(base + vtk_piece_name(now.name, snapshot.rank), piece(snapshot));
    });
    on_rank_0(comm, [&] {
        write_whole_file(base + now.name + ".pvtu",
                         vtk_pieces(now.name, snapshot.ranks, CELL_ARRAYS, "surface"));
        auto is_replaced = [&](const VtkFrame &frame) {
            return frame.time >= now.time || frame.name == now.name;
        };
        const auto replaced = std::remove_if(frames.begin(), frames.end(), is_replaced);
        frames.erase(replaced, frames.end());
        frames.push_back(now);
        write();
    });
}

} // namespace swe
