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
#include "flux/augmented.h"
#include "cell_shape.h"
#include "friction.h"
#include "flux/rusanov.h"
#include "vectors/vector_bytes.h"

namespace swe {

namespace {

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
        Value base;
        if constexpr (is_as_long_as_a_row<Value>)
            base = choose_if(sign_bit<Value>(depth, 0), all<Value>(by_parity.entry[1]),
                             all<Value>(by_parity.entry[0]));
        else
            base = look_up<Value>(by_parity, depth & 1);
        typename Integers<Value>::type bits;
        std::memcpy(&bits, &base, sizeof bits);
        bits += (depth - (depth & 1)) << (MANTISSA - 1);
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

// The scale of the cells from i on.
template <class Value, class Real>
SWE_INLINE Value scale_of(const Sweep<Real> &sweep, std::int32_t i, int count)
{
    return sweep.scale.template of<Value>(load_bytes<Value>(sweep.patch.depth + i, count));
}

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

// A new state, and where its cells are.
template <class Value> struct Moving {
    Value h, hu, hv, scale;
};

// (speed * scale)^2 of it.
template <class Value, class Real>
SWE_INLINE Value speed_of(const Moving<Value> &water, const FvOptions<Real> &options)
{
    return speed_squared(water.h, water.hu, water.hv, options) * (water.scale * water.scale);
}

// The new state of the cells from i on, given the rates.
template <class Value, class Real>
SWE_INLINE Moving<Value> advance(const Sweep<Real> &sweep, std::int32_t i, int count, Value scale,
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
    return {h, hu, hv, scale};
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

// -(legs, then hypotenuse): what three edges take from cells, times length over area.
template <class Value, class Real> SWE_INLINE Value rate(const Hypotenuse<Value> &is, Value scale,
                                                         Value previous, Value next, Value third)
{
    constexpr Real ROOT_2 = Real(1.41421356237309504880);
    Value longest = choose_if(is.previous, previous, choose_if(is.next, next, third));
    Value leg = choose_if(is.previous, next, previous);
    Value other_leg = choose_if(is.third, next, third);
    return -scale * ((leg + other_leg) + ROOT_2 * longest);
}

// The greater ones of (speed * scale)^2; infinite where that is no number, which comparisons would
// pass over.
template <class Value, class Real> SWE_INLINE Value faster(Value fastest, Value speed)
{
    return maximum(fastest, minimum(speed, all<Value>(std::numeric_limits<Real>::infinity())));
}

template <class Value, class Real> SWE_INLINE Real greatest_of(Value fastest)
{
    Real greatest = 0;
    for (int lane = 0; lane < lanes_of<Value>(); lane++)
        greatest = std::max(greatest, Real(fastest[lane]));
    return greatest;
}

// What goes from one vector of cells to the next: the flux behind it, and the new state, of which
// the speed is found while the next one's fluxes are, since its quotient and root wait for all that
// comes before them.
template <class Value> struct Carried {
    EdgeFlux<Value> flux;
    Moving<Value> water;
};

// The fluxes of `count` cells from i on and, if ADVANCE, their new state; otherwise their rates
// into scratch.
template <Flux FLUX, bool ADVANCE, class Value, class Real> SWE_INLINE void
sweep_vector(const Sweep<Real> &sweep, std::int32_t i, int count, Carried<Value> &before)
{
    const Neighbours &links = sweep.links;
    const Arrays<Real> &s = sweep.scratch;
    auto shape = load_bytes<Value>(&links.shape[i], lanes_of<Value>());
    const Ways<Value> way = ways_of<Value, Real>(&links.shape[i], shape);
    CellState<Value> own = {load<Value>(&s.h[i]), load<Value>(&s.u[i]), load<Value>(&s.v[i]),
                            load<Value>(&s.c[i]), load<Value>(&s.bed[i])};
    CellState<Value> behind = {load<Value>(&s.h[i + 1]), load<Value>(&s.u[i + 1]),
                               load<Value>(&s.v[i + 1]), load<Value>(&s.c[i + 1]),
                               load<Value>(&s.bed[i + 1])};
    CellState<Value> third = third_state<Value>(s, &links.third[i]);
    EdgeFlux<Value> out = flux_of<FLUX>(own, behind, way.next_x, way.next_y, sweep.options);
    EdgeFlux<Value> aside = flux_of<FLUX>(own, third, way.third_x, way.third_y, sweep.options);
    EdgeFlux<Value> in = shifted(before.flux, out);
    before.flux = out;

    Hypotenuse<Value> is = hypotenuse_of<Value, Real>(shape);
    Value scale = scale_of<Value>(sweep, i, count);
    Value rates[3] = {rate<Value, Real>(is, scale, -in.mass, out.mass, aside.mass),
                      rate<Value, Real>(is, scale, -in.gained_x, out.lost_x, aside.lost_x),
                      rate<Value, Real>(is, scale, -in.gained_y, out.lost_y, aside.lost_y)};
    if constexpr (ADVANCE) {
        before.water = advance(sweep, i, count, scale, own.h, rates);
    } else {
        store(&s.rate_h[i], rates[0]);
        store(&s.rate_hu[i], rates[1]);
        store(&s.rate_hv[i], rates[2]);
    }
}

// If ADVANCE, the greater ones of `fastest` and the new speeds of the first `count` cells.
template <bool ADVANCE, class Value, class Real>
SWE_INLINE Value with_new_speeds(Value fastest, const Carried<Value> &cells, int count,
                                 const Sweep<Real> &sweep)
{
    if constexpr (ADVANCE)
        return faster<Value, Real>(fastest,
                                   first_lanes(speed_of(cells.water, sweep.options), count));
    else
        return fastest;
}

// The same for all cells; prepare_all was before.  Returns the greatest (speed * scale)^2 of the
// new state, 0 without one.
template <Flux FLUX, bool ADVANCE, class Value, class Real>
SWE_INLINE Real sweep_cells(const Sweep<Real> &sweep)
{
    constexpr int LANES = lanes_of<Value>();
    const std::int32_t cells = sweep.patch.cells;
    const Patch<Real> next = sweep.next ? *sweep.next : Patch<Real>{};
    Carried<Value> before{flux_before<FLUX, Value>(sweep), {}};
    Value fastest{};
    std::int32_t i = 0;
    for (; i + LANES <= cells; i += LANES) {
        fastest = with_new_speeds<ADVANCE>(fastest, before, LANES, sweep);
        bring(next, i);
        sweep_vector<FLUX, ADVANCE>(sweep, i, LANES, before);
    }
    fastest = with_new_speeds<ADVANCE>(fastest, before, LANES, sweep);
    if (i < cells) {
        sweep_vector<FLUX, ADVANCE>(sweep, i, cells - i, before);
        fastest = with_new_speeds<ADVANCE>(fastest, before, cells - i, sweep);
    }
    return greatest_of<Value, Real>(fastest);
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
        Value scale = scale_of<Value>(sweep, i, count);
        Value h = load_some<Value>(patch.h + i, count), speed;
        if constexpr (ADVANCE) {
            Value rates[3] = {load<Value>(&sweep.scratch.rate_h[i]),
                              load<Value>(&sweep.scratch.rate_hu[i]),
                              load<Value>(&sweep.scratch.rate_hv[i])};
            speed = speed_of(advance(sweep, i, count, scale, h, rates), sweep.options);
        } else {
            speed = speed_squared(h, load_some<Value>(patch.hu + i, count),
                                  load_some<Value>(patch.hv + i, count), sweep.options) *
                    (scale * scale);
        }
        fastest = faster<Value, Real>(fastest, first_lanes(speed, count));
    }
    return greatest_of<Value, Real>(fastest);
}

// Slows the water down for the time sweep.dt; returns the greatest (speed * scale)^2 then.
template <class Value, class Real> SWE_INLINE Real rub(const Sweep<Real> &sweep)
{
    constexpr int LANES = lanes_of<Value>();
    const Patch<Real> &patch = sweep.patch;
    const FvOptions<Real> &options = sweep.options;
    const Real factor = sweep.dt * options.gravity * options.manning * options.manning;
    const Value tolerance = all<Value>(dry_tolerance(options));
    Value fastest{};
    for (std::int32_t i = 0; i < patch.cells; i += LANES) {
        int count = std::min(LANES, patch.cells - i);
        Value h = load_some<Value>(patch.h + i, count);
        Value hu = load_some<Value>(patch.hu + i, count);
        Value hv = load_some<Value>(patch.hv + i, count);
        Value slowed = slowed_by_friction(maximum(tolerance, h), hu, hv, factor);
        hu = hu * slowed;
        hv = hv * slowed;
        store_some(patch.hu + i, hu, count);
        store_some(patch.hv + i, hv, count);
        Value scale = scale_of<Value>(sweep, i, count);
        Value speed = speed_squared(h, hu, hv, options) * (scale * scale);
        fastest = faster<Value, Real>(fastest, first_lanes(speed, count));
    }
    return greatest_of<Value, Real>(fastest);
}

enum class Task { STEP, RATES, UPDATE, SPEED, FRICTION };

template <class Real, int BYTES>
SWE_INLINE Real perform(Task task, Flux flux, const Sweep<Real> &given)
{
    const Sweep<Real> sweep = given;
    using Value = Lanes<Real, BYTES>;
    if (task == Task::UPDATE)
        return sweep_states<true, Value>(sweep);
    if (task == Task::SPEED)
        return sweep_states<false, Value>(sweep);
    if (task == Task::FRICTION)
        return rub<Value>(sweep);
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
    if (vector_bytes() == 64)
        return perform_v4(task, flux, sweep);
    if (vector_bytes() == 32)
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

// The greatest (speed * scale)^2 when the water was rubbed for the sweep's time, of a second stage
// for its half; `greatest` is that before.
template <class Real> Real after_friction(Sweep<Real> sweep, Real greatest)
{
    if (sweep.options.manning == 0)
        return greatest;
    if (sweep.start.h)
        sweep.dt /= 2;
    return dispatch(Task::FRICTION, Flux::RUSANOV, sweep);
}

} // namespace

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
    return stable_step(sweep.scale, after_friction(sweep, greatest));
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
    return stable_step(sweep.scale, after_friction(sweep, greatest));
}

template <class Real> Real fv_stable_step(const Patch<Real> &patch, const Metric<Real> &metric,
                                          const FvOptions<Real> &options)
{
    FvScratch<Real> none;
    Sweep<Real> sweep{patch,        options, Arrays<Real>(none), Scale<Real>(metric),
                      Neighbours(), 0,       FvState<Real>{},    nullptr};
    return stable_step(sweep.scale, dispatch(Task::SPEED, Flux::RUSANOV, sweep));
}

#define SWE_INSTANTIATE(Real)                                                                      \
    template Real fv_step(const Patch<Real> &, const FvLinks &, const Metric<Real> &, Flux,        \
                          const FvOptions<Real> &, Real, FvScratch<Real> &, const FvState<Real> *, \
                          const Patch<Real> *);                                                    \
    template void fv_residual(const Patch<Real> &, const FvLinks &, const Metric<Real> &, Flux,    \
                              const FvOptions<Real> &, FvScratch<Real> &);                         \
    template Real fv_update(const Patch<Real> &, const Metric<Real> &, const FvOptions<Real> &,    \
                            Real, FvScratch<Real> &, const FvState<Real> *);                       \
    template Real fv_stable_step(const Patch<Real> &, const Metric<Real> &,                        \
                                 const FvOptions<Real> &);
SWE_INSTANTIATE(float)
SWE_INSTANTIATE(double)

} // namespace swe
