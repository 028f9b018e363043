// SPDX-License-Identifier: GPL-3.0-or-later
// finite_volume_links.h - finds the links of a patch (finite_volumes.h) from the edges of its
// cells, wherever these are known from.
#ifndef SWE_SOLVER_FINITE_VOLUME_LINKS_H
#define SWE_SOLVER_FINITE_VOLUME_LINKS_H

#include <algorithm>
#include <stdexcept>
#include "finite_volumes.h"

namespace swe {

// FvLinks::shape: outward directions of the edges to the next cell and to the third neighbour, and
// which edge is the hypotenuse: 0 the one to the previous cell, 1 to the next, 2 to the third.
constexpr int SHAPE_NEXT_WAY = 0, SHAPE_THIRD_WAY = 3, SHAPE_HYPOTENUSE = 6, SHAPE_WAY_MASK = 7;

// Vectors may be loaded beyond the last cell: what is in all arrays behind it.
constexpr std::int32_t FV_PADDING = 64 / sizeof(float);

constexpr std::int32_t fv_padded(std::int32_t cells)
{
    return (cells / FV_PADDING + 1) * FV_PADDING;
}

// The three edges of a cell, in any order.
struct FvEdges {
    std::int32_t neighbour[SIDES]; // a cell, or `cells` and more: a ghost
    const std::uint8_t *way;       // [SIDES] outward directions, as FvLinks::ghost_way
    int hypotenuse;                // which edge it is
};

// Which edge leads where the curve comes from, and which one where it goes on.
struct FvCourse {
    int previous, next;
};

// Of the first or the last cell: one edge, or both, lead out of the patch, to any ghost.
inline FvCourse fv_course_at_end(const FvEdges &edges, std::int32_t cell, std::int32_t cells)
{
    auto find = [&](auto is_wanted) {
        for (int k = 0; k < SIDES; k++)
            if (is_wanted(k))
                return k;
        throw std::logic_error("fv_link: two cells in succession have no common edge");
    };
    auto leads = [&](std::int32_t to) {
        return [&, to](int k) { return edges.neighbour[k] == to; };
    };
    auto leads_out = [&](int taken) {
        return [&, taken](int k) { return k != taken && edges.neighbour[k] >= cells; };
    };
    FvCourse course{-1, -1};
    if (cell + 1 < cells)
        course.next = find(leads(cell + 1));
    course.previous = cell > 0 ? find(leads(cell - 1)) : find(leads_out(course.next));
    if (course.next < 0)
        course.next = find(leads_out(course.previous));
    return course;
}

// FvLinks::shape of a cell.
inline std::uint8_t fv_shape(const FvEdges &edges, FvCourse course)
{
    int third = SIDES - course.previous - course.next;
    int kind = edges.hypotenuse == course.previous ? 0 : edges.hypotenuse == course.next ? 1 : 2;
    return static_cast<std::uint8_t>(edges.way[course.next] << SHAPE_NEXT_WAY |
                                     edges.way[third] << SHAPE_THIRD_WAY |
                                     kind << SHAPE_HYPOTENUSE);
}

// Writes the links of one cell after the other.
class FvLinker {
public:
    FvLinker(std::int32_t cells_, std::int32_t ghosts, FvLinks &links_)
        : cells(cells_), links(links_), shift(fv_padded(cells_) - cells_)
    {
        links.cells = cells;
        links.ghosts = ghosts;
        links.first_ghost_at = cells + shift;
        links.third.resize(links.first_ghost_at);
        links.shape.resize(links.first_ghost_at);
        links.ghost_cell.resize(ghosts);
        links.ghost_way.resize(ghosts);
        std::fill(links.third.begin() + cells, links.third.end(), 0);
        std::fill(links.shape.begin() + cells, links.shape.end(), std::uint8_t{0});
    }

    void link(std::int32_t cell, const FvEdges &edges, FvCourse course)
    {
        links.third[cell] = lead(cell, edges, SIDES - course.previous - course.next);
        links.shape[cell] = fv_shape(edges, course);
    }

    // The first cell or the last one, or both.
    void link_end(std::int32_t cell, const FvEdges &edges)
    {
        FvCourse course = fv_course_at_end(edges, cell, cells);
        link(cell, edges, course);
        std::int32_t previous = lead(cell, edges, course.previous);
        std::int32_t next = lead(cell, edges, course.next);
        if (cell == 0) {
            links.before = previous;
            links.before_way = edges.way[course.previous];
        }
        if (cell == cells - 1)
            links.behind = next;
    }

private:
    std::int32_t cells;
    FvLinks &links;
    std::int32_t shift; // of ghosts, in scratch

    // Scratch index of the cell or ghost across the edge.
    std::int32_t lead(std::int32_t cell, const FvEdges &edges, int k)
    {
        std::int32_t to = edges.neighbour[k];
        if (to < cells)
            return to;
        links.ghost_cell[to - cells] = cell;
        links.ghost_way[to - cells] = edges.way[k];
        return to + shift;
    }
};

} // namespace swe
#endif
