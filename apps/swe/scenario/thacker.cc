// SPDX-License-Identifier: GPL-3.0-or-later
// thacker.cc - water swings in a basin that is a paraboloid of revolution; its shore moves.
//
// Thacker 1981, doi 10.1017/S0022112081001882, without rotation: a curved surface that rises
// and falls at the centre, or (`planar`) a tilted plane that goes round.  Both repeat for ever.
// Basin: bed = -D (1 - r2/a2), D = depth, a = radius.  Amplitude A is a part of 1: curved, the
// paper's A of 0 < A < 1; planar, the distance of the water's centre from the basin's, over a.
#include <cmath>
#include "scenarios.h"

namespace swe {
namespace {

class Thacker : public Scenario {
public:
    explicit Thacker(const Config &c)
        : planar_(c.scenario.planar), x_(x_in_metres(c)), y_(y_in_metres(c)),
          radius_(radius_in_metres(c)), depth_(c.scenario.depth), amplitude_(c.scenario.amplitude),
          frequency_(std::sqrt((planar_ ? 2 : 8) * c.solver.gravity * depth_) / radius_)
    {
    }

    double bed(double x, double y) const override
    {
        double px = (x - x_) / radius_, py = (y - y_) / radius_;
        return -depth_ * (1 - px * px - py * py);
    }
    double rest() const override { return 0; }
    bool has_solution() const override { return true; }
    Water water(double x, double y, double bed, double time) const override
    {
        double px = (x - x_) / radius_, py = (y - y_) / radius_;
        return planar_ ? plane(px, py, bed, frequency_ * time)
                       : curved(px, py, bed, frequency_ * time);
    }

private:
    bool planar_;
    double x_, y_, radius_, depth_, amplitude_, frequency_;

    Water curved(double px, double py, double bed, double phase) const
    {
        double a = amplitude_, now = 1 - a * std::cos(phase), r2 = px * px + py * py;
        double surface =
            depth_ * (std::sqrt(1 - a * a) / now - 1 - r2 * ((1 - a * a) / (now * now) - 1));
        double h = std::fmax(0, surface - bed);
        double outwards = h * frequency_ * radius_ * a * std::sin(phase) / (2 * now);
        return {h, outwards * px, outwards * py};
    }

    Water plane(double px, double py, double bed, double phase) const
    {
        double a = amplitude_, c = std::cos(phase), s = std::sin(phase);
        double surface = a * depth_ * (2 * px * c + 2 * py * s - a);
        double h = std::fmax(0, surface - bed);
        double speed = a * frequency_ * radius_;
        return {h, -h * speed * s, h * speed * c};
    }
};

} // namespace

std::unique_ptr<Scenario> make_thacker(const Config &c) { return std::make_unique<Thacker>(c); }

} // namespace swe
