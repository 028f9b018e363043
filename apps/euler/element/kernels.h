// SPDX-License-Identifier: GPL-3.0-or-later
// kernels.h - the element of D dimensions with N points along an axis, order N - 1.
#ifndef EULER_KERNELS_H
#define EULER_KERNELS_H

#include <algorithm>
#include "../basis/operators.h"
#include "../basis/tensor.h"
#include "gas.h"

namespace euler {

template <int D, int N> class Kernels final : public Element {
    using Matter = Gas<D>;
    static constexpr int V = Matter::UNKNOWNS, P = power(N, D), M = power(N, D - 1);
    static constexpr int STATE = V * P, TRACE = 2 * V * M;
    // Of a Courant number 1 / (2 order + 1) this order allows: the scheme's limits are lower
    // (Dumbser et al. 2008, doi:10.1016/j.jcp.2008.05.025, table 1).
    static constexpr double COURANT[] = {1,     0.33,  0.17, 0.1,  0.069,
                                         0.045, 0.038, 0.03, 0.02, 0.015};

    // predict: states of all times, their spatial terms, one flux, means.
    static constexpr std::size_t SCRATCH =
        std::max<std::size_t>(2 * N * STATE + (D + 2) * STATE, 8 * TRACE);

    const Operators<N> op;

public:
    Kernels() : Element({D, N, V, STATE, TRACE, SCRATCH}) {}

    double courant() const override { return COURANT[N - 1] / D; }

    void predict(const double *state, double step, double *volume, double *traces,
                 double *scratch) const override
    {
        double *times = scratch, *terms = times + N * STATE, *flux = terms + N * STATE;
        for (int t = 0; t < N; t++)
            std::copy(state, state + STATE, times + t * STATE);
        for (int iteration = 0; iteration < N; iteration++) {
            for (int t = 0; t < N; t++) {
                std::fill(terms + t * STATE, terms + (t + 1) * STATE, 0.0);
                add_divergence<0>(times + t * STATE, flux, terms + t * STATE);
            }
            for (int t = 0; t < N; t++)
                in_time(state, step, terms, t, times + t * STATE);
        }
        double *mean = flux + STATE, *mean_flux = mean + STATE;
        std::fill(mean, mean + STATE, 0.0);
        for (int t = 0; t < N; t++)
            add(op.weight[t], times + t * STATE, mean);
        std::fill(volume, volume + STATE, 0.0);
        leave<0>(times, mean, step, flux, mean_flux, volume, traces);
    }

    void correct(double *state, double step, const double *volume, const double *traces,
                 const Faces &faces, double *scratch) const override
    {
        add(1, volume, state);
        for (int axis = 0; axis < D; axis++)
            for (int side = 0; side < 2; side++) {
                const int face = 2 * axis + side;
                solve(traces + face * TRACE, faces[face], axis, side, scratch, scratch + TRACE);
                lift(scratch, axis, side, side ? -step : step, state);
            }
    }

    void refine(const double *coarse, int child, double *fine, double *scratch) const override
    {
        int c[MOST_DIMENSIONS];
        digits(child, c);
        apply_all(op.third, op.third_transposed, c, coarse, fine, scratch);
    }

    void add_child(const double *fine, int child, double *coarse, double *scratch) const override
    {
        int c[MOST_DIMENSIONS];
        digits(child, c);
        double *part = scratch + STATE;
        apply_all(op.whole, op.whole_transposed, c, fine, part, scratch);
        add(1, part, coarse);
    }

    Look look(const double *state) const override
    {
        Look look{0, 0};
        for (int k = 0; k < P; k++)
            for (int axis = 0; axis < D; axis++) {
                const double speed = Matter::speed(state + k, P, axis);
                if (look.speed == look.speed && !(speed <= look.speed)) // no number stays
                    look.speed = speed;
            }
        for (int i = 0; i < V; i++) {
            const auto [least, most] = std::minmax_element(state + i * P, state + (i + 1) * P);
            look.variation = std::max(look.variation, *most - *least);
        }
        return look;
    }

    void means(const double *state, double *unknowns) const override
    {
        for (int i = 0; i < V; i++) {
            unknowns[i] = 0;
            for (int k = 0; k < P; k++)
                unknowns[i] += weight(k) * state[i * P + k];
        }
    }

    void place(std::size_t point, double *where) const override
    {
        for (int axis = 0; axis < D; axis++, point /= N)
            where[axis] = op.node[point % N];
    }

    double weight(std::size_t point) const override
    {
        double product = 1;
        for (int axis = 0; axis < D; axis++, point /= N)
            product *= op.weight[point % N];
        return product;
    }

private:
    static void add(double factor, const double *__restrict__ from, double *__restrict__ to)
    {
        for (int i = 0; i < STATE; i++)
            to[i] += factor * from[i];
    }

    static void digits(int child, int *c)
    {
        for (int axis = 0; axis < D; axis++, child /= 3)
            c[axis] = child % 3;
    }

    template <int AXIS> void add_divergence(const double *state, double *flux, double *sum) const
    {
        Matter::template flux<AXIS>(state, flux, P);
        for (int i = 0; i < V; i++)
            along<N, D, AXIS, Into::ADD>(op.derivative, op.derivative_transposed, flux + i * P,
                                         sum + i * P);
        if constexpr (AXIS + 1 < D)
            add_divergence<AXIS + 1>(state, flux, sum);
    }

    // One Picard iteration for the state at time point t.
    void in_time(const double *__restrict__ state, double step, const double *__restrict__ terms,
                 int t, double *__restrict__ out) const
    {
        for (int i = 0; i < STATE; i++)
            out[i] = state[i];
        for (int s = 0; s < N; s++) {
            const double factor = -step * op.time[t][s];
            for (int i = 0; i < STATE; i++)
                out[i] += factor * terms[s * STATE + i];
        }
    }

    // Volume integral and traces, from the states of all times.
    template <int AXIS> void leave(const double *times, const double *mean, double step,
                                   double *flux, double *mean_flux, double *volume,
                                   double *traces) const
    {
        std::fill(mean_flux, mean_flux + STATE, 0.0);
        for (int t = 0; t < N; t++) {
            Matter::template flux<AXIS>(times + t * STATE, flux, P);
            add(op.weight[t] * step, flux, mean_flux);
        }
        for (int i = 0; i < V; i++)
            along<N, D, AXIS, Into::ADD>(op.stiffness, op.stiffness_transposed, mean_flux + i * P,
                                         volume + i * P);
        for (int side = 0; side < 2; side++) {
            double *trace = traces + (2 * AXIS + side) * TRACE;
            to_face<AXIS>(mean, side, 1, trace);
            to_face<AXIS>(mean_flux, side, 1 / step, trace + V * M);
        }
        if constexpr (AXIS + 1 < D)
            leave<AXIS + 1>(times, mean, step, flux, mean_flux, volume, traces);
    }

    template <int AXIS>
    void to_face(const double *state, int side, double factor, double *face) const
    {
        constexpr int STRIDE = power(N, AXIS), BLOCKS = power(N, D - AXIS - 1);
        for (int i = 0; i < V; i++)
            for (int block = 0; block < BLOCKS; block++)
                for (int s = 0; s < STRIDE; s++) {
                    double sum = 0;
                    for (int m = 0; m < N; m++)
                        sum += op.edge[side][m] * state[i * P + (block * N + m) * STRIDE + s];
                    face[i * M + block * STRIDE + s] = factor * sum;
                }
    }

    // Subtracts the flux of a face, which comes in through side 0 and goes out through side 1.
    void lift(const double *flux, int axis, int side, double factor, double *state) const
    {
        const int stride = power(N, axis), blocks = power(N, D - axis - 1);
        for (int i = 0; i < V; i++)
            for (int block = 0; block < blocks; block++)
                for (int m = 0; m < N; m++) {
                    const double weight = factor * op.lift[side][m];
                    for (int s = 0; s < stride; s++)
                        state[i * P + (block * N + m) * stride + s] +=
                            weight * flux[i * M + block * stride + s];
                }
    }

    // The flux through a face.  scratch: 4 traces.
    void solve(const double *own, const Face &face, int axis, int side, double *flux,
               double *scratch) const
    {
        double *image = scratch, *rest = scratch + TRACE;
        switch (face.kind) {
        case FaceKind::WALL:
            Matter::mirror(own, axis, image, M);
            return between(own, image, axis, side, flux);
        case FaceKind::SAME:
            return between(own, face.other[0], axis, side, flux);
        case FaceKind::COARSER:
            apply_face(op.third, op.third_transposed, face.sub_face, 2 * V, face.other[0], image,
                       rest);
            return between(own, image, axis, side, flux);
        case FaceKind::FINER:
            std::fill(flux, flux + V * M, 0.0);
            double *part = rest + TRACE, *whole = part + V * M;
            for (int sub = 0; sub < power(3, D - 1); sub++) {
                apply_face(op.third, op.third_transposed, sub, 2 * V, own, image, rest);
                between(image, face.other[sub], axis, side, part);
                apply_face(op.whole, op.whole_transposed, sub, V, part, whole, rest);
                for (int i = 0; i < V * M; i++)
                    flux[i] += whole[i];
            }
        }
    }

    static void between(const double *own, const double *other, int axis, int side, double *flux)
    {
        Matter::rusanov(side ? own : other, side ? other : own, axis, flux, M);
    }

    // A matrix for each axis of a face, to `fields` arrays.
    static void apply_face(const Square<N> *matrix, const Square<N> *transposed, int sub,
                           int fields, const double *in, double *out, double *between)
    {
        for (int i = 0; i < fields; i++) {
            if constexpr (D == 2) {
                along<N, 1, 0, Into::SET>(matrix[sub], transposed[sub], in + i * M, out + i * M);
            } else {
                along<N, 2, 0, Into::SET>(matrix[sub % 3], transposed[sub % 3], in + i * M,
                                          between);
                along<N, 2, 1, Into::SET>(matrix[sub / 3], transposed[sub / 3], between,
                                          out + i * M);
            }
        }
        (void)between;
    }

    // A matrix for each axis of a cell.
    static void apply_all(const Square<N> *matrix, const Square<N> *transposed, const int *c,
                          const double *in, double *out, double *scratch)
    {
        for (int i = 0; i < V; i++, in += P, out += P) {
            double *first = D == 2 ? scratch : out;
            along<N, D, 0, Into::SET>(matrix[c[0]], transposed[c[0]], in, first);
            double *second = D == 2 ? out : scratch;
            along<N, D, 1, Into::SET>(matrix[c[1]], transposed[c[1]], first, second);
            if constexpr (D == 3)
                along<N, D, 2, Into::SET>(matrix[c[2]], transposed[c[2]], second, out);
        }
    }
};

} // namespace euler
#endif
