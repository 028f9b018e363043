// SPDX-License-Identifier: GPL-3.0-or-later
// lake.cc - still water over a random bed with islands.  It stays still: whatever moves is an
// error of the method.  The bed is smooth, and rough as well when slope_bed is not 0: hills of
// that height and of 1/256 of the domain's shorter side.
#include <cmath>
#include "noise.h"
#include "scenarios.h"

namespace swe {
namespace {

class Lake : public Scenario {
public:
    explicit Lake(const Config &c)
        : x0_(c.domain.x0), y0_(c.domain.y0), side_(std::fmin(c.width(), c.height())),
          wide_(c.width() / side_), high_(c.height() / side_), depth_(c.scenario.depth),
          roughness_(c.scenario.slope_bed), noise_(c.scenario.seed)
    {
    }

    double bed(double x, double y) const override
    {
        double px = (x - x0_) / side_, py = (y - y0_) / side_;
        double height = depth_ * (0.35 * noise_.rough(4 * px, 4 * py, 3) - 1);
        for (int i = 0; i < ISLANDS; i++)
            height += island(i, px, py);
        if (roughness_ > 0)
            height += roughness_ * noise_(256 * px + 0.5, 256 * py + 0.5);
        return height;
    }
    double rest() const override { return 0; }
    bool has_solution() const override { return true; }
    Water water(double, double, double bed, double) const override
    {
        return {std::fmax(0, -bed), 0, 0};
    }

private:
    static constexpr int ISLANDS = 3;
    double x0_, y0_, side_, wide_, high_, depth_, roughness_;
    Noise noise_;

    // A hill with a top over the surface, whatever the noise is there.
    double island(int i, double px, double py) const
    {
        double x = wide_ * (0.5 + 0.35 * noise_.at(-100 - i, 0));
        double y = high_ * (0.5 + 0.35 * noise_.at(-100 - i, 1));
        double radius = 0.12 + 0.04 * noise_.at(-100 - i, 2);
        double r = ((px - x) * (px - x) + (py - y) * (py - y)) / (radius * radius);
        return r < 1 ? 2 * depth_ * (1 - r) * (1 - r) : 0;
    }
};

} // namespace

std::unique_ptr<Scenario> make_lake(const Config &c) { return std::make_unique<Lake>(c); }

} // namespace swe
