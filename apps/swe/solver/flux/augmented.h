// SPDX-License-Identifier: GPL-3.0-or-later
// augmented.h - the augmented Riemann solver for the shallow water equations over a bed.
//
// George 2008, doi:10.1016/j.jcp.2007.10.027.  Not only (h, m), m = h u, is decomposed into waves,
// but (h, m, phi, bed) with phi = h u^2 + g h^2 / 2.  The jump between two cells is made of
//   - the source wave, which stays at the edge: the jump of a steady state over the step of the
//   bed;
//   - two waves (1, s, s^2) with Einfeldt's speeds s1 <= s3 [doi:10.1137/0725021];
//   - a corrector (0, 0, 1) with speed (s1 + s3) / 2, or, in a strong rarefaction, (1, s2, s2^2)
//     with the speed of the rarefaction's inner edge, so that it opens in two steps.
// The waves carry their jumps of m and phi to the side that they run to.  Where the other side
// is dry and higher than the water would rise at a wall, the edge is a wall.
//
// Terms are paired so that the result is antisymmetric, see edge.h: mind this when you change one.
#ifndef SWE_SOLVER_AUGMENTED_H
#define SWE_SOLVER_AUGMENTED_H

#include "../edge.h"

namespace swe {

// The two sides of an edge; velocities along the normal.
template <class Value> struct RiemannProblem {
    Value h_own, u_own, c_own;
    Value h_other, u_other, c_other;
    Value step; // of the bed, from own to other
};

// Jumps of h and phi in the source wave.
template <class Value> struct SourceWave {
    Value h, phi;
};

// The height that water of speed u towards a wall rises to: two rarefactions' or shocks' middle
// state.
template <class Value, class Real> SWE_INLINE Value height_at_wall(Value c, Value u, Real gravity)
{
    Value rises = maximum(Value{}, c + Real(0.5) * u);
    return rises * rises / gravity;
}

// The steady state's jump, limited to what leaves the middle states' depths positive.
template <class Value, class Real>
SWE_INLINE SourceWave<Value> source_wave(const RiemannProblem<Value> &p, Value s1, Value s3,
                                         Value u_middle, Value c_middle, Real gravity)
{
    const Value zero{};
    Value mean_gh = Real(0.5) * gravity * (p.h_own + p.h_other);
    Value mean_u = Real(0.5) * (p.u_own + p.u_other);
    Value straight = mean_u * mean_u - mean_gh; // product of the two characteristic speeds,
    Value steady = maximum(zero, p.u_own * p.u_other) - mean_gh; // and what steady states need

    // Near a sonic point there is no such steady state: there the one of water at rest is taken.
    Value tolerance = Real(1e-6) * mean_gh;
    Value slow_own = p.u_own - p.c_own, slow_other = p.u_other - p.c_other;
    Value fast_own = p.u_own + p.c_own, fast_other = p.u_other + p.c_other;
    Value sonic = any(is_less(absolute(straight), tolerance), is_less(straight * steady, zero),
                      is_less(straight * (s1 * s3), zero), is_less(slow_own * slow_other, zero),
                      is_less(fast_own * fast_other, zero),
                      both(is_less(s1, zero), is_less(zero, u_middle - c_middle)),
                      both(is_less(zero, s3), is_less(u_middle + c_middle, zero)));
    Value jump_h = choose(sonic, -p.step, p.step * mean_gh / straight);
    Value jump_phi = choose(sonic, -p.step * mean_gh, -p.step * mean_gh * (steady / straight));

    Value content = (s3 * p.h_other - s1 * p.h_own) + (p.h_own * p.u_own - p.h_other * p.u_other);
    content = maximum(zero, content); // the middle depth of HLLE, times s3 - s1
    Value most = choose(s1, content / s1, choose(-s3, p.h_other, content / s3));
    Value least = choose(-s3, content / s3, choose(s1, -p.h_own, content / s1));
    jump_h = maximum(least, minimum(most, jump_h));
    Value force_own = -gravity * p.step * p.h_own, force_other = -gravity * p.step * p.h_other;
    jump_phi = maximum(minimum(force_own, force_other),
                       minimum(maximum(force_own, force_other), jump_phi));
    return {jump_h, jump_phi};
}

// The share of a wave that runs to the own side.
template <class Value> SWE_INLINE Value backward(Value speed)
{
    const Value zero{}, half = (zero + 1) / 2;
    return half + half * (is_less(speed, zero) - is_less(zero, speed));
}

// Speeds of the two waves and, between them, of the corrector or of a rarefaction's inner edge; the
// latter if `strong`.
template <class Value> struct WaveSpeeds {
    Value s1, s2, s3, strong;
    Value u_middle, c_middle; // of the state between two rarefactions
};

template <class Value, class Real>
SWE_INLINE WaveSpeeds<Value> wave_speeds(const RiemannProblem<Value> &p, Real gravity)
{
    const Value zero{}, half = all<Value>(Real(0.5));
    Value mean_c = root(half * gravity * (p.h_own + p.h_other)); // Roe's averages
    Value roe_u = (p.c_own * p.u_own + p.c_other * p.u_other) / (p.c_own + p.c_other);
    Value s1 = minimum(p.u_own - p.c_own, roe_u - mean_c);
    Value s3 = maximum(p.u_other + p.c_other, roe_u + mean_c);
    s1 = choose(p.h_own, s1, p.u_other - (p.c_other + p.c_other)); // front on a dry bed
    s3 = choose(p.h_other, s3, p.u_own + (p.c_own + p.c_own));
    Value width = s3 - s1;

    // The fans' share of all between s1 and s3.
    Value u_middle = half * (p.u_own + p.u_other) + (p.c_own - p.c_other);
    Value c_middle =
        maximum(zero, half * (p.c_own + p.c_other) + Real(0.25) * (p.u_own - p.u_other));
    Value fan1 = (u_middle - c_middle) - (p.u_own - p.c_own);
    Value fan3 = (p.u_other + p.c_other) - (u_middle + c_middle);
    Value fan = maximum(fan1, fan3);
    Value wet = minimum(p.h_own, p.h_other);
    Value strong =
        both(both(is_less(half * width, fan), is_less(fan, Real(0.9) * width)), is_less(zero, wet));
    Value s2 = choose(fan1 - fan3, u_middle - c_middle, u_middle + c_middle);
    s2 = choose(strong, s2, half * (s1 + s3));
    return {s1, s2, s3, strong, u_middle, c_middle};
}

// What the waves carry of m and of phi to the own side (minus) and to the other (plus).
template <class Value> struct Fluctuations {
    Value m_minus, phi_minus, m_plus, phi_plus;
};

template <class Value, class Real>
SWE_INLINE Fluctuations<Value> fluctuations(const RiemannProblem<Value> &p, Real gravity)
{
    const Value zero{}, one = all<Value>(Real(1)), half = all<Value>(Real(0.5));
    const auto [s1, s2, s3, strong, u_middle, c_middle] = wave_speeds(p, gravity);
    Value width = s3 - s1;
    SourceWave<Value> source = source_wave(p, s1, s3, u_middle, c_middle, gravity);
    Value m_own = p.h_own * p.u_own, m_other = p.h_other * p.u_other;
    Value jump_h = (p.h_other - p.h_own) - source.h;
    Value jump_m = m_other - m_own;
    Value jump_phi = (m_other * p.u_other - m_own * p.u_own) +
                     (half * gravity * (p.h_own + p.h_other) * (p.h_other - p.h_own) - source.phi);

    // Strengths of the waves: two and a corrector, or three.
    Value a1 = (s3 * jump_h - jump_m) / width;
    Value a3 = (jump_m - s1 * jump_h) / width;
    Value three1 = ((jump_phi + s2 * s3 * jump_h) - (s2 + s3) * jump_m) / ((s2 - s1) * width);
    Value three3 = ((jump_phi + s1 * s2 * jump_h) - (s1 + s2) * jump_m) / ((s3 - s2) * width);
    Value three2 = ((s1 + s3) * jump_m - (jump_phi + s1 * s3 * jump_h)) / ((s2 - s1) * (s3 - s2));
    a1 = choose(strong, three1, a1);
    a3 = choose(strong, three3, a3);
    Value m1 = a1 * s1, m3 = a3 * s3, m2 = choose(strong, three2 * s2, zero);
    Value phi1 = m1 * s1, phi3 = m3 * s3;
    Value phi2 = choose(strong, m2 * s2, jump_phi - (phi1 + phi3));

    Value back1 = backward(s1);
    Value back2 = backward(s2);
    Value back3 = backward(s3);
    Value on1 = one - back1, on2 = one - back2, on3 = one - back3;
    return {(back1 * m1 + back3 * m3) + back2 * m2, (back1 * phi1 + back3 * phi3) + back2 * phi2,
            (on1 * m1 + on3 * m3) + on2 * m2, (on1 * phi1 + on3 * phi3) + on2 * phi2};
}

// Water of a height up to `dry` is none.
template <class Value, class Real>
SWE_INLINE EdgeFlux<Value> augmented(const CellState<Value> &own, const CellState<Value> &other,
                                     Value nx, Value ny, Real gravity, Real dry)
{
    const Value zero{};
    const Value tolerance = all<Value>(dry > least_number<Real> ? dry : least_number<Real>);
    Value wet_own = is_less(tolerance, own.h), wet_other = is_less(tolerance, other.h);
    RiemannProblem<Value> p;
    p.h_own = wet_own * own.h;
    p.c_own = wet_own * own.c;
    p.u_own = wet_own * (own.u * nx + own.v * ny);
    p.h_other = wet_other * other.h;
    p.c_other = wet_other * other.c;
    p.u_other = wet_other * (other.u * nx + other.v * ny);
    Value along_own = own.v * nx - own.u * ny, along_other = other.v * nx - other.u * ny;
    Value step = other.bed - own.bed;
    p.step = choose(wet_own, step, maximum(step, -p.h_other)); // a dry bed begins at the surface
    p.step = choose(wet_other, p.step, minimum(p.step, p.h_own));

    // Walls: a mirror image of the water stands on the dry side.
    Value none = both(is_less(p.h_own, tolerance), is_less(p.h_other, tolerance));
    Value wall_other = both(is_less(p.h_other, tolerance),
                            is_less(height_at_wall(p.c_own, p.u_own, gravity), step));
    Value wall_own = both(is_less(p.h_own, tolerance),
                          is_less(height_at_wall(p.c_other, -p.u_other, gravity), -step));
    RiemannProblem<Value> q = p;
    q.h_other = choose(wall_other, p.h_own, p.h_other);
    q.c_other = choose(wall_other, p.c_own, p.c_other);
    q.u_other = choose(wall_other, -p.u_own, p.u_other);
    q.h_own = choose(wall_own, p.h_other, p.h_own);
    q.c_own = choose(wall_own, p.c_other, p.c_own);
    q.u_own = choose(wall_own, -p.u_other, p.u_own);
    Value no_flow = any(none, wall_own, wall_other);
    q.step = choose(no_flow, zero, p.step);

    Fluctuations<Value> waves = fluctuations(q, gravity);
    Value m_own = q.h_own * q.u_own, m_other = q.h_other * q.u_other;
    Value mass = Real(0.5) * ((m_own + waves.m_minus) + (m_other - waves.m_plus));
    // No cell gives more than with its own fastest wave: depths stay positive (finite_volumes.h).
    mass = minimum(mass, p.h_own * (absolute(p.u_own) + p.c_own));
    mass = maximum(mass, -(p.h_other * (absolute(p.u_other) + p.c_other)));
    Value lost = m_own * q.u_own + waves.phi_minus;
    Value gained = m_other * q.u_other - waves.phi_plus;
    Value along = choose(mass, mass * along_own, mass * along_other);

    mass = choose(no_flow, zero, mass);
    along = choose(no_flow, zero, along);
    lost = choose(maximum(none, wall_own), zero, lost);
    gained = choose(maximum(none, wall_other), zero, gained);
    return {mass, lost * nx - along * ny, lost * ny + along * nx, gained * nx - along * ny,
            gained * ny + along * nx};
}

} // namespace swe
#endif
