// SPDX-License-Identifier: GPL-3.0-or-later
// cell_shape.h - what the bytes FvLinks::shape say of cells, in vectors: the normals of their edges,
// and which of these is the hypotenuse.
//
// A table is looked up at once where a register holds it, and else lane by lane.  Vectors of four
// lanes do not hold it, but there one transposition of a row for each lane makes all four numbers of
// a normal pair; and conditions are bits of the byte.
#ifndef SWE_SOLVER_CELL_SHAPE_H
#define SWE_SOLVER_CELL_SHAPE_H

#include "vectors/cell_vectors.h"
#include "finite_volume_links.h"

namespace swe {

// Is the hypotenuse the edge to the previous cell, the next, the third?  By SHAPE_HYPOTENUSE.
template <class Real> constexpr Table<Real> IS_PREVIOUS({1, 0, 0, 0, 0, 0, 0, 0});
template <class Real> constexpr Table<Real> IS_NEXT({0, 1, 0, 0, 0, 0, 0, 0});
template <class Real> constexpr Table<Real> IS_THIRD({0, 0, 1, 0, 0, 0, 0, 0});

// What is true in some lanes and not in others: looked up in tables, numbers, 1 or 0.  In vectors
// of four lanes it is the sign bits of integers, which AVX need not compare.
template <class Value> using Truth =
    std::conditional_t<is_as_long_as_a_row<Value>, typename Integers<Value>::type, Value>;

template <class Value>
SWE_INLINE Value choose_if(typename Integers<Value>::type negative, Value yes, Value no)
{
#ifdef __x86_64__
    if constexpr (sizeof(Value) == 32) { // which looks at signs only: there is nothing to compare
        Value result;
        asm("vblendvpd %1, %2, %3, %0" : "=x"(result) : "x"(negative), "x"(yes), "x"(no));
        return result;
    }
#endif
    return negative < 0 ? yes : no;
}

template <class Value> SWE_INLINE Value choose_if(Value condition, Value yes, Value no)
{
    return choose(condition, yes, no);
}

static_assert(SHAPE_NEXT_WAY == 0 && SHAPE_THIRD_WAY == 3 && WAYS == 8, "an index of WayRows");

// A bit of integers as their sign; what is shifted out is gone, in vectors also of signed ones.
template <class Value>
SWE_INLINE typename Integers<Value>::type sign_bit(typename Integers<Value>::type integers, int bit)
{
    constexpr int BITS = 8 * sizeof(Value) / lanes_of<Value>();
    return integers << (BITS - 1 - bit);
}

// Outward normals of the edges to the next cell and to the third neighbour.
template <class Value> struct Ways {
    Value next_x, next_y, third_x, third_y;
};

// The same for all pairs of directions, a row each.
template <class Real> struct WayRows {
    alignas(64) Real row[WAYS * WAYS][ROW];

    constexpr WayRows() : row{}
    {
        for (int shape = 0; shape < WAYS * WAYS; shape++) {
            int next = (shape >> SHAPE_NEXT_WAY) & SHAPE_WAY_MASK;
            int third = (shape >> SHAPE_THIRD_WAY) & SHAPE_WAY_MASK;
            row[shape][0] = WAY_X<Real>.entry[next], row[shape][1] = WAY_Y<Real>.entry[next];
            row[shape][2] = WAY_X<Real>.entry[third], row[shape][3] = WAY_Y<Real>.entry[third];
        }
    }
};
template <class Real> constexpr WayRows<Real> WAY_ROWS;

// Of shapes, which are given as bytes, too.
template <class Value, class Real>
SWE_INLINE Ways<Value> ways_of(const std::uint8_t *bytes, typename Integers<Value>::type shape)
{
    if constexpr (is_as_long_as_a_row<Value>) {
        std::int32_t at[ROW];
        for (int lane = 0; lane < ROW; lane++)
            at[lane] = bytes[lane] & (WAYS * WAYS - 1);
        Value columns[ROW];
        gather_rows(&WAY_ROWS<Real>.row[0][0], at, columns);
        return {columns[0], columns[1], columns[2], columns[3]};
    } else {
        auto next = (shape >> SHAPE_NEXT_WAY) & SHAPE_WAY_MASK;
        auto third = (shape >> SHAPE_THIRD_WAY) & SHAPE_WAY_MASK;
        return {look_up<Value>(WAY_X<Real>, next), look_up<Value>(WAY_Y<Real>, next),
                look_up<Value>(WAY_X<Real>, third), look_up<Value>(WAY_Y<Real>, third)};
    }
}

// Which of a cell's edges is the hypotenuse.
template <class Value> struct Hypotenuse {
    Truth<Value> previous, next, third;
};

template <class Value, class Real>
SWE_INLINE Hypotenuse<Value> hypotenuse_of(typename Integers<Value>::type shape)
{
    if constexpr (is_as_long_as_a_row<Value>) {
        auto next = sign_bit<Value>(shape, SHAPE_HYPOTENUSE);
        auto third = sign_bit<Value>(shape, SHAPE_HYPOTENUSE + 1);
        return {~(next | third), next, third};
    } else {
        auto kind = shape >> SHAPE_HYPOTENUSE;
        return {look_up<Value>(IS_PREVIOUS<Real>, kind), look_up<Value>(IS_NEXT<Real>, kind),
                look_up<Value>(IS_THIRD<Real>, kind)};
    }
}

} // namespace swe
#endif
