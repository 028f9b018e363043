// SPDX-License-Identifier: GPL-3.0-or-later
// vtk.h - the parts of VTK's XML files that do not depend on what the grid is of.
//
// A frame is NAME-STEP-RANK.vtu, a piece each rank, and NAME-STEP.pvtu, which puts them together;
// NAME.pvd is the collection of frames with their times.  Arrays are base64 of zlib blocks: a file
// is XML to any parser, and a fraction of the size of text.
// Format: VTK File Formats, https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html
#ifndef APPS_LIB_VTK_H
#define APPS_LIB_VTK_H

#include <cstddef>
#include <string>
#include <vector>

namespace apps {

// An array of cell data: VTK's name of its type, and its own.
struct VtkArray {
    const char *type, *name;
};

struct VtkFrame {
    double time;
    std::string name; // NAME-STEP
};

std::string vtk_frame_name(const std::string &name, long step);
std::string vtk_piece_name(const std::string &frame, int rank); // of the file

// The data as the text of a DataArray.  Throws OutputError: out of memory.
std::string vtk_encoded(const void *data, std::size_t size);

// Appends a DataArray element; `more` are other attributes of it.
template <class T> void append_vtk_array(std::string &xml, const char *type, const char *name,
                                         const std::vector<T> &data, const char *more = "")
{
    xml += std::string("<DataArray type=\"") + type + "\" Name=\"" + name + "\"" + more +
           " format=\"binary\">" + vtk_encoded(data.data(), data.size() * sizeof(T)) +
           "</DataArray>\n";
}

// A piece up to its Piece element, which the caller appends without its end; and its end.
std::string begin_vtk_piece(double time);
extern const char *const VTK_PIECE_END;

// The file that puts the pieces of all ranks together; ParaView shows `scalars` first.
std::string vtk_pieces(const std::string &frame, int ranks, const std::vector<VtkArray> &arrays,
                       const std::string &scalars);

// The file with the times of all frames; `comment` is XML before them.
std::string vtk_collection(const std::vector<VtkFrame> &frames, const std::string &comment);

} // namespace apps
#endif
