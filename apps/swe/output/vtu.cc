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
#include <zlib.h>
#include "../../lib/output/files.h"
#include "checkpoint/identity.h"

namespace swe {

using namespace apps;

namespace {

constexpr std::size_t BLOCK = std::size_t{1} << 20; // of an array, compressed by itself

const char *const FILE_ATTRIBUTES =
    "version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\""
    " compressor=\"vtkZLibDataCompressor\"";

// Around the state in the series.
const char *const COMMENT_BEGIN = "<!-- configuration:\n";
const char *const COMMENT_END = "-->\n";

// A line of the series: its time, and its file without the ending.
const char *const FRAME_READ = "<DataSet timestep=\"%lf\" part=\"0\" file=\"%199[^.\"].pvtu";

struct CellArray {
    const char *type, *name;
};
constexpr CellArray CELL_ARRAYS[] = {
    {"Float64", "h"},       {"Float64", "hu"},  {"Float64", "hv"},    {"Float64", "bed"},
    {"Float64", "surface"}, {"UInt8", "depth"}, {"Int32", "cluster"}, {"Int32", "rank"},
};

std::string format(const char *pattern, double number)
{
    char text[40];
    std::snprintf(text, sizeof text, pattern, number);
    return text;
}

std::string format_byte(char c)
{
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(c));
    return text;
}

void append_base64(std::string &text, const unsigned char *bytes, std::size_t size)
{
    static constexpr char DIGITS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text.reserve(text.size() + (size + 2) / 3 * 4);
    for (std::size_t i = 0; i < size; i += 3) {
        const unsigned three = bytes[i] << 16 | (i + 1 < size ? bytes[i + 1] << 8 : 0) |
                               (i + 2 < size ? bytes[i + 2] : 0);
        text += DIGITS[three >> 18];
        text += DIGITS[three >> 12 & 63];
        text += i + 1 < size ? DIGITS[three >> 6 & 63] : '=';
        text += i + 2 < size ? DIGITS[three & 63] : '=';
    }
}

// Header (number of blocks, size of a block, size of a last shorter one or 0, sizes when
// compressed), then the compressed blocks; each of the two is base64 on its own.
std::string encode(const void *data, std::size_t size)
{
    const auto *bytes = static_cast<const unsigned char *>(data);
    const std::size_t blocks = (size + BLOCK - 1) / BLOCK;
    std::vector<std::uint64_t> header{blocks, BLOCK, size % BLOCK};
    std::vector<unsigned char> compressed;
    for (std::size_t first = 0; first < size; first += BLOCK) {
        const std::size_t length = std::min(BLOCK, size - first), before = compressed.size();
        uLongf room = compressBound(length);
        compressed.resize(before + room);
        if (compress2(compressed.data() + before, &room, bytes + first, length, 1) != Z_OK)
            throw OutputError("zlib cannot compress: out of memory");
        compressed.resize(before + room);
        header.push_back(room);
    }
    std::string text;
    append_base64(text, reinterpret_cast<const unsigned char *>(header.data()),
                  header.size() * sizeof header[0]);
    append_base64(text, compressed.data(), compressed.size());
    return text;
}

template <class T> void append_array(std::string &xml, const char *type, const char *name,
                                     const std::vector<T> &data, const char *more = "")
{
    xml += std::string("<DataArray type=\"") + type + "\" Name=\"" + name + "\"" + more +
           " format=\"binary\">" + encode(data.data(), data.size() * sizeof(T)) + "</DataArray>\n";
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
    append_array(xml, "Float64", "points", points.xyz, " NumberOfComponents=\"3\"");
    xml += "</Points>\n<Cells>\n";
    append_array(xml, "Int64", "connectivity", points.of_corners);
    append_array(xml, "Int64", "offsets", ends);
    append_array(xml, "UInt8", "types", std::vector<std::uint8_t>(cells, 5)); // VTK_TRIANGLE
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
        append_array(xml, CELL_ARRAYS[i].type, CELL_ARRAYS[i].name, *reals[i]);
    append_array(xml, "UInt8", "depth",
                 std::vector<std::uint8_t>(snapshot.depth.begin(), snapshot.depth.end()));
    append_array(xml, "Int32", "cluster", snapshot.cluster);
    append_array(xml, "Int32", "rank", std::vector<std::int32_t>(cells, snapshot.rank));
    xml += "</CellData>\n";
}

std::string piece(const Snapshot &snapshot)
{
    std::string xml = std::string("<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" ") +
                      FILE_ATTRIBUTES + ">\n<UnstructuredGrid>\n<FieldData>\n";
    append_array(xml, "Float64", "TimeValue", std::vector<double>{snapshot.time},
                 " NumberOfTuples=\"1\"");
    xml += "</FieldData>\n";
    append_cells(xml, snapshot);
    append_cell_data(xml, snapshot);
    return xml + "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";
}

std::string piece_name(const std::string &frame, int rank)
{
    return frame + "-" + std::to_string(rank) + ".vtu";
}

std::string pieces_together(const std::string &frame, int ranks)
{
    std::string xml = std::string("<?xml version=\"1.0\"?>\n<VTKFile type=\"PUnstructuredGrid\" ") +
                      FILE_ATTRIBUTES + ">\n<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>\n" +
                      "<PDataArray type=\"Float64\" Name=\"points\" NumberOfComponents=\"3\"/>\n" +
                      "</PPoints>\n<PCellData Scalars=\"surface\">\n";
    for (const CellArray &array : CELL_ARRAYS)
        xml +=
            std::string("<PDataArray type=\"") + array.type + "\" Name=\"" + array.name + "\"/>\n";
    xml += "</PCellData>\n";
    for (int rank = 0; rank < ranks; rank++)
        xml += "<Piece Source=\"" + piece_name(frame, rank) + "\"/>\n";
    return xml + "</PUnstructuredGrid>\n</VTKFile>\n";
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
        const auto later = std::remove_if(frames.begin(), frames.end(), [&](const Frame &frame) {
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
    std::string xml = "<?xml version=\"1.0\"?>\n" + (COMMENT_BEGIN + commented(state)) +
                      COMMENT_END +
                      "<VTKFile type=\"Collection\" version=\"1.0\" "
                      "byte_order=\"LittleEndian\">\n<Collection>\n";
    for (const Frame &frame : frames)
        xml += "<DataSet timestep=\"" + format("%.17g", frame.time) + "\" part=\"0\" file=\"" +
               frame.name + ".pvtu\"/>\n";
    write_whole_file(path(), xml + "</Collection>\n</VTKFile>\n");
}

void VtuSeries::add(const Snapshot &snapshot)
{
    const Frame now{snapshot.time,
                    name + "-" + format("%08.0f", static_cast<double>(snapshot.step))};
    const std::string base = directory + "/";
    on_rank_0(comm, [&] { make_directories(directory); });
    all_together(comm, [&] {
        write_whole_file(base + piece_name(now.name, snapshot.rank), piece(snapshot));
    });
    on_rank_0(comm, [&] {
        write_whole_file(base + now.name + ".pvtu", pieces_together(now.name, snapshot.ranks));
        const auto replaced = std::remove_if(frames.begin(), frames.end(), [&](const Frame &frame) {
            return frame.time >= now.time || frame.name == now.name;
        });
        frames.erase(replaced, frames.end());
        frames.push_back(now);
        write();
    });
}

} // namespace swe
