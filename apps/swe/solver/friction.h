// SPDX-License-Identifier: GPL-3.0-or-later
// friction.h - Manning's friction, implicit in the factor: it slows down, and never turns, the water.
//
// d(hu)/dt = -g n^2 |u| hu / h^(4/3), and likewise hv.  The root is by Newton's method, so that there
// are vectors of it, and the same bits in each lane of any of them.
#ifndef SWE_SOLVER_FRICTION_H
#define SWE_SOLVER_FRICTION_H

#include "vectors/cell_vectors.h"

namespace swe {

// x^(-1/3), x a normal positive number, to rounding errors.  The first guess, 4 % off at most,
// divides the exponent, which is in the upper bits, by -3; each step squares the error and doubles
// it.
template <class Value> SWE_INLINE Value inverse_cube_root(Value x)
{
    constexpr bool DOUBLE = sizeof(Value) / lanes_of<Value>() == sizeof(double);
    using Word = std::conditional_t<DOUBLE, std::uint64_t, std::uint32_t>;
    constexpr Word GUESS = DOUBLE ? static_cast<Word>(0x553ef0ff289dd796) : Word{0x54a2fa8c};
    constexpr int STEPS = DOUBLE ? 4 : 3;
    using Real = std::conditional_t<DOUBLE, double, float>;
    Lanes<Word, sizeof(Value)> bits, third;
    std::memcpy(&bits, &x, sizeof bits);
    third = (bits >> 2) + (bits >> 4);
    third += third >> 4;
    third += third >> 8;
    third += third >> 16;
    bits = GUESS - third;
    Value y;
    std::memcpy(&y, &bits, sizeof y);
    for (int step = 0; step < STEPS; step++)
        y = y + y * ((Real(1) - (x * y) * (y * y)) * (Real(1) / Real(3)));
    return y;
}

// What the momentum of water is multiplied by; `factor` is dt g n^2, and h more than 0.
template <class Value, class Real>
SWE_INLINE Value slowed_by_friction(Value h, Value hu, Value hv, Real factor)
{
    Value over_h = Real(1) / h;
    Value speed = root(hu * hu + hv * hv) * over_h;
    return Real(1) / (Real(1) + factor * speed * (over_h * inverse_cube_root(h)));
}

} // namespace swe
#endif
