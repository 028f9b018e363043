// SPDX-License-Identifier: GPL-3.0-or-later
// gauss.cc - see gauss.h.
#include "gauss.h"

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace euler {
namespace {

const double PI = std::acos(-1.0);

// Legendre's polynomial of degree n and its derivative at x in (-1, 1).
std::pair<double, double> legendre(int n, double x)
{
    double before = 1, value = x;
    for (int k = 2; k <= n; k++) {
        const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
    }
    return {value, n * (x * value - before) / (x * x - 1)};
}

} // namespace

Gauss::Gauss(int points) : node(points), weight(points)
{
    constexpr int NEWTON_STEPS = 20; // far more than quadratic convergence needs
    for (int i = 0; i < points; i++) {
        double x = -std::cos(PI * (i + 0.75) / (points + 0.5));
        for (int step = 0; step < NEWTON_STEPS; step++) {
            const auto [value, slope] = legendre(points, x);
            x -= value / slope;
        }
        if (2 * i + 1 == points)
            x = 0;
        const double slope = legendre(points, x).second;
        node[i] = (1 + x) / 2;
        weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
}

double Gauss::value(int k, double x) const
{
    double product = 1;
    for (int i = 0; i < points(); i++)
        if (i != k)
            product *= (x - node[i]) / (node[k] - node[i]);
    return product;
}

double Gauss::derivative(int k, double x) const
{
    double sum = 0;
    for (int j = 0; j < points(); j++) {
        if (j == k)
            continue;
        double product = 1 / (node[k] - node[j]);
        for (int i = 0; i < points(); i++)
            if (i != k && i != j)
                product *= (x - node[i]) / (node[k] - node[i]);
        sum += product;
    }
    return sum;
}

// Gauss-Jordan elimination with row pivots.
std::vector<double> inverse(std::vector<double> a, int n)
{
    std::vector<double> b(static_cast<std::size_t>(n) * n);
    for (int i = 0; i < n; i++)
        b[i * n + i] = 1;
    for (int column = 0; column < n; column++) {
        int pivot = column;
        for (int row = column + 1; row < n; row++)
            if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column]))
                pivot = row;
        if (a[pivot * n + column] == 0)
            throw std::runtime_error("a matrix of the scheme has no inverse");
        for (int k = 0; k < n; k++) {
            std::swap(a[pivot * n + k], a[column * n + k]);
            std::swap(b[pivot * n + k], b[column * n + k]);
        }
        const double scale = 1 / a[column * n + column];
        for (int k = 0; k < n; k++) {
            a[column * n + k] *= scale;
            b[column * n + k] *= scale;
        }
        for (int row = 0; row < n; row++) {
            const double factor = a[row * n + column];
            if (row == column)
                continue;
            for (int k = 0; k < n; k++) {
                a[row * n + k] -= factor * a[column * n + k];
                b[row * n + k] -= factor * b[column * n + k];
            }
        }
    }
    return b;
}

} // namespace euler
