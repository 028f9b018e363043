// SPDX-License-Identifier: GPL-3.0-or-later
// finite_volumes.cc - see finite_volumes.h.
//
// The sweeps are templates on the vector's width in bytes, inlined into one function for each
// level of the x86-64 architecture; the widest that the processor has is taken.  Other processors
// have vectors of 16 bytes.
#include "finite_volumes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include "augmented.h"
#include "finite_volume_links.h"
#include "rusanov.h"

namespace swe {

namespace {

constexpr int WAYS = 2 * DIRECTIONS;

int reversed(int way) { return (way + DIRECTIONS) % WAYS; }

// A table of WAYS entries, repeated: so that the first entries of it make a vector of any length.
template <class Real> struct Table {
    alignas(64) Real entry[2 * WAYS];

    constexpr Table(const Real (&entries)[WAYS]) : entry{}
    {
        for (int i = 0; i < 2 * WAYS; i++)
            entry[i] = entries[i % WAYS];
    }
};

constexpr double S = NORMAL_X[1];
template <class Real>
constexpr Table<Real> WAY_X({1, Real(S), 0, -Real(S), -1, -Real(S), 0, Real(S)});
template <class Real>
constexpr Table<Real> WAY_Y({0, Real(S), 1, Real(S), 0, -Real(S), -1, -Real(S)});

// Is the hypotenuse the edge to the previous cell, the next, the third?  By SHAPE_HYPOTENUSE.
template <class Real> constexpr Table<Real> IS_PREVIOUS({1, 0, 0, 0, 0, 0, 0, 0});
template <class Real> constexpr Table<Real> IS_NEXT({0, 1, 0, 0, 0, 0, 0, 0});
template <class Real> constexpr Table<Real> IS_THIRD({0, 0, 1, 0, 0, 0, 0, 0});

template <class Value> constexpr int lanes_of()
{
    if constexpr (is_number<Value>)
        return 1;
    else
        return sizeof(Value) / sizeof(Value{}[0]);
}

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
    } else {
        Lanes<std::conditional_t<WORD == 8, std::int64_t, std::int32_t>, 16> words{};
        if (__builtin_expect(bytes == LANES, 1))
            std::memcpy(&words, from, LANES);
        else
            std::memcpy(&words, from, bytes);
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

// Rows of four numbers: what is looked up for a third neighbour comes from one place in memory.
constexpr int ROW = 4;

template <class Value> constexpr bool has_rows = lanes_of<Value>() >= ROW;

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
    Value early01 = pick(a, b, 0, 1, ROW), early23 = pick(a, b, 2, 3, ROW);
    Value late01 = pick(c, d, 0, 1, ROW), late23 = pick(c, d, 2, 3, ROW);
    columns[0] = pick(early01, late01, 0, LANES, 1);
    columns[1] = pick(early01, late01, HALF, LANES + HALF, 1);
    columns[2] = pick(early23, late23, 0, LANES, 1);
    columns[3] = pick(early23, late23, HALF, LANES + HALF, 1);
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

// length of a leg / area of a cell, by its depth: twice as much with two bisections.
template <class Real> struct Scale {
    Table<Real> by_parity;
    Real inradius; // times the scale: the same for all depths

    explicit Scale(const Metric<Real> &metric)
        : by_parity({metric.length[1] * metric.over_area[0], metric.length[2] * metric.over_area[1],
                     0, 0, 0, 0, 0, 0}),
          inradius(metric.inradius[0] * by_parity.entry[0])
    {
    }

    template <class Value> SWE_INLINE Value of(typename Integers<Value>::type depth) const
    {
        constexpr int MANTISSA = std::numeric_limits<Real>::digits - 1;
        Value base = look_up<Value>(by_parity, depth & 1);
        typename Integers<Value>::type bits;
        std::memcpy(&bits, &base, sizeof bits);
        bits += (depth >> 1) << MANTISSA;
        std::memcpy(&base, &bits, sizeof bits);
        return base;
    }
};

// Water of this height or less is none; never 0.
template <class Real> SWE_INLINE Real dry_tolerance(const FvOptions<Real> &options)
{
    return std::max(options.dry_tolerance, least_number<Real>);
}

// Scratch memory as pointers.
template <class Real> struct Arrays {
    Real *h, *u, *v, *c, *bed, *rows, *rate_h, *rate_hu, *rate_hv;

    explicit Arrays(FvScratch<Real> &s)
        : h(s.h.data()), u(s.u.data()), v(s.v.data()), c(s.c.data()), bed(s.bed.data()),
          rows(s.rows.data()), rate_h(s.rate_h.data()), rate_hu(s.rate_hu.data()),
          rate_hv(s.rate_hv.data())
    {
    }
};

// FvLinks as pointers.
struct Neighbours {
    std::int32_t first_ghost_at = 0, before = 0, behind = 0;
    int before_way = 0;
    const std::int32_t *third = nullptr;
    const std::uint8_t *shape = nullptr;

    Neighbours() = default;
    explicit Neighbours(const FvLinks &links)
        : first_ghost_at(links.first_ghost_at), before(links.before), behind(links.behind),
          before_way(links.before_way), third(links.third.data()), shape(links.shape.data())
    {
    }
};

// All that a sweep over a patch works on, as values: what is stored to an array cannot change them,
// so that compilers can keep them in registers.
template <class Real> struct Sweep {
    Patch<Real> patch;
    FvOptions<Real> options;
    Arrays<Real> scratch;
    Scale<Real> scale;
    Neighbours links;
    Real dt;
    FvState<Real> start;     // h is null: none
    const Patch<Real> *next; // patch that is stepped next, or null
};

// Brings the cells from i on of the patch that is next nearer: its memory is read while this one's
// is worked on, which is in the cache.
template <class Real> SWE_INLINE void bring(const Patch<Real> &next, std::int32_t i)
{
    constexpr int WRITE = 1, READ = 0, SECOND_LEVEL = 2;
    if (i >= next.cells)
        return;
    __builtin_prefetch(next.h + i, WRITE, SECOND_LEVEL);
    __builtin_prefetch(next.hu + i, WRITE, SECOND_LEVEL);
    __builtin_prefetch(next.hv + i, WRITE, SECOND_LEVEL);
    __builtin_prefetch(next.bed + i, READ, SECOND_LEVEL);
}

template <class Real>
SWE_INLINE CellState<Real> state_at(const Arrays<Real> &scratch, std::int32_t i)
{
    return {scratch.h[i], scratch.u[i], scratch.v[i], scratch.c[i], scratch.bed[i]};
}

template <Flux FLUX, class Value, class Real>
SWE_INLINE EdgeFlux<Value> flux_of(const CellState<Value> &own, const CellState<Value> &other,
                                   Value nx, Value ny, const FvOptions<Real> &options)
{
    if constexpr (FLUX == Flux::RUSANOV)
        return rusanov(own, other, nx, ny, options.gravity);
    else
        return augmented(own, other, nx, ny, options.gravity, options.dry_tolerance);
}

// Velocities and wave speeds of `count` cells from `from` on into scratch from `to` on.
template <class Value, class Real> SWE_INLINE void
prepare(const Sweep<Real> &sweep, std::int32_t from, std::int32_t to, std::int32_t count)
{
    constexpr int LANES = lanes_of<Value>();
    const Value tolerance = all<Value>(dry_tolerance(sweep.options));
    const Patch<Real> &patch = sweep.patch;
    const Arrays<Real> &scratch = sweep.scratch;
    for (std::int32_t i = 0; i < count; i += LANES) {
        int some = std::min(LANES, count - i);
        Value h = load_some<Value>(patch.h + from + i, some);
        Value over_h = is_less(tolerance, h) / maximum(tolerance, h); // 0 if dry
        Value u = load_some<Value>(patch.hu + from + i, some) * over_h;
        Value v = load_some<Value>(patch.hv + from + i, some) * over_h;
        Value c = root(sweep.options.gravity * h);
        store(&scratch.h[to + i], h);
        store(&scratch.u[to + i], u);
        store(&scratch.v[to + i], v);
        store(&scratch.c[to + i], c);
        if constexpr (has_rows<Value>)
            store_rows(&scratch.rows[ROW * (to + i)], h, u, v, c);
        store(&scratch.bed[to + i], load_some<Value>(patch.bed + from + i, some));
    }
}

template <class Real>
SWE_INLINE void copy_state(const Arrays<Real> &scratch, std::int32_t from, std::int32_t to)
{
    scratch.h[to] = scratch.h[from];
    scratch.u[to] = scratch.u[from];
    scratch.v[to] = scratch.v[from];
    scratch.c[to] = scratch.c[from];
    scratch.bed[to] = scratch.bed[from];
}

template <class Value, class Real> SWE_INLINE void prepare_all(const Sweep<Real> &sweep)
{
    std::int32_t cells = sweep.patch.cells;
    prepare<Value>(sweep, 0, 0, cells);
    prepare<Value>(sweep, cells, sweep.links.first_ghost_at, sweep.patch.ghosts);
    copy_state(sweep.scratch, sweep.links.behind,
               cells); // the last cell finds it where it finds a next
}

// (|u| + sqrt(g h))^2, which takes one root fewer than |u| + sqrt(g h).
template <class Value, class Real>
SWE_INLINE Value speed_squared(Value h, Value hu, Value hv, const FvOptions<Real> &options)
{
    const Value tolerance = all<Value>(dry_tolerance(options));
    Value over_h = is_less(tolerance, h) / maximum(tolerance, h);
    Value u = hu * over_h, v = hv * over_h;
    Value flow = u * u + v * v, wave = options.gravity * h;
    return flow + wave + Real(2) * root(flow * wave);
}

// The new state of the cells from i on, given the rates; returns (speed * scale)^2.
template <class Value, class Real> SWE_INLINE Value advance(const Sweep<Real> &sweep,
                                                            std::int32_t i, int count, Value scale,
                                                            Value h, const Value *rates)
{
    const Value zero{};
    const Patch<Real> &patch = sweep.patch;
    Value hu = load_some<Value>(patch.hu + i, count) + sweep.dt * rates[1];
    Value hv = load_some<Value>(patch.hv + i, count) + sweep.dt * rates[2];
    h = h + sweep.dt * rates[0];
    if (sweep.start.h) {
        h = Real(0.5) * (load_some<Value>(sweep.start.h + i, count) + h);
        hu = Real(0.5) * (load_some<Value>(sweep.start.hu + i, count) + hu);
        hv = Real(0.5) * (load_some<Value>(sweep.start.hv + i, count) + hv);
    }
    h = maximum(zero, h); // see finite_volumes.h: nothing beyond rounding
    Value wet = is_less(all<Value>(dry_tolerance(sweep.options)), h);
    hu = wet * hu;
    hv = wet * hv;
    store_some(patch.h + i, h, count);
    store_some(patch.hu + i, hu, count);
    store_some(patch.hv + i, hv, count);
    return speed_squared(h, hu, hv, sweep.options) * (scale * scale);
}

template <class Value, class Real>
SWE_INLINE CellState<Value> third_state(const Arrays<Real> &s, const std::int32_t *at)
{
    Value bed = gather<Value>(s.bed, at);
    if constexpr (has_rows<Value>) {
        Value columns[ROW];
        gather_rows(s.rows, at, columns);
        return {columns[0], columns[1], columns[2], columns[3], bed};
    } else {
        return {gather<Value>(s.h, at), gather<Value>(s.u, at), gather<Value>(s.v, at),
                gather<Value>(s.c, at), bed};
    }
}

// The flux from `before` the first cell to it: what would be in the last lane before.
template <Flux FLUX, class Value, class Real>
SWE_INLINE EdgeFlux<Value> flux_before(const Sweep<Real> &sweep)
{
    constexpr int LANES = lanes_of<Value>();
    const Neighbours &links = sweep.links;
    int way = reversed(links.before_way);
    EdgeFlux<Real> flux =
        flux_of<FLUX>(state_at(sweep.scratch, links.before), state_at(sweep.scratch, 0),
                      WAY_X<Real>.entry[way], WAY_Y<Real>.entry[way], sweep.options);
    EdgeFlux<Value> result{};
    result.mass[LANES - 1] = flux.mass;
    result.gained_x[LANES - 1] = flux.gained_x;
    result.gained_y[LANES - 1] = flux.gained_y;
    return result;
}

// Which of a cell's edges is the hypotenuse, as conditions.
template <class Value> struct Hypotenuse {
    Value previous, next, third;
};

template <class Value, class Real>
SWE_INLINE Hypotenuse<Value> hypotenuse_of(typename Integers<Value>::type shape)
{
    auto kind = shape >> SHAPE_HYPOTENUSE;
    return {look_up<Value>(IS_PREVIOUS<Real>, kind), look_up<Value>(IS_NEXT<Real>, kind),
            look_up<Value>(IS_THIRD<Real>, kind)};
}

// -(legs, then hypotenuse): what three edges take from cells, times length over area.
template <class Value, class Real> SWE_INLINE Value rate(const Hypotenuse<Value> &is, Value scale,
                                                         Value previous, Value next, Value third)
{
    constexpr Real ROOT_2 = Real(1.41421356237309504880);
    Value longest = choose(is.previous, previous, choose(is.next, next, third));
    Value leg = choose(is.previous, next, previous);
    Value other_leg = choose(is.third, next, third);
    return -scale * ((leg + other_leg) + ROOT_2 * longest);
}

// Fluxes and, if ADVANCE, the new state; otherwise the rates into scratch.  prepare_all was
// before.  Returns the greatest (speed * scale)^2 of the new state.
template <Flux FLUX, bool ADVANCE, class Value, class Real>
SWE_INLINE Real sweep_cells(const Sweep<Real> &sweep)
{
    constexpr int LANES = lanes_of<Value>();
    using Integer = typename Integers<Value>::type;
    const Neighbours &links = sweep.links;
    const Arrays<Real> &s = sweep.scratch;
    const std::int32_t cells = sweep.patch.cells;
    const Patch<Real> next = sweep.next ? *sweep.next : Patch<Real>{};
    EdgeFlux<Value> before = flux_before<FLUX, Value>(sweep);
    Value fastest{};
    for (std::int32_t i = 0; i < cells; i += LANES) {
        int count = std::min(LANES, cells - i);
        bring(next, i);
        Integer shape = load_bytes<Value>(&links.shape[i], LANES);
        Integer next_way = (shape >> SHAPE_NEXT_WAY) & SHAPE_WAY_MASK;
        Integer third_way = (shape >> SHAPE_THIRD_WAY) & SHAPE_WAY_MASK;
        CellState<Value> own = {load<Value>(&s.h[i]), load<Value>(&s.u[i]), load<Value>(&s.v[i]),
                                load<Value>(&s.c[i]), load<Value>(&s.bed[i])};
        CellState<Value> behind = {load<Value>(&s.h[i + 1]), load<Value>(&s.u[i + 1]),
                                   load<Value>(&s.v[i + 1]), load<Value>(&s.c[i + 1]),
                                   load<Value>(&s.bed[i + 1])};
        CellState<Value> third = third_state<Value>(s, &links.third[i]);
        EdgeFlux<Value> out = flux_of<FLUX>(own, behind, look_up<Value>(WAY_X<Real>, next_way),
                                            look_up<Value>(WAY_Y<Real>, next_way), sweep.options);
        EdgeFlux<Value> aside =
            flux_of<FLUX>(own, third, look_up<Value>(WAY_X<Real>, third_way),
                          look_up<Value>(WAY_Y<Real>, third_way), sweep.options);
        EdgeFlux<Value> in = shifted(before, out);
        before = out;

        Hypotenuse<Value> is = hypotenuse_of<Value, Real>(shape);
        Value scale =
            sweep.scale.template of<Value>(load_bytes<Value>(sweep.patch.depth + i, count));
        Value rates[3] = {rate<Value, Real>(is, scale, -in.mass, out.mass, aside.mass),
                          rate<Value, Real>(is, scale, -in.gained_x, out.lost_x, aside.lost_x),
                          rate<Value, Real>(is, scale, -in.gained_y, out.lost_y, aside.lost_y)};
        if constexpr (ADVANCE) {
            Value speed = advance(sweep, i, count, scale, own.h, rates);
            fastest = maximum(fastest, first_lanes(speed, count));
        } else {
            store(&s.rate_h[i], rates[0]);
            store(&s.rate_hu[i], rates[1]);
            store(&s.rate_hv[i], rates[2]);
        }
    }
    Real greatest = 0;
    for (int lane = 0; lane < LANES; lane++)
        greatest = std::max(greatest, Real(fastest[lane]));
    return greatest;
}

// The new state from the rates in scratch, or, if not ADVANCE, the present one's speed only.
template <bool ADVANCE, class Value, class Real>
SWE_INLINE Real sweep_states(const Sweep<Real> &sweep)
{
    constexpr int LANES = lanes_of<Value>();
    const Patch<Real> &patch = sweep.patch;
    Value fastest{};
    for (std::int32_t i = 0; i < patch.cells; i += LANES) {
        int count = std::min(LANES, patch.cells - i);
        Value scale = sweep.scale.template of<Value>(load_bytes<Value>(patch.depth + i, count));
        Value h = load_some<Value>(patch.h + i, count), speed;
        if constexpr (ADVANCE) {
            Value rates[3] = {load<Value>(&sweep.scratch.rate_h[i]),
                              load<Value>(&sweep.scratch.rate_hu[i]),
                              load<Value>(&sweep.scratch.rate_hv[i])};
            speed = advance(sweep, i, count, scale, h, rates);
        } else {
            speed = speed_squared(h, load_some<Value>(patch.hu + i, count),
                                  load_some<Value>(patch.hv + i, count), sweep.options) *
                    (scale * scale);
        }
        fastest = maximum(fastest, first_lanes(speed, count));
    }
    Real greatest = 0;
    for (int lane = 0; lane < LANES; lane++)
        greatest = std::max(greatest, Real(fastest[lane]));
    return greatest;
}

enum class Task { STEP, RATES, UPDATE, SPEED };

template <class Real, int BYTES>
SWE_INLINE Real perform(Task task, Flux flux, const Sweep<Real> &given)
{
    const Sweep<Real> sweep = given;
    using Value = Lanes<Real, BYTES>;
    if (task == Task::UPDATE)
        return sweep_states<true, Value>(sweep);
    if (task == Task::SPEED)
        return sweep_states<false, Value>(sweep);
    prepare_all<Value>(sweep);
    if (task == Task::STEP)
        return flux == Flux::RUSANOV ? sweep_cells<Flux::RUSANOV, true, Value>(sweep)
                                     : sweep_cells<Flux::AUGMENTED, true, Value>(sweep);
    return flux == Flux::RUSANOV ? sweep_cells<Flux::RUSANOV, false, Value>(sweep)
                                 : sweep_cells<Flux::AUGMENTED, false, Value>(sweep);
}

#ifdef __x86_64__
template <class Real> __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) Real
perform_v4(Task task, Flux flux, const Sweep<Real> &sweep)
{
    return perform<Real, 64>(task, flux, sweep);
}

template <class Real> __attribute__((target("arch=x86-64-v3"))) Real
perform_v3(Task task, Flux flux, const Sweep<Real> &sweep)
{
    return perform<Real, 32>(task, flux, sweep);
}
#endif

template <class Real> Real perform_any(Task task, Flux flux, const Sweep<Real> &sweep)
{
    return perform<Real, 16>(task, flux, sweep);
}

template <class Real> Real dispatch(Task task, Flux flux, const Sweep<Real> &sweep)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("x86-64-v4"))
        return perform_v4(task, flux, sweep);
    if (__builtin_cpu_supports("x86-64-v3"))
        return perform_v3(task, flux, sweep);
#endif
    return perform_any(task, flux, sweep);
}

template <class Real> void make_room(const FvLinks &links, bool rates, FvScratch<Real> &scratch)
{
    std::size_t room = static_cast<std::size_t>(links.first_ghost_at) + fv_padded(links.ghosts);
    for (auto *array : {&scratch.h, &scratch.u, &scratch.v, &scratch.c, &scratch.bed})
        if (array->size() < room)
            array->resize(room);
    if (scratch.rows.size() < ROW * room)
        scratch.rows.resize(ROW * room);
    if (!rates)
        return;
    for (auto *array : {&scratch.rate_h, &scratch.rate_hu, &scratch.rate_hv})
        if (array->size() < room)
            array->resize(room);
}

template <class Real> Real stable_step(const Scale<Real> &scale, Real greatest)
{
    if (greatest == 0)
        return std::numeric_limits<Real>::infinity();
    return scale.inradius / std::sqrt(greatest);
}

// Manning's friction, implicit in the factor: it slows down, and never turns, the water.
template <class Real> void rub(const Patch<Real> &patch, const FvOptions<Real> &options, Real dt)
{
    Real factor = dt * options.gravity * options.manning * options.manning;
    for (std::int32_t i = 0; i < patch.cells; i++) {
        Real h = patch.h[i];
        if (h <= options.dry_tolerance)
            continue;
        Real speed = std::sqrt(patch.hu[i] * patch.hu[i] + patch.hv[i] * patch.hv[i]) / h;
        Real over = 1 / (1 + factor * speed / (h * std::cbrt(h)));
        patch.hu[i] *= over;
        patch.hv[i] *= over;
    }
}

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
    fv_link_cells(patch.cells, patch.ghosts, edges_of, links);
}

template <class Real>
Real fv_step(const Patch<Real> &patch, const FvLinks &links, const Metric<Real> &metric, Flux flux,
             const FvOptions<Real> &options, Real dt, FvScratch<Real> &scratch,
             const FvState<Real> *start, const Patch<Real> *next)
{
    make_room(links, false, scratch);
    Sweep<Real> sweep{patch,
                      options,
                      Arrays<Real>(scratch),
                      Scale<Real>(metric),
                      Neighbours(links),
                      dt,
                      start ? *start : FvState<Real>{},
                      next};
    Real greatest = dispatch(Task::STEP, flux, sweep);
    if (options.manning == 0)
        return stable_step(sweep.scale, greatest);
    rub(patch, options, start ? dt / 2 : dt);
    return fv_stable_step(patch, metric,
                          options); // of the water as it is: whoever asks gets one answer
}

template <class Real> void fv_residual(const Patch<Real> &patch, const FvLinks &links,
                                       const Metric<Real> &metric, Flux flux,
                                       const FvOptions<Real> &options, FvScratch<Real> &scratch)
{
    make_room(links, true, scratch);
    dispatch(Task::RATES, flux,
             Sweep<Real>{patch, options, Arrays<Real>(scratch), Scale<Real>(metric),
                         Neighbours(links), 0, FvState<Real>{}, nullptr});
}

template <class Real> Real fv_update(const Patch<Real> &patch, const Metric<Real> &metric,
                                     const FvOptions<Real> &options, Real dt,
                                     FvScratch<Real> &scratch, const FvState<Real> *start)
{
    Sweep<Real> sweep{patch,
                      options,
                      Arrays<Real>(scratch),
                      Scale<Real>(metric),
                      Neighbours(),
                      dt,
                      start ? *start : FvState<Real>{},
                      nullptr};
    Real greatest = dispatch(Task::UPDATE, Flux::RUSANOV, sweep);
    if (options.manning == 0)
        return stable_step(sweep.scale, greatest);
    rub(patch, options, start ? dt / 2 : dt);
    return fv_stable_step(patch, metric,
                          options); // of the water as it is: whoever asks gets one answer
}

template <class Real> Real fv_stable_step(const Patch<Real> &patch, const Metric<Real> &metric,
                                          const FvOptions<Real> &options)
{
    FvScratch<Real> none;
    Sweep<Real> sweep{patch,        options, Arrays<Real>(none), Scale<Real>(metric),
                      Neighbours(), 0,       FvState<Real>{},    nullptr};
    return stable_step(sweep.scale, dispatch(Task::SPEED, Flux::RUSANOV, sweep));
}

template <class Real> void fv_boundary(const FvLinks &links, Flux flux,
                                       const FvOptions<Real> &options, FvScratch<Real> &scratch,
                                       const FvBoundary<Real> &boundary)
{
    const Arrays<Real> arrays(scratch);
    for (std::int32_t g = 0; g < links.ghosts; g++) {
        int way = links.ghost_way[g];
        CellState<Real> own = state_at(arrays, links.ghost_cell[g]);
        CellState<Real> other = state_at(arrays, links.first_ghost_at + g);
        EdgeFlux<Real> out = flux == Flux::RUSANOV
                                 ? flux_of<Flux::RUSANOV>(own, other, WAY_X<Real>.entry[way],
                                                          WAY_Y<Real>.entry[way], options)
                                 : flux_of<Flux::AUGMENTED>(own, other, WAY_X<Real>.entry[way],
                                                            WAY_Y<Real>.entry[way], options);
        boundary.mass[g] = out.mass;
        boundary.x[g] = out.lost_x;
        boundary.y[g] = out.lost_y;
    }
}

#define SWE_INSTANTIATE(Real)                                                                      \
    template void fv_link(const Patch<Real> &, FvLinks &);                                         \
    template Real fv_step(const Patch<Real> &, const FvLinks &, const Metric<Real> &, Flux,        \
                          const FvOptions<Real> &, Real, FvScratch<Real> &, const FvState<Real> *, \
                          const Patch<Real> *);                                                    \
    template void fv_residual(const Patch<Real> &, const FvLinks &, const Metric<Real> &, Flux,    \
                              const FvOptions<Real> &, FvScratch<Real> &);                         \
    template Real fv_update(const Patch<Real> &, const Metric<Real> &, const FvOptions<Real> &,    \
                            Real, FvScratch<Real> &, const FvState<Real> *);                       \
    template Real fv_stable_step(const Patch<Real> &, const Metric<Real> &,                        \
                                 const FvOptions<Real> &);                                         \
    template void fv_boundary(const FvLinks &, Flux, const FvOptions<Real> &, FvScratch<Real> &,   \
                              const FvBoundary<Real> &);
SWE_INSTANTIATE(float)
SWE_INSTANTIATE(double)

} // namespace swe
