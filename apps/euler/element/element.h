// SPDX-License-Identifier: GPL-3.0-or-later
// element.h - what is computed for one cell: ADER-DG for the compressible Euler equations.
//
// A step of a cell (Dumbser and Kaeser 2006, doi:10.1111/j.1365-246X.2006.03120.x; Charrier,
// Hazelwood, Weinzierl 2018, arXiv:1806.07984, section 5):
//   predict  the cell's equation alone, in space and time, by Picard iterations; what it leaves for
//            the corrector are the volume integral and, for each face, the trace: state and normal
//            flux there, averaged over the step.
//   correct  Rusanov's flux at each face, of the traces on its two sides, and the sum.
// A face between levels is solved on the sub-faces of the finer side: the coarse trace is
// interpolated to each, and the fluxes are projected back.  Both sides solve a face, each for
// itself, from the same numbers by the same operations.
//
// Arrays: a state is [unknown][point], density, momentum, energy; a trace is [state, normal
// flux][unknown][point of the face].  All functions may be called by several threads at once.
#ifndef EULER_ELEMENT_H
#define EULER_ELEMENT_H

#include <array>
#include <cstddef>
#include <memory>

namespace euler {

constexpr double GAMMA = 1.4;                         // ratio of specific heats
constexpr int MOST_DIMENSIONS = 3, MOST_SUB_FACES = 9;
constexpr int LOWEST_ORDER = 1, HIGHEST_ORDER = 9;

enum class FaceKind : unsigned char { WALL, SAME, COARSER, FINER };

// The other side of a face.  other: one trace, none at a wall, or of FINER one for each sub-face,
// the lower tangential axis innermost.
struct Face {
    FaceKind kind = FaceKind::WALL;
    unsigned char sub_face = 0; // COARSER: which sub-face of the neighbour's
    std::array<const double *, MOST_SUB_FACES> other{};
};

// Faces of a cell: 2 * axis + side, where side 1 is that of larger coordinates.
using Faces = std::array<Face, 2 * MOST_DIMENSIONS>;

struct Look {
    double speed;     // fastest wave along any axis
    double variation; // largest difference of any unknown between two points
};

struct Sizes {
    int dimensions, points, unknowns; // points along an axis
    std::size_t state, trace, scratch; // doubles; a trace is of one face
};

class Element {
public:
    virtual ~Element() = default;
    const Sizes &sizes() const { return sizes_; }

    // Longest stable step, times the fastest wave over the side of a cell.
    virtual double courant() const = 0;

    // step: dt / side of the cell.  Writes volume (a state) and 2 * dimensions traces.
    virtual void predict(const double *state, double step, double *volume, double *traces,
                         double *scratch) const = 0;
    // `traces`: the cell's own.
    virtual void correct(double *state, double step, const double *volume, const double *traces,
                         const Faces &faces, double *scratch) const = 0;

    // Child number c has its third along each axis, the first axis innermost.
    virtual void refine(const double *coarse, int child, double *fine, double *scratch) const = 0;
    virtual void add_child(const double *fine, int child, double *coarse,
                           double *scratch) const = 0;

    virtual Look look(const double *state) const = 0;
    // Mean of each unknown; the integral, but for the volume of the cell.
    virtual void means(const double *state, double *unknowns) const = 0;
    // Place of a point in the cell, 0 to 1 along each axis.
    virtual void place(std::size_t point, double *where) const = 0;
    // The weight of a point: the sum is 1.
    virtual double weight(std::size_t point) const = 0;

protected:
    explicit Element(const Sizes &sizes) : sizes_(sizes) {}

private:
    const Sizes sizes_;
};

// dimensions: 2 or 3; order: LOWEST_ORDER to HIGHEST_ORDER.  Else NULL.
std::unique_ptr<Element> make_element(int dimensions, int order);

} // namespace euler
#endif
