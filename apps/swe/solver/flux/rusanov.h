// SPDX-License-Identifier: GPL-3.0-or-later
// rusanov.h - Rusanov's (local Lax-Friedrichs) flux with hydrostatic reconstruction.
//
// Audusse, Bouchut, Bristeau, Klein, Perthame 2004, doi:10.1137/S1064827503431090.  At an edge the
// bed is the higher one of the two; each side keeps what water it has above that.  The flux between
// the reconstructed states U* is
//     (F(U*own) + F(U*other)) / 2 - a (U*other - U*own) / 2,   a = max(|u.n| + c) of both cells,
// and what the reconstruction took away returns as pressure.  Sorted by cells, it is water that
// leaves each one, h* (a + u.n) / 2 >= 0, and takes its velocity with it; over the
// three edges u.n cancels, so a cell cannot lose more than it has if dt a <= inradius, and no
// velocities arise but by pressure.
#ifndef SWE_SOLVER_RUSANOV_H
#define SWE_SOLVER_RUSANOV_H

#include "../edge.h"

namespace swe {

template <class Value, class Real>
SWE_INLINE EdgeFlux<Value> rusanov(const CellState<Value> &own, const CellState<Value> &other,
                                   Value nx, Value ny, Real gravity)
{
    const Value zero = hidden(Value{});
    Value un_own = own.u * nx + own.v * ny;
    Value un_other = other.u * nx + other.v * ny;
    Value a = maximum(absolute(un_own) + own.c, absolute(un_other) + other.c);

    Value step = other.bed - own.bed;
    Value h_own = maximum(zero, own.h - maximum(zero, step));
    Value h_other = maximum(zero, other.h - maximum(zero, -step));

    Value half = all<Value>(Real(0.5));
    Value leaves = half * h_own * (a + un_own);
    Value enters = half * h_other * (a - un_other);
    Value x = own.u * leaves - other.u * enters;
    Value y = own.v * leaves - other.v * enters;
    Value push = Real(0.25) * gravity * (h_other - h_own) * (h_other + h_own);
    return {leaves - enters, x + nx * push, y + ny * push, x - nx * push, y - ny * push};
}

} // namespace swe
#endif
