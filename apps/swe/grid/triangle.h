// SPDX-License-Identifier: GPL-3.0-or-later
// triangle.h - right isosceles triangles and newest-vertex bisection on an integer lattice.
//
// A triangle is known by three lattice points: the Sierpinski curve enters it at `entry`, leaves
// it at `exit`, and its right angle is at `apex`.  The edge entry-exit is the hypotenuse; bisection
// cuts it in the middle, and the middle is the apex of both children, of which the curve meets
// (entry, apex) first and (apex, exit) next.  Lattice points are exact, so that two triangles that
// share an edge compute the same numbers for it.  (Schreiber et al., section 4)
#ifndef SWE_GRID_TRIANGLE_H
#define SWE_GRID_TRIANGLE_H

#include <cstdint>

namespace swe {

// Lattice units of a side of a base square: bisections below a root are at most 2 * LATTICE_BITS.
constexpr int LATTICE_BITS = 24;
constexpr std::int64_t LATTICE_UNIT = std::int64_t{1} << LATTICE_BITS;

struct Lattice {
    std::int64_t x, y;
    friend constexpr bool operator==(Lattice a, Lattice b) { return a.x == b.x && a.y == b.y; }
    friend constexpr bool operator<(Lattice a, Lattice b)
    {
        return a.x != b.x ? a.x < b.x : a.y < b.y;
    }
};

constexpr Lattice middle(Lattice a, Lattice b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

struct Triangle {
    Lattice entry, exit, apex;

    constexpr Triangle first() const { return {entry, apex, middle(entry, exit)}; }
    constexpr Triangle second() const { return {apex, exit, middle(entry, exit)}; }
};

// `levels` bisections below t: of the low `levels` bits of path, the highest says which child of t
// (1: the second), and so on.
constexpr Triangle descendant(Triangle t, std::uint64_t path, int levels)
{
    for (int bit = levels - 1; bit >= 0; bit--)
        t = path >> bit & 1 ? t.second() : t.first();
    return t;
}

// The three edges of a triangle, and the order in which everything that has one entry an edge
// has them.  Each is run through from the curve's entry towards its exit.
enum Side : int { HYPOTENUSE = 0, ENTRY_LEG = 1, EXIT_LEG = 2, SIDES = 3 };

constexpr Lattice side_begin(const Triangle &t, int side)
{
    return side == EXIT_LEG ? t.apex : t.entry;
}
constexpr Lattice side_end(const Triangle &t, int side)
{
    return side == ENTRY_LEG ? t.apex : t.exit;
}

// Edges have one of four directions.  The unit normal of direction d points to the positive side:
// (1,0), (s,s), (0,1), (-s,s) with s = sqrt(1/2).  Of the two cells at an edge, the one that the
// normal leaves is its *left* cell, the one that it enters its *right* cell.
constexpr int DIRECTIONS = 4;
constexpr double NORMAL_X[DIRECTIONS] = {1, 0.70710678118654752440, 0, -0.70710678118654752440};
constexpr double NORMAL_Y[DIRECTIONS] = {0, 0.70710678118654752440, 1, 0.70710678118654752440};

// Direction of the edge a-b, which is parallel to an axis or to a diagonal.
constexpr int direction(Lattice a, Lattice b)
{
    std::int64_t dx = b.x - a.x, dy = b.y - a.y;
    if (dx == 0)
        return 0;
    if (dy == 0)
        return 2;
    return (dx > 0) == (dy > 0) ? 3 : 1;
}

// Is `inside`, a point of a cell, on the side of the edge a-b that the normal leaves?
constexpr bool is_left(Lattice a, Lattice b, Lattice inside)
{
    std::int64_t x = inside.x - a.x, y = inside.y - a.y;
    switch (direction(a, b)) {
    case 0:
        return x < 0;
    case 1:
        return x + y < 0;
    case 2:
        return y < 0;
    default:
        return y - x < 0;
    }
}

// The corner of t that is not on the side.
constexpr Lattice opposite(const Triangle &t, int side)
{
    return side == HYPOTENUSE ? t.apex : side == ENTRY_LEG ? t.exit : t.entry;
}

// Shape of a triangle but for its size, 0 .. ORIENTATIONS-1: the direction of its hypotenuse, in
// eighths of a turn from (1,0) counterclockwise, and 8 more if the apex is on the right hand.
constexpr int ORIENTATIONS = 16;

constexpr int orientation(const Triangle &t)
{
    constexpr int EIGHTH[3][3] = {{5, 4, 3}, {6, 0, 2}, {7, 0, 1}}; // by the signs of x and y
    std::int64_t x = t.exit.x - t.entry.x, y = t.exit.y - t.entry.y;
    std::int64_t turn = x * (t.apex.y - t.entry.y) - y * (t.apex.x - t.entry.x);
    int column = y < 0 ? 0 : y == 0 ? 1 : 2, row = x < 0 ? 0 : x == 0 ? 1 : 2;
    return EIGHTH[row][column] + (turn < 0 ? 8 : 0);
}

// A triangle of the orientation on the lattice.
constexpr Triangle example(int orientation)
{
    constexpr int X[8] = {4, 4, 0, -4, -4, -4, 0, 4}, Y[8] = {0, 4, 4, 4, 0, -4, -4, -4};
    std::int64_t x = X[orientation % 8], y = Y[orientation % 8], hand = orientation < 8 ? 1 : -1;
    return {{0, 0}, {x, y}, {(x - hand * y) / 2, (y + hand * x) / 2}};
}

// How far b is from a along the normal of a direction; times sqrt(2) for the diagonals.
inline std::int64_t along_normal(int direction, Lattice a, Lattice b)
{
    std::int64_t x = b.x - a.x, y = b.y - a.y;
    switch (direction) {
    case 0:
        return x;
    case 1:
        return x + y;
    case 2:
        return y;
    default:
        return y - x;
    }
}

// Is p in t?  A point on an edge or a corner is in the one triangle that has the points which are
// next to it towards (2, 1), a direction that no edge has: of the triangles of a grid, exactly one
// contains a point, also of the west and south ends of the domain, but not of the others.
inline bool contains(const Triangle &t, Lattice p)
{
    for (int side = 0; side < SIDES; side++) {
        Lattice a = side_begin(t, side);
        int d = direction(a, side_end(t, side));
        std::int64_t s = along_normal(d, a, p);
        bool right = s != 0 ? s > 0 : along_normal(d, {0, 0}, {2, 1}) > 0;
        if (right != (along_normal(d, a, opposite(t, side)) > 0))
            return false;
    }
    return true;
}

} // namespace swe
#endif
