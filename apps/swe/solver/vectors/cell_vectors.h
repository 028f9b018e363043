// SPDX-License-Identifier: GPL-3.0-or-later
// cell_vectors.h - cells in vectors, as the sweeps of finite_volumes.cc take them: tables by
// direction, the last vector of a patch, which is not full, and neighbours from other places.
#ifndef SWE_SOLVER_CELL_VECTORS_H
#define SWE_SOLVER_CELL_VECTORS_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include "../../grid/patch.h"
#include "../edge.h"

namespace swe {

// An edge's outward directions: those of NORMAL_X, NORMAL_Y, and then against them.
constexpr int WAYS = 2 * DIRECTIONS;

inline int reversed(int way) { return (way + DIRECTIONS) % WAYS; }

// A table of WAYS entries, repeated: so that the first entries of it make a vector of any length.
template <class Real> struct Table {
    alignas(64) Real entry[2 * WAYS];

    constexpr Table(const Real (&entries)[WAYS]) : entry{}
    {
        for (int i = 0; i < 2 * WAYS; i++)
            entry[i] = entries[i % WAYS];
    }
};

constexpr double DIAGONAL = NORMAL_X[1];
template <class Real> constexpr Table<Real> WAY_X({1, Real(DIAGONAL), 0, -Real(DIAGONAL), -1,
                                                   -Real(DIAGONAL), 0, Real(DIAGONAL)});
template <class Real> constexpr Table<Real> WAY_Y({0, Real(DIAGONAL), 1, Real(DIAGONAL), 0,
                                                   -Real(DIAGONAL), -1, -Real(DIAGONAL)});

template <class Value> constexpr int lanes_of()
{
    if constexpr (is_number<Value>)
        return 1;
    else
        return sizeof(Value) / sizeof(Value{}[0]);
}

// Rows of four numbers in memory, of which a vector gathers one for each lane.
constexpr int ROW = 4;
template <class Value> constexpr bool is_as_long_as_a_row = lanes_of<Value>() == ROW;

// The table's entry index[lane] in each lane.
template <class Value, class Integer, class Real>
SWE_INLINE Value look_up(const Table<Real> &table, Integer index)
{
    constexpr int LANES = lanes_of<Value>();
    Value result;
    if constexpr (LANES >= WAYS) { // the table fits into a register
        result = __builtin_shuffle(load<Value>(table.entry), index);
    } else {
        for (int lane = 0; lane < LANES; lane++)
            result[lane] = table.entry[index[lane]];
    }
    return result;
}

// One lane further: the last one of `before`, then all but the last one of `value`.
template <class Value> SWE_INLINE Value shifted(Value before, Value value)
{
    constexpr int LANES = lanes_of<Value>();
    typename Integers<Value>::type order;
    for (int lane = 0; lane < LANES; lane++)
        order[lane] = LANES - 1 + lane;
    return __builtin_shuffle(before, value, order);
}

template <class Value>
SWE_INLINE EdgeFlux<Value> shifted(const EdgeFlux<Value> &before, const EdgeFlux<Value> &flux)
{
    return {shifted(before.mass, flux.mass), shifted(before.lost_x, flux.lost_x),
            shifted(before.lost_y, flux.lost_y), shifted(before.gained_x, flux.gained_x),
            shifted(before.gained_y, flux.gained_y)};
}

// The first `count` lanes; the others are 0.
template <class Value, class Real> SWE_INLINE Value load_some(const Real *from, int count)
{
    constexpr int LANES = lanes_of<Value>();
    if (__builtin_expect(count >= LANES, 1))
        return load<Value>(from);
    Value value{};
    for (int lane = 0; lane < count; lane++)
        value[lane] = from[lane];
    return value;
}

// The other lanes become 0.
template <class Value> SWE_INLINE Value first_lanes(Value value, int count)
{
    constexpr int LANES = lanes_of<Value>();
    if (__builtin_expect(count >= LANES, 1))
        return value;
    Value result{};
    for (int lane = 0; lane < count; lane++)
        result[lane] = value[lane];
    return result;
}

template <class Value, class Real> SWE_INLINE void store_some(Real *to, Value value, int count)
{
    constexpr int LANES = lanes_of<Value>();
    if (__builtin_expect(count >= LANES, 1)) {
        store(to, value);
        return;
    }
    for (int lane = 0; lane < count; lane++)
        to[lane] = value[lane];
}

// Words of as many bytes as a lane, each of them in as many lanes as it has bytes.
template <class Value, class Words> SWE_INLINE auto spread(Words w)
{
    constexpr int LANES = lanes_of<Value>(), WORD = sizeof(Value) / LANES;
    if constexpr (LANES <= WORD) {
        typename Integers<Value>::type result;
        for (int lane = 0; lane < LANES; lane++)
            result[lane] = w[0];
        return result;
    } else {
        static_assert(LANES == 2 * WORD && WORD == 4, "eight lanes of four bytes");
        return __builtin_shufflevector(w, w, 0, 0, 0, 0, 1, 1, 1, 1);
    }
}

// Up to eight bytes, the first one in the lowest bits.
SWE_INLINE std::uint64_t some_bytes(const std::uint8_t *from, std::size_t bytes, std::size_t all)
{
    std::uint64_t bits = 0;
    if (__builtin_expect(bytes == all, 1) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        std::memcpy(&bits, from, all);
    else
        for (std::size_t b = 0; b < bytes; b++)
            bits |= std::uint64_t{from[b]} << (8 * b);
    return bits;
}

// Bytes as integers of the lanes' width; written so that GCC 12 makes it a few instructions.
template <class Value>
SWE_INLINE typename Integers<Value>::type load_bytes(const std::uint8_t *from, int count)
{
    using Integer = typename Integers<Value>::type;
    constexpr int LANES = lanes_of<Value>(), WORD = sizeof(Value) / LANES;
    std::size_t bytes = static_cast<std::size_t>(std::min(count, LANES));
    if constexpr (LANES == 16) {
        Lanes<std::uint8_t, LANES> narrow{};
        if (__builtin_expect(bytes == LANES, 1))
            std::memcpy(&narrow, from, LANES);
        else
            std::memcpy(&narrow, from, bytes);
        using Wider = Lanes<std::uint16_t, 2 * LANES>;
        return __builtin_convertvector(__builtin_convertvector(narrow, Wider), Integer);
#ifdef __x86_64__
    } else if constexpr (sizeof(Value) == 32) { // AVX2 has an instruction that GCC 12 does not find
        Lanes<std::int64_t, 16> words{static_cast<std::int64_t>(some_bytes(from, bytes, LANES)), 0};
        Integer result;
        if constexpr (WORD == 8)
            asm("vpmovzxbq %1, %0" : "=x"(result) : "x"(words));
        else
            asm("vpmovzxbd %1, %0" : "=x"(result) : "x"(words));
        return result;
#endif
    } else {
        // In a register: to be read from memory, in more bytes than were written at once, it would
        // have to wait for all that was written before.
        std::uint64_t bits = some_bytes(from, bytes, LANES);
        Lanes<std::conditional_t<WORD == 8, std::int64_t, std::int32_t>, 16> words{};
        words[0] = static_cast<std::decay_t<decltype(words[0])>>(bits);
        if constexpr (LANES > WORD)
            words[1] = static_cast<std::int32_t>(bits >> 32);
        Integer shift{};
        for (int lane = 0; lane < LANES; lane++)
            shift[lane] = 8 * (lane % WORD);
        return (spread<Value>(words) >> shift) & 255;
    }
}

template <class Value, class Real> SWE_INLINE Value gather(const Real *from, const std::int32_t *at)
{
    constexpr int LANES = lanes_of<Value>();
    Value result;
    for (int lane = 0; lane < LANES; lane++)
        result[lane] = from[at[lane]];
    return result;
}

// In long vectors, what is looked up for a third neighbour comes from one place in memory, a row.
// With four lanes it takes as many instructions as to look four numbers up, and the rows have to be
// written and need room in the cache (0.92 of the time without, on a Zen 3).
template <class Value> constexpr bool has_rows = lanes_of<Value>() > ROW;

// Of two vectors, in a row of twice their length, the lanes begin + step * (0, 1, ...), and then,
// for the second half of the lanes, the same from `again` on.
template <class Value> SWE_INLINE Value pick(Value a, Value b, int begin, int again, int step)
{
    constexpr int LANES = lanes_of<Value>();
    typename Integers<Value>::type order;
    for (int lane = 0; lane < LANES / 2; lane++) {
        order[lane] = begin + step * lane;
        order[lane + LANES / 2] = again + step * lane;
    }
    return __builtin_shuffle(a, b, order);
}

// Of each pair of lanes the one `which`, a's and b's in turn.
template <class Value> SWE_INLINE Value alternating(Value a, Value b, int which)
{
    constexpr int LANES = lanes_of<Value>();
    typename Integers<Value>::type order;
    for (int lane = 0; lane < LANES; lane++)
        order[lane] = lane / 2 * 2 + which + (lane % 2 ? LANES : 0);
    return __builtin_shuffle(a, b, order);
}

// A vector of as many rows as it has room for.
template <class Value, class Real>
SWE_INLINE Value some_rows(const Real *rows, const std::int32_t *at)
{
    constexpr int LANES = lanes_of<Value>();
    if constexpr (LANES == ROW) {
        return load<Value>(rows + std::int64_t{ROW} * at[0]);
    } else {
        using Half = Lanes<Real, sizeof(Value) / 2>;
        Half low = some_rows<Half>(rows, at), high = some_rows<Half>(rows, at + LANES / ROW / 2);
        if constexpr (LANES == 2 * ROW)
            return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
        else
            return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                           14, 15);
    }
}

// Columns of the rows at[lane]: a matrix is transposed.
template <class Value, class Real>
SWE_INLINE void gather_rows(const Real *rows, const std::int32_t *at, Value *columns)
{
    constexpr int LANES = lanes_of<Value>(), HALF = LANES / 2, PART = LANES / ROW;
    Value a = some_rows<Value>(rows, at), b = some_rows<Value>(rows, at + PART);
    Value c = some_rows<Value>(rows, at + 2 * PART), d = some_rows<Value>(rows, at + 3 * PART);
    if constexpr (LANES == ROW) { // AVX does less within halves of a vector than across them
        Value even_ab = alternating(a, b, 0), odd_ab = alternating(a, b, 1);
        Value even_cd = alternating(c, d, 0), odd_cd = alternating(c, d, 1);
        columns[0] = pick(even_ab, even_cd, 0, LANES, 1);
        columns[1] = pick(odd_ab, odd_cd, 0, LANES, 1);
        columns[2] = pick(even_ab, even_cd, HALF, LANES + HALF, 1);
        columns[3] = pick(odd_ab, odd_cd, HALF, LANES + HALF, 1);
    } else {
        Value early01 = pick(a, b, 0, 1, ROW), early23 = pick(a, b, 2, 3, ROW);
        Value late01 = pick(c, d, 0, 1, ROW), late23 = pick(c, d, 2, 3, ROW);
        columns[0] = pick(early01, late01, 0, LANES, 1);
        columns[1] = pick(early01, late01, HALF, LANES + HALF, 1);
        columns[2] = pick(early23, late23, 0, LANES, 1);
        columns[3] = pick(early23, late23, HALF, LANES + HALF, 1);
    }
}

// Of two vectors' lanes from `begin` on: `together` of the first, as many of the second, and so on.
template <class Value> SWE_INLINE Value interleaved(Value a, Value b, int begin, int together)
{
    constexpr int LANES = lanes_of<Value>();
    typename Integers<Value>::type order;
    for (int lane = 0; lane < LANES; lane++) {
        int pair = lane / (2 * together), within = lane % (2 * together);
        order[lane] =
            begin + pair * together + within % together + (within >= together ? LANES : 0);
    }
    return __builtin_shuffle(a, b, order);
}

// The other way: LANES rows from four columns.
template <class Value, class Real>
SWE_INLINE void store_rows(Real *rows, Value x, Value y, Value z, Value w)
{
    constexpr int LANES = lanes_of<Value>(), HALF = LANES / 2;
    Value xy = interleaved(x, y, 0, 1), zw = interleaved(z, w, 0, 1);
    store(rows, interleaved(xy, zw, 0, 2));
    store(rows + LANES, interleaved(xy, zw, HALF, 2));
    xy = interleaved(x, y, HALF, 1), zw = interleaved(z, w, HALF, 1);
    store(rows + 2 * LANES, interleaved(xy, zw, 0, 2));
    store(rows + 3 * LANES, interleaved(xy, zw, HALF, 2));
}

} // namespace swe
#endif
