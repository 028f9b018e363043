// SPDX-License-Identifier: GPL-3.0-or-later
// vtk.cc - see vtk.h.
#include "vtk.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <zlib.h>
#include "failure.h"

namespace apps {

const char *const VTK_PIECE_END = "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";

namespace {

constexpr std::size_t BLOCK = std::size_t{1} << 20; // of an array, compressed by itself

const char *const FILE_ATTRIBUTES =
    "version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\""
    " compressor=\"vtkZLibDataCompressor\"";

std::string format(const char *pattern, double number)
{
    char text[40];
    std::snprintf(text, sizeof text, pattern, number);
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

} // namespace

// Header (number of blocks, size of a block, size of a last shorter one or 0, sizes when
// compressed), then the compressed blocks; each of the two is base64 on its own.
std::string vtk_encoded(const void *data, std::size_t size)
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

std::string vtk_frame_name(const std::string &name, long step)
{
    return name + "-" + format("%08.0f", static_cast<double>(step));
}

std::string vtk_piece_name(const std::string &frame, int rank)
{
    return frame + "-" + std::to_string(rank) + ".vtu";
}

std::string begin_vtk_piece(double time)
{
    std::string xml = std::string("<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" ") +
                      FILE_ATTRIBUTES + ">\n<UnstructuredGrid>\n<FieldData>\n";
    append_vtk_array(xml, "Float64", "TimeValue", std::vector<double>{time},
                     " NumberOfTuples=\"1\"");
    return xml + "</FieldData>\n";
}

std::string vtk_pieces(const std::string &frame, int ranks, const std::vector<VtkArray> &arrays,
                       const std::string &scalars)
{
    std::string xml = std::string("<?xml version=\"1.0\"?>\n<VTKFile type=\"PUnstructuredGrid\" ") +
                      FILE_ATTRIBUTES + ">\n<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>\n" +
                      "<PDataArray type=\"Float64\" Name=\"points\" NumberOfComponents=\"3\"/>\n" +
                      "</PPoints>\n<PCellData Scalars=\"" + scalars + "\">\n";
    for (const VtkArray &array : arrays)
        xml +=
            std::string("<PDataArray type=\"") + array.type + "\" Name=\"" + array.name + "\"/>\n";
    xml += "</PCellData>\n";
    for (int rank = 0; rank < ranks; rank++)
        xml += "<Piece Source=\"" + vtk_piece_name(frame, rank) + "\"/>\n";
    return xml + "</PUnstructuredGrid>\n</VTKFile>\n";
}

std::string vtk_collection(const std::vector<VtkFrame> &frames, const std::string &comment)
{
    std::string xml = "<?xml version=\"1.0\"?>\n" + comment +
                      "<VTKFile type=\"Collection\" version=\"1.0\" "
                      "byte_order=\"LittleEndian\">\n<Collection>\n";
    for (const VtkFrame &frame : frames)
        xml += "<DataSet timestep=\"" + format("%.17g", frame.time) + "\" part=\"0\" file=\"" +
               frame.name + ".pvtu\"/>\n";
    return xml + "</Collection>\n</VTKFile>\n";
}

} // namespace apps
