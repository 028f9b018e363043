// SPDX-License-Identifier: GPL-3.0-or-later
// finite_volume_links.cc - the links of a patch whose edges are listed; see finite_volumes.h.
#include "finite_volume_links.h"
#include "vectors/cell_vectors.h"

namespace swe {
namespace {

// A cell's edges, as they are found.
struct CellEdges {
    int found = 0;
    std::int32_t neighbour[SIDES];
    std::uint8_t way[SIDES], size[SIDES];
};

template <class Real> std::vector<CellEdges> edges_of_cells(const Patch<Real> &patch)
{
    std::vector<CellEdges> all_edges(patch.cells);
    auto add = [&](std::int32_t cell, std::int32_t neighbour, int way, std::uint8_t size) {
        if (cell >= patch.cells)
            return;
        CellEdges &edges = all_edges[cell];
        if (edges.found == SIDES)
            throw std::logic_error("fv_link: a cell has more than three edges");
        edges.neighbour[edges.found] = neighbour;
        edges.way[edges.found] = static_cast<std::uint8_t>(way);
        edges.size[edges.found++] = size;
    };
    for (std::int32_t r = 0; r < patch.run_count; r++) {
        const EdgeRun &run = patch.runs[r];
        for (std::int32_t e = run.first; e < run.last; e++) {
            add(patch.left[e], patch.right[e], run.direction, run.size);
            add(patch.right[e], patch.left[e], reversed(run.direction), run.size);
        }
    }
    return all_edges;
}

// Of a cell that has a cell before and one behind it in the patch.
FvCourse course_inside(const FvEdges &edges, std::int32_t cell)
{
    const std::int32_t *to = edges.neighbour;
    FvCourse course{(to[1] == cell - 1) + 2 * (to[2] == cell - 1),
                    (to[1] == cell + 1) + 2 * (to[2] == cell + 1)};
    if (to[course.previous] != cell - 1 || to[course.next] != cell + 1)
        throw std::logic_error("fv_link: two cells in succession have no common edge");
    return course;
}

} // namespace

template <class Real> void fv_link(const Patch<Real> &patch, FvLinks &links)
{
    std::vector<CellEdges> all_edges = edges_of_cells(patch);
    auto edges_of = [&](std::int32_t cell) -> FvEdges {
        const CellEdges &e = all_edges[cell];
        if (e.found != SIDES)
            throw std::logic_error("fv_link: a cell has fewer than three edges");
        auto hypotenuse = static_cast<int>(std::min_element(e.size, e.size + SIDES) - e.size);
        return {{e.neighbour[0], e.neighbour[1], e.neighbour[2]}, e.way, hypotenuse};
    };
    FvLinker linker(patch.cells, patch.ghosts, links);
    for (std::int32_t cell : {0, patch.cells - 1})
        linker.link_end(cell, edges_of(cell));
    for (std::int32_t cell = 1; cell < patch.cells - 1; cell++) {
        FvEdges edges = edges_of(cell);
        linker.link(cell, edges, course_inside(edges, cell));
    }
}

template void fv_link(const Patch<float> &, FvLinks &);
template void fv_link(const Patch<double> &, FvLinks &);

} // namespace swe
