// SPDX-License-Identifier: GPL-3.0-or-later
// gas.h - the equations: an ideal gas in D dimensions.  Arrays of unknowns have a distance of
// `stride` between one unknown and the next.
#ifndef EULER_GAS_H
#define EULER_GAS_H

#include <algorithm>
#include <cmath>
#include "element.h"

namespace euler {

template <int D> struct Gas {
    static constexpr int UNKNOWNS = D + 2, ENERGY = D + 1;

    static double pressure(const double *u, int stride)
    {
        double kinetic = 0;
        for (int i = 1; i <= D; i++)
            kinetic += u[i * stride] * u[i * stride];
        return (GAMMA - 1) * (u[ENERGY * stride] - kinetic / (2 * u[0]));
    }

    // Of waves along the axis.
    static double speed(const double *u, int stride, int axis)
    {
        return std::fabs(u[(axis + 1) * stride] / u[0]) +
               std::sqrt(GAMMA * pressure(u, stride) / u[0]);
    }

    // The flux along AXIS at `count` points that lie side by side.
    template <int AXIS>
    static void flux(const double *__restrict__ u, double *__restrict__ f, int count)
    {
        for (int k = 0; k < count; k++) {
            const double inverse = 1 / u[k];
            double kinetic = 0;
            for (int i = 1; i <= D; i++)
                kinetic += u[i * count + k] * u[i * count + k];
            const double energy = u[ENERGY * count + k];
            const double p = (GAMMA - 1) * (energy - 0.5 * inverse * kinetic);
            const double velocity = u[(AXIS + 1) * count + k] * inverse;
            f[k] = u[(AXIS + 1) * count + k];
            for (int i = 1; i <= D; i++)
                f[i * count + k] = u[i * count + k] * velocity;
            f[(AXIS + 1) * count + k] += p;
            f[ENERGY * count + k] = velocity * (energy + p);
        }
    }

    // Rusanov's flux at `count` points of a face across the axis.  Each side has its state, and
    // behind it its normal flux.
    static void rusanov(const double *left, const double *right, int axis, double *f, int count)
    {
        const int normal = UNKNOWNS * count; // where the normal flux begins
        for (int k = 0; k < count; k++) {
            const double fastest =
                std::max(speed(left + k, count, axis), speed(right + k, count, axis));
            for (int i = k; i < normal; i += count)
                f[i] = 0.5 * (left[normal + i] + right[normal + i]) -
                       0.5 * fastest * (right[i] - left[i]);
        }
    }

    // The trace behind a wall: the gas there is a mirror image.
    static void mirror(const double *trace, int axis, double *image, int count)
    {
        for (int i = 0; i < UNKNOWNS; i++)
            for (int k = 0; k < count; k++) {
                const int at = i * count + k, flux_at = UNKNOWNS * count + at;
                image[at] = i == axis + 1 ? -trace[at] : trace[at];
                image[flux_at] = i == axis + 1 ? trace[flux_at] : -trace[flux_at];
            }
    }
};

} // namespace euler
#endif
