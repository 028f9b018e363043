// SPDX-License-Identifier: GPL-3.0-or-later
// beach.cc - a solitary wave runs up a plane beach.
//
// Synolakis 1987, doi 10.1017/S002211208700329X, §2: water of depth d to the west, from x on a
// beach of constant slope to the east.  The wave, H sech2(g (x - X1)) with g = sqrt(3H / 4d) / d,
// starts half its length (to a twentieth of its height) before the beach and moves at sqrt(g / d)
// times the surface.  Waves that do not break run up to 2.831 d sqrt(1 / slope) (H / d)^(5/4)
// (his 3.7).
#include <cmath>
#include <cstdio>
#include "scenarios.h"

namespace swe {
namespace {

class Beach : public Scenario {
public:
    explicit Beach(const Config &c)
        : depth_(c.scenario.depth), slope_(c.scenario.slope), height_(c.scenario.amplitude),
          foot_(x_in_metres(c)), steepness_(std::sqrt(0.75 * height_ / depth_) / depth_),
          crest_(foot_ - std::acosh(std::sqrt(20.0)) / steepness_),
          velocity_(std::sqrt(c.solver.gravity / depth_))
    {
        if (crest_ < c.domain.x0)
            refuse(c);
    }

    double bed(double x, double) const override
    {
        return x < foot_ ? -depth_ : slope_ * (x - foot_) - depth_;
    }
    double rest() const override { return 0; }
    Water water(double x, double, double bed, double) const override
    {
        double part = 1 / std::cosh(steepness_ * (x - crest_));
        double surface = height_ * part * part;
        double h = std::fmax(0, surface - bed);
        return {h, h * velocity_ * surface, 0};
    }

private:
    double depth_, slope_, height_, foot_, steepness_, crest_, velocity_;

    [[noreturn]] void refuse(const Config &c) const
    {
        const double room = foot_ - crest_;
        char text[200];
        if (room < c.width())
            std::snprintf(
                text, sizeof text,
                " = %.6g: the wave would begin at x = %.6g m, west of the domain; must be "
                "from %.4g to 1, or the wave higher or the domain wider",
                c.scenario.x, crest_, std::ceil(1e4 * room / c.width()) / 1e4);
        else
            std::snprintf(
                text, sizeof text,
                ": the wave has no room: the domain must be more than %.4g m wide, or the "
                "wave higher",
                room);
        throw ConfigError(c.file + ": scenario.x" + text);
    }
};

} // namespace

std::unique_ptr<Scenario> make_beach(const Config &c) { return std::make_unique<Beach>(c); }

} // namespace swe
