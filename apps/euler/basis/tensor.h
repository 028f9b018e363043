// SPDX-License-Identifier: GPL-3.0-or-later
// tensor.h - a matrix applied along one axis of arrays of N^DIM values, the first axis innermost.
//
// The order of additions is that of the columns, whatever the axis, and so results have the same
// bits wherever the compiler's vectors begin.
#ifndef EULER_TENSOR_H
#define EULER_TENSOR_H

namespace euler {

constexpr int power(int base, int exponent)
{
    int result = 1;
    for (int i = 0; i < exponent; i++)
        result *= base;
    return result;
}

template <int N> using Square = double[N][N];

enum class Into { SET, ADD };

// out = matrix in, or out += matrix in; of one array.  `transposed` is the same matrix.
template <int N, int DIM, int AXIS, Into INTO>
inline void along(const Square<N> &matrix, const Square<N> &transposed,
                  const double *__restrict__ in, double *__restrict__ out)
{
    constexpr int STRIDE = power(N, AXIS), BLOCKS = power(N, DIM - AXIS - 1);
    for (int block = 0; block < BLOCKS; block++) {
        const double *from = in + block * N * STRIDE;
        double *to = out + block * N * STRIDE;
        if constexpr (AXIS == 0) {
            double row[N];
            for (int i = 0; i < N; i++)
                row[i] = INTO == Into::ADD ? to[i] : 0;
            for (int m = 0; m < N; m++)
                for (int i = 0; i < N; i++)
                    row[i] += transposed[m][i] * from[m];
            for (int i = 0; i < N; i++)
                to[i] = row[i];
        } else {
            for (int i = 0; i < N; i++) {
                if (INTO == Into::SET)
                    for (int s = 0; s < STRIDE; s++)
                        to[i * STRIDE + s] = 0;
                for (int m = 0; m < N; m++) {
                    const double factor = matrix[i][m];
                    for (int s = 0; s < STRIDE; s++)
                        to[i * STRIDE + s] += factor * from[m * STRIDE + s];
                }
            }
        }
    }
    (void)matrix;
    (void)transposed;
}

} // namespace euler
#endif
