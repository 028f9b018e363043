// SPDX-License-Identifier: GPL-3.0-or-later
// frames.cc - see frames.h.
#include "frames.h"

#include <cmath>
#include <cstdint>
#include "../../lib/output/failure.h"
#include "../../lib/output/files.h"

namespace euler {

using namespace apps;

namespace {

const std::vector<VtkArray> ARRAYS = {
    {"Float64", "density"}, {"Float64", "momentum_x"}, {"Float64", "momentum_y"},
    {"Float64", "momentum_z"}, {"Float64", "energy"}, {"UInt8", "level"},
    {"UInt8", "zone"}, {"Int32", "rank"}};
constexpr std::size_t MOMENTUM_Z = 3;
constexpr std::uint8_t VTK_PIXEL = 8, VTK_VOXEL = 11; // corners in the order of their bits

std::vector<VtkArray> arrays_of(int dimensions)
{
    std::vector<VtkArray> arrays = ARRAYS;
    if (dimensions == 2)
        arrays.erase(arrays.begin() + MOMENTUM_Z);
    return arrays;
}

// Corners of the box of point k of a cell.
template <int D>
void append_corners(std::vector<double> &xyz, const Config &config, const Place<D> &place, int k,
                    int points)
{
    const double box = config.domain.side / static_cast<double>(power_of_3(place.level)) / points;
    for (int corner = 0; corner < 1 << D; corner++)
        for (int axis = 0, rest = k; axis < 3; axis++, rest /= points)
            xyz.push_back(axis < D ? (place.x[axis] * points + rest % points +
                                      (corner >> axis & 1)) * box
                                   : 0);
}

template <int D> void append_geometry(std::string &xml, const Simulation<D> &s, int boxes)
{
    const std::size_t count = static_cast<std::size_t>(boxes) * s.mesh().size();
    std::vector<double> xyz;
    std::vector<std::int64_t> corners(count << D), ends(count);
    for (int i = 0; i < s.mesh().size(); i++)
        for (int k = 0; k < boxes; k++)
            append_corners(xyz, s.config(), s.mesh().place(i), k, s.element().sizes().points);
    for (std::size_t i = 0; i < corners.size(); i++)
        corners[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < count; i++)
        ends[i] = static_cast<std::int64_t>((i + 1) << D);
    xml += "<Piece NumberOfPoints=\"" + std::to_string(corners.size()) + "\" NumberOfCells=\"" +
           std::to_string(count) + "\">\n<Points>\n";
    append_vtk_array(xml, "Float64", "points", xyz, " NumberOfComponents=\"3\"");
    xml += "</Points>\n<Cells>\n";
    append_vtk_array(xml, "Int64", "connectivity", corners);
    append_vtk_array(xml, "Int64", "offsets", ends);
    append_vtk_array(xml, "UInt8", "types",
                     std::vector<std::uint8_t>(count, D == 2 ? VTK_PIXEL : VTK_VOXEL));
    xml += "</Cells>\n";
}

// A number of each cell, for each of its boxes.
template <class T, class F> std::vector<T> for_boxes(int cells, int boxes, F number)
{
    std::vector<T> all;
    for (int i = 0; i < cells; i++)
        all.insert(all.end(), boxes, static_cast<T>(number(i)));
    return all;
}

template <int D> void append_data(std::string &xml, const Simulation<D> &s, int boxes)
{
    const Mesh<D> &mesh = s.mesh();
    const int cells = mesh.size();
    const auto arrays = arrays_of(D);
    xml += "<CellData Scalars=\"density\">\n";
    for (int unknown = 0; unknown < D + 2; unknown++) {
        std::vector<double> data;
        for (int i = 0; i < cells; i++) {
            const double *state = s.cell(i).state.data() + unknown * boxes;
            data.insert(data.end(), state, state + boxes);
        }
        append_vtk_array(xml, arrays[unknown].type, arrays[unknown].name, data);
    }
    append_vtk_array(xml, "UInt8", "level", for_boxes<std::uint8_t>(cells, boxes, [&](int i) {
                         return mesh.place(i).level;
                     }));
    append_vtk_array(xml, "UInt8", "zone", for_boxes<std::uint8_t>(cells, boxes, [&](int i) {
                         return static_cast<int>(mesh.zone(i));
                     }));
    append_vtk_array(xml, "Int32", "rank", for_boxes<std::int32_t>(cells, boxes, [&](int) {
                         return s.rank();
                     }));
    xml += "</CellData>\n";
}

} // namespace

template <int D>
Frames<D>::Frames(const Config &config, std::string name)
    : config_(config), base_(config.output.directory + "/"), name_(std::move(name))
{
}

template <int D> void Frames<D>::look(const Simulation<D> &simulation)
{
    const double every = config_.output.vtu_every;
    if (simulation.time() < next_ && !simulation.at_end())
        return;
    next_ = (std::floor(simulation.time() / every) + 1) * every;
    add(simulation);
}

template <int D> void Frames<D>::add(const Simulation<D> &s)
{
    int boxes = 1;
    for (int axis = 0; axis < D; axis++)
        boxes *= s.element().sizes().points;
    const VtkFrame now{s.time(), vtk_frame_name(name_, s.account().steps)};
    on_rank_0(s.comm(), [&] { make_directories(config_.output.directory); });
    all_together(s.comm(), [&] {
        std::string xml = begin_vtk_piece(s.time());
        append_geometry(xml, s, boxes);
        append_data(xml, s, boxes);
        write_whole_file(base_ + vtk_piece_name(now.name, s.rank()), xml + VTK_PIECE_END);
    });
    frames_.push_back(now);
    on_rank_0(s.comm(), [&] {
        write_whole_file(base_ + now.name + ".pvtu",
                         vtk_pieces(now.name, s.ranks(), arrays_of(D), "density"));
        write_whole_file(base_ + name_ + ".pvd", vtk_collection(frames_, ""));
    });
}

template class Frames<2>;
template class Frames<3>;

} // namespace euler
