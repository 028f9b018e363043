// SPDX-License-Identifier: GPL-3.0-or-later
// okada.cc - see okada.h.  Letters are the paper's: xi, eta, q, R, X, I1 to I5; y~ and d~ are
// y_ and d_ here.
#include "okada.h"

#include <cmath>
#include "../projection.h"

namespace swe {
namespace {

// What depends on the fault alone.
struct Fault {
    double sin_dip, cos_dip, medium;
    bool vertical; // the terms with 1 / cos_dip have other forms
};

// A corner's terms of (25) to (27), for slips of 1 but for the factor 1 / 2 pi.
struct Terms {
    double strike[3], dip[3], open[3];
};

struct Integrals {
    double I1, I2, I3, I4, I5;
};

// ln(R + eta), and for R + eta = 0 the paper's replacement: note (iii) after (30).
double log_of(double R, double eta, bool singular)
{
    return singular ? -std::log(R - eta) : std::log(R + eta);
}

Integrals integrals(const Fault &f, double xi, double eta, double q, double R, double y_, double d_,
                    bool singular)
{
    double m = f.medium, s = f.sin_dip, c = f.cos_dip;
    double X = std::sqrt(xi * xi + q * q), log_eta = log_of(R, eta, singular), Rd = R + d_;
    Integrals i{};
    if (f.vertical) {
        i.I5 = -m * xi * s / Rd;
        i.I4 = -m * q / Rd;
        i.I3 = m / 2 * (eta / Rd + y_ * q / (Rd * Rd) - log_eta);
        i.I1 = -m / 2 * xi * q / (Rd * Rd);
    } else {
        // Note (ii): I5 is 0 at xi = 0.
        i.I5 = xi == 0 ? 0
                       : 2 * m / c *
                             std::atan((eta * (X + q * c) + X * (R + X) * s) / (xi * (R + X) * c));
        i.I4 = m / c * (std::log(Rd) - s * log_eta);
        i.I3 = m * (y_ / (c * Rd) - log_eta) + s / c * i.I4;
        i.I1 = -m / c * xi / Rd - s / c * i.I5;
    }
    i.I2 = -m * log_eta - i.I3;
    return i;
}

Terms corner(const Fault &f, double xi, double eta, double q)
{
    double s = f.sin_dip, c = f.cos_dip;
    double y_ = eta * c + q * s, d_ = eta * s - q * c;
    // Not 0 either above the corner of a fault that reaches the surface.
    double R = std::fmax(std::sqrt(xi * xi + eta * eta + q * q), 1e-9);
    bool singular = R + eta <= 1e-12 * R;
    double by_eta = singular ? 0 : 1 / (R * (R + eta));
    double by_xi = R + xi <= 1e-12 * R ? 0 : 1 / (R * (R + xi));
    double angle = q == 0 ? 0 : std::atan(xi * eta / (q * R)); // note (i)
    Integrals i = integrals(f, xi, eta, q, R, y_, d_, singular);
    Terms t;
    t.strike[0] = -(xi * q * by_eta + angle + i.I1 * s);
    t.strike[1] = -(y_ * q * by_eta + q * c * R * by_eta + i.I2 * s);
    t.strike[2] = -(d_ * q * by_eta + q * s * R * by_eta + i.I4 * s);
    t.dip[0] = -(q / R - i.I3 * s * c);
    t.dip[1] = -(y_ * q * by_xi + c * angle - i.I1 * s * c);
    t.dip[2] = -(d_ * q * by_xi + s * angle - i.I5 * s * c);
    t.open[0] = q * q * by_eta - i.I3 * s * s;
    t.open[1] = -d_ * q * by_xi - s * (xi * q * by_eta - angle) - i.I1 * s * s;
    t.open[2] = y_ * q * by_xi + c * (xi * q * by_eta - angle) - i.I5 * s * s;
    return t;
}

} // namespace

Displacement okada(double x, double y, double depth, double dip, double length, double width,
                   const Slip &slip, double medium)
{
    Fault f{std::sin(dip), std::cos(dip), medium, std::fabs(std::cos(dip)) < 1e-6};
    double p = y * f.cos_dip + depth * f.sin_dip, q = y * f.sin_dip - depth * f.cos_dip;
    if (std::fabs(q) < 1e-12 * (std::fabs(y) + depth)) // in the plane of the fault but for rounding
        q = 0;
    double u[3] = {};
    for (int k = 0; k < 4; k++) {
        Terms t = corner(f, k & 1 ? x - length : x, k & 2 ? p - width : p, q);
        double sign = k == 0 || k == 3 ? 1 : -1;
        for (int i = 0; i < 3; i++)
            u[i] +=
                sign * (slip.strike * t.strike[i] + slip.dip * t.dip[i] + slip.open * t.open[i]);
    }
    return {u[0] / (2 * PI), u[1] / (2 * PI), u[2] / (2 * PI)};
}

Displacement displacement(const SubFault &fault, double x, double y)
{
    double strike = fault.strike * PI / 180, dip = fault.dip * PI / 180,
           rake = fault.rake * PI / 180;
    double s = std::sin(strike), c = std::cos(strike);
    double east = x - fault.x, north = y - fault.y;
    double along = east * s + north * c, left = north * s - east * c;
    // From the centre to the corner that the paper's coordinates begin at.
    double half = fault.width / 2;
    Displacement u = okada(along + fault.length / 2, left + half * std::cos(dip),
                           fault.depth + half * std::sin(dip), dip, fault.length, fault.width,
                           {fault.slip * std::cos(rake), fault.slip * std::sin(rake), 0});
    return {u.east * s - u.north * c, u.east * c + u.north * s, u.up};
}

} // namespace swe
