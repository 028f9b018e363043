// SPDX-License-Identifier: GPL-3.0-or-later
// gauss.h - Gauss-Legendre points of [0, 1], and Lagrange polynomials on them.
//
// All operators of the scheme are small matrices that are made of these polynomials once
// (operators.h).
#ifndef EULER_GAUSS_H
#define EULER_GAUSS_H

#include <vector>

namespace euler {

class Gauss {
public:
    // 1 to 20 points.
    explicit Gauss(int points);

    int points() const { return static_cast<int>(node.size()); }
    // The Lagrange polynomial that is 1 at point k, and its derivative, at any x.
    double value(int k, double x) const;
    double derivative(int k, double x) const;

    std::vector<double> node, weight; // ascending; the sum of weights is 1
};

// Inverse of an n x n matrix, row by row.  Throws std::runtime_error if it has none.
std::vector<double> inverse(std::vector<double> matrix, int n);

} // namespace euler
#endif
