// SPDX-License-Identifier: GPL-3.0-or-later
// uplift.cc - see uplift.h.
#include "uplift.h"

#include <algorithm>
#include <cmath>
#include "../projection.h"

namespace swe {
namespace {

// A sub-fault is near to a square that is larger than its distance over this.  Polynomials are then
// wrong by some thousandths of what it does at most.
constexpr double SEPARATION = 0.75;
// Squares are not cut further if there would be more, nor below 2^-13 of the domain: what lies near
// the surface has steps there.
constexpr std::size_t MOST_SQUARES = 1 << 17;
constexpr double SMALLEST_PART = 1.0 / 8192;

// T_i, Chebyshev's polynomial, at the k-th zero of T_n, where T_1 is the place.
double at_node(int i, int k, int n) { return std::cos(i * PI * (2 * k + 1) / (2 * n)); }

} // namespace

Uplift::Box Uplift::box_of(const SubFault &f)
{
    double strike = f.strike * PI / 180, dip = f.dip * PI / 180;
    double s = std::fabs(std::sin(strike)), c = std::fabs(std::cos(strike));
    double along = f.length / 2, across = f.width / 2 * std::cos(dip);
    double x = along * s + across * c, y = along * c + across * s;
    return {f.x - x, f.x + x, f.y - y, f.y + y, f.depth - f.width / 2 * std::sin(dip)};
}

bool Uplift::is_near(const Square &q, const Box &b)
{
    double x = std::max({b.west - (q.x + q.side), q.x - b.east, 0.0});
    double y = std::max({b.south - (q.y + q.side), q.y - b.north, 0.0});
    double far = SEPARATION * q.side;
    return x * x + y * y + b.top * b.top < far * far;
}

double Uplift::value(const Square &q, double x, double y)
{
    double s = 2 * (x - q.x) / q.side - 1, t = 2 * (y - q.y) / q.side - 1;
    double in_x[N] = {1, s}, sum = 0, before = 0, now = 1;
    for (int i = 2; i < N; i++)
        in_x[i] = 2 * s * in_x[i - 1] - in_x[i - 2];
    for (int j = 0; j < N; j++) {
        double row = 0;
        for (int i = 0; i < N; i++)
            row += q.of[j * N + i] * in_x[i];
        sum += row * now;
        double next = j == 0 ? t : 2 * t * now - before;
        before = now;
        now = next;
    }
    return sum;
}

// Of the polynomial with these values at the nodes, over which Chebyshev's are orthogonal: first
// along the rows, then along the columns.
Uplift::Numbers Uplift::coefficients(const Numbers &values)
{
    double part[N][N];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            part[i][k] = at_node(i, k, N) * (i ? 2 : 1) / N;
    Numbers rows{}, all{};
    for (int l = 0; l < N; l++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                rows[l * N + i] += part[i][k] * values[l * N + k];
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            for (int l = 0; l < N; l++)
                all[j * N + i] += part[j][l] * rows[l * N + i];
    return all;
}

// Leaves in `pending` what is to be left to the square's children.
void Uplift::fill(Pending &pending, const std::vector<SubFault> &faults,
                  const std::vector<Box> &boxes, double smallest)
{
    Square &q = squares_[static_cast<std::size_t>(pending.square)];
    std::vector<int> near, add;
    for (int f : pending.near) {
        bool wait = q.side > smallest && is_near(q, boxes[static_cast<std::size_t>(f)]);
        (wait ? near : add).push_back(f);
    }
    Numbers at{};
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            double x = q.x + (at_node(1, i, N) + 1) / 2 * q.side;
            double y = q.y + (at_node(1, j, N) + 1) / 2 * q.side;
            double &up = at[j * N + i];
            if (q.parent >= 0)
                up = value(squares_[static_cast<std::size_t>(q.parent)], x, y);
            for (int f : add)
                up += displacement(faults[static_cast<std::size_t>(f)], x, y).up;
        }
    q.of = coefficients(at);
    pending.near = std::move(near);
}

void Uplift::cut(const Pending &pending, std::vector<Pending> &next)
{
    auto parent = static_cast<std::size_t>(pending.square);
    squares_[parent].children = static_cast<int>(squares_.size());
    double half = squares_[parent].side / 2, x = squares_[parent].x, y = squares_[parent].y;
    for (int k = 0; k < 4; k++) {
        Square q{x + (k & 1) * half, y + (k >> 1) * half, half, pending.square};
        if (!is_outside(q))
            next.push_back({static_cast<int>(squares_.size()), pending.near});
        squares_.push_back(q);
    }
}

Uplift::Uplift(const std::vector<SubFault> &faults, const Config &config)
    : east_(config.domain.x0 + config.width()), north_(config.domain.y0 + config.height())
{
    double side = std::max(config.width(), config.height());
    double leg = config.domain.square * std::sqrt(std::ldexp(1, -(config.grid.max_depth + 1)));
    double smallest = std::max(leg, side * SMALLEST_PART);
    std::vector<Box> boxes;
    std::vector<Pending> level = {{0, {}}}, next;
    for (std::size_t f = 0; f < faults.size(); f++) {
        boxes.push_back(box_of(faults[f]));
        const Box &b = boxes[f];
        is_under_domain_ = is_under_domain_ || (b.west <= east_ && b.east >= config.domain.x0 &&
                                                b.south <= north_ && b.north >= config.domain.y0);
        level[0].near.push_back(static_cast<int>(f));
    }
    squares_.push_back({config.domain.x0, config.domain.y0, side, -1});
    while (!level.empty()) {
        if (squares_.size() + 4 * level.size() > MOST_SQUARES)
            smallest = INFINITY;
#pragma omp parallel for schedule(dynamic)
        for (std::size_t i = 0; i < level.size(); i++)
            fill(level[i], faults, boxes, smallest);
        for (const Pending &pending : level)
            if (!pending.near.empty())
                cut(pending, next);
        level.swap(next);
        next.clear();
    }
    // At enough places.
    for (const Square &q : squares_)
        for (int k = 0; q.children < 0 && !is_outside(q) && k < N * N; k++) {
            double up = at(q.x + (k % N + 0.5) / N * q.side, q.y + (k / N + 0.5) / N * q.side);
            lowest_ = std::min(lowest_, up);
            highest_ = std::max(highest_, up);
        }
}

double Uplift::at(double x, double y) const
{
    const Square *q = &squares_[0];
    x = std::clamp(x, q->x, east_);
    y = std::clamp(y, q->y, north_);
    while (q->children >= 0) {
        int east = x >= q->x + q->side / 2, north = y >= q->y + q->side / 2;
        q = &squares_[static_cast<std::size_t>(q->children + 2 * north + east)];
    }
    return value(*q, x, y);
}

} // namespace swe
