// SPDX-License-Identifier: GPL-3.0-or-later
// lanes.h - the arithmetic that the fluxes are written in: one number, or a vector of them.
//
// A flux is a template on Value, which is float, double, or a vector of either (GCC's vector
// extension: + - * / compare lane by lane, and `mask ? a : b` chooses).  What operators do not
// offer is here.  Each function does to a lane what it does to a number, to the last bit, so that
// it does not matter where in a vector a cell comes to lie.  This holds without contraction to
// fused multiply-adds only: files with kernels are compiled with -ffp-contract=off.
#ifndef SWE_SOLVER_LANES_H
#define SWE_SOLVER_LANES_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Vectors are passed among inlined functions only: there is no calling convention to worry about.
#pragma GCC diagnostic ignored "-Wpsabi"

// Inlined also into functions that are compiled for wider vectors than the file is.
#define SWE_INLINE inline __attribute__((always_inline))

namespace swe {

template <class Real, int BYTES> struct LanesOf {
    typedef Real type __attribute__((vector_size(BYTES)));
};
template <class Real, int BYTES> using Lanes = typename LanesOf<Real, BYTES>::type;

// The integer, or vector of integers, with as many bits in each lane.
template <class Value> struct Integers {
    using type = decltype(Value{} < Value{});
};
template <> struct Integers<double> {
    using type = std::int64_t;
};
template <> struct Integers<float> {
    using type = std::int32_t;
};

template <class Real> constexpr Real least_number = std::numeric_limits<Real>::min();
template <class Value> constexpr bool is_number = std::is_floating_point<Value>::value;

// A value that the compiler does not know, in vectors of so many bytes.  Others may be in functions
// that have no registers for them.
template <int BYTES, class Value> SWE_INLINE Value opaque(Value a)
{
#ifdef __x86_64__
    if constexpr (sizeof(Value) == BYTES)
        asm("" : "+v"(a));
#endif
    return a;
}

// Compilers may merge comparisons and take vectors of truths, which AVX-512 has not, to pieces.  So
// in vectors of 64 bytes each comparison is of an opaque number, and is used once.
template <class Value> SWE_INLINE Value unknown(Value a) { return opaque<64>(a); }

// A constant.  In vectors of 32 bytes compilers make a comparison and a mask of the maximum of a
// number and a 0 that they know, which is one instruction.
template <class Value> SWE_INLINE Value hidden(Value constant) { return opaque<32>(constant); }

template <class Value> SWE_INLINE Value minimum(Value a, Value b)
{
    a = unknown(a);
    return a < b ? a : b;
}

template <class Value> SWE_INLINE Value maximum(Value a, Value b)
{
    a = unknown(a);
    return a > b ? a : b;
}

template <class Value> SWE_INLINE Value absolute(Value a)
{
    if constexpr (is_number<Value>) {
        return std::fabs(a);
    } else { // clears the sign
        typename Integers<Value>::type bits;
        std::memcpy(&bits, &a, sizeof bits);
        bits &= std::numeric_limits<std::decay_t<decltype(bits[0])>>::max();
        std::memcpy(&a, &bits, sizeof bits);
        return a;
    }
}

template <class Value> SWE_INLINE Value root(Value a)
{
    if constexpr (is_number<Value>) {
        return std::sqrt(a);
    } else {
        constexpr int LANES = sizeof(Value) / sizeof(a[0]);
        Value result{};
        for (int lane = 0; lane < LANES; lane++)
            result[lane] = std::sqrt(a[lane]);
        return result;
    }
}

// The same number in all lanes.
template <class Value, class Real> SWE_INLINE Value all(Real number) { return number - Value{}; }

template <class Value, class Real> SWE_INLINE Value load(const Real *from)
{
    Value value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class Value, class Real> SWE_INLINE void store(Real *to, Value value)
{
    std::memcpy(to, &value, sizeof value);
}

// Conditions are numbers, 1 or 0.
template <class Value> SWE_INLINE Value is_less(Value a, Value b)
{
    const Value zero{}, one = zero + 1;
    a = unknown(a);
    return a < b ? one : zero;
}

template <class Value> SWE_INLINE Value both(Value a, Value b) { return minimum(a, b); }
template <class Value> SWE_INLINE Value any(Value a) { return a; }
template <class Value, class... Values> SWE_INLINE Value any(Value a, Values... others)
{
    return maximum(a, any(others...));
}

template <class Value> SWE_INLINE Value choose(Value condition, Value yes, Value no)
{
    const Value zero{};
    condition = unknown(condition);
    return condition > zero ? yes : no;
}

} // namespace swe
#endif
