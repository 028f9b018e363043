// SPDX-License-Identifier: GPL-3.0-or-later
// operators.h - the scheme's matrices for N Gauss-Legendre points a direction.
//
// A vector along one axis has a value at each point; matrices are [row][column], and those with
// "transposed" in their name [column][row], so that an innermost loop goes over rows.
#ifndef EULER_OPERATORS_H
#define EULER_OPERATORS_H

#include "gauss.h"

namespace euler {

template <int N> struct Operators {
    double node[N], weight[N];
    double derivative[N][N];            // of the polynomial, at the points
    double derivative_transposed[N][N];
    double stiffness[N][N];             // weak derivative, divided by the mass: w_m D[m][k] / w_k
    double stiffness_transposed[N][N];
    double edge[2][N]; // the polynomials at 0 and at 1
    double lift[2][N]; // the same, divided by the mass
    // Picard iteration: weights of spatial terms at time points t' in the state at t; made of
    // K1 = theta_i(1) theta_j(1) - int theta_i' theta_j, as K1^-1 W.
    double time[N][N];
    // Third number c of three of the interval: the polynomial at its points, and the L2
    // projection of a polynomial there to the whole interval.
    double third[3][N][N], third_transposed[3][N][N];
    double whole[3][N][N], whole_transposed[3][N][N];

    Operators()
    {
        const Gauss gauss(N);
        for (int i = 0; i < N; i++) {
            node[i] = gauss.node[i];
            weight[i] = gauss.weight[i];
            for (int side = 0; side < 2; side++) {
                edge[side][i] = gauss.value(i, side);
                lift[side][i] = edge[side][i] / weight[i];
            }
        }
        set_derivatives(gauss);
        set_time(gauss);
        set_thirds(gauss);
    }

private:
    void set_derivatives(const Gauss &gauss)
    {
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                derivative_transposed[k][i] = derivative[i][k] = gauss.derivative(k, node[i]);
        for (int k = 0; k < N; k++)
            for (int m = 0; m < N; m++)
                stiffness_transposed[m][k] = stiffness[k][m] =
                    weight[m] * derivative[m][k] / weight[k];
    }

    void set_time(const Gauss &gauss)
    {
        std::vector<double> k1(N * N);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                k1[i * N + j] = edge[1][i] * edge[1][j] - weight[j] * gauss.derivative(i, node[j]);
        const std::vector<double> inverted = inverse(k1, N);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                time[i][j] = inverted[i * N + j] * weight[j];
    }

    void set_thirds(const Gauss &gauss)
    {
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < N; i++)
                for (int k = 0; k < N; k++) {
                    const double value = gauss.value(k, (c + node[i]) / 3);
                    third_transposed[c][k][i] = third[c][i][k] = value;
                    whole_transposed[c][i][k] = whole[c][k][i] =
                        weight[i] / (3 * weight[k]) * value;
                }
    }
};

} // namespace euler
#endif
