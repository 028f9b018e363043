// SPDX-License-Identifier: GPL-3.0-or-later
// rasterise.cc - which pixels a cell has; see raster.h.
#include "raster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include "../../grid/triangle.h"

namespace swe {

namespace {

// Centres of n pixels along `squares` base squares, rounded to the lattice.
std::vector<std::int64_t> centres(int n, int squares)
{
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < n; i++)
        places.push_back((2 * i + 1) * squares * LATTICE_UNIT / (2 * n));
    return places;
}

// Is p on the inner side of the edge a-b of a counterclockwise triangle?  Of the two triangles at
// an edge, one runs it up (or, when it is level, to the west), and has the points on it: as if all
// points were moved by a little to the west, and by much less to the south.
bool inside(Lattice a, Lattice b, Lattice p)
{
    const std::int64_t dx = b.x - a.x, dy = b.y - a.y;
    const std::int64_t turn = dx * (p.y - a.y) - dy * (p.x - a.x);
    return turn != 0 ? turn > 0 : dy > 0 || (dy == 0 && dx < 0);
}

class Painter {
public:
    Painter(const RasterShape &raster, const Snapshot &cells)
        : shape(raster), snapshot(cells), columns(centres(shape.nx, shape.squares_x)),
          rows(centres(shape.ny, shape.squares_y))
    {
        const std::size_t n = columns.size() * rows.size();
        for (std::vector<float> *field : {&frame.h, &frame.surface, &frame.speed, &frame.bed})
            field->assign(n, 0);
    }

    void paint(std::size_t cell)
    {
        Lattice p[3];
        for (std::size_t i = 0; i < 3; i++)
            p[i] = lattice(&snapshot.corners[6 * cell + 2 * i]);
        if ((p[1].x - p[0].x) * (p[2].y - p[0].y) < (p[1].y - p[0].y) * (p[2].x - p[0].x))
            std::swap(p[1], p[2]);
        const auto [west, east] = std::minmax({p[0].x, p[1].x, p[2].x});
        const auto [south, north] = std::minmax({p[0].y, p[1].y, p[2].y});
        const std::size_t first = first_of(columns, west), last = first_of(columns, east + 1);
        if (first == last)
            return; // as most cells do where they are smaller than pixels
        for (std::size_t j = first_of(rows, south); j < rows.size() && rows[j] <= north; j++)
            for (std::size_t i = first; i < last; i++) {
                const Lattice at{columns[i], rows[j]};
                if (inside(p[0], p[1], at) && inside(p[1], p[2], at) && inside(p[2], p[0], at))
                    set(j * columns.size() + i, cell);
            }
    }

    RasterFrame frame;

private:
    Lattice lattice(const double *point) const
    {
        const double unit = shape.square / static_cast<double>(LATTICE_UNIT);
        return {std::llround((point[0] - shape.x0) / unit),
                std::llround((point[1] - shape.y0) / unit)};
    }

    static std::size_t first_of(const std::vector<std::int64_t> &places, std::int64_t from)
    {
        return static_cast<std::size_t>(std::lower_bound(places.begin(), places.end(), from) -
                                        places.begin());
    }

    void set(std::size_t pixel, std::size_t cell)
    {
        const double h = snapshot.h[cell], bed = snapshot.bed[cell];
        const bool wet = h > snapshot.dry;
        frame.h[pixel] = static_cast<float>(h);
        frame.bed[pixel] = static_cast<float>(bed);
        frame.surface[pixel] =
            wet ? static_cast<float>(h + bed) : std::numeric_limits<float>::quiet_NaN();
        frame.speed[pixel] =
            wet ? static_cast<float>(std::hypot(snapshot.hu[cell], snapshot.hv[cell]) / h) : 0;
        frame.pixels++;
    }

    const RasterShape &shape;
    const Snapshot &snapshot;
    const std::vector<std::int64_t> columns, rows;
};

} // namespace

RasterFrame rasterise(const RasterShape &shape, const Snapshot &snapshot)
{
    Painter painter(shape, snapshot);
    for (std::size_t cell = 0; cell < snapshot.h.size(); cell++)
        painter.paint(cell);
    return std::move(painter.frame);
}

} // namespace swe
