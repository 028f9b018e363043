// SPDX-License-Identifier: GPL-3.0-or-later
// dam_break.cc - a dam vanishes at time 0, over a flat bed.
//
// Radial: a cylinder of higher water; off the domain's centre it loads the ranks unequally. Planar:
// higher water to the west of a straight dam, with the exact solution for all times: Stoker's
// (Water Waves, 1957, §10.8) over water, Ritter's (Z. Ver. Dtsch. Ing. 36, 1892) over dry
// ground.  It is that of an endless plain: good until a wave meets an end of the domain.
// The water at rest is `depth` deep, the surface at height 0; behind the dam it is `inside` higher.
#include <cmath>
#include "scenarios.h"

namespace swe {
namespace {

class RadialDam : public Scenario {
public:
    explicit RadialDam(const Config &c)
        : depth_(c.scenario.depth), inside_(c.scenario.inside), x_(x_in_metres(c)),
          y_(y_in_metres(c)), radius_(radius_in_metres(c))
    {
    }

    double bed(double, double) const override { return -depth_; }
    double rest() const override { return 0; }
    Water water(double x, double y, double bed, double) const override
    {
        double dx = x - x_, dy = y - y_;
        bool behind = dx * dx + dy * dy < radius_ * radius_;
        return {std::fmax(0, (behind ? inside_ : 0) - bed), 0, 0};
    }

private:
    double depth_, inside_, x_, y_, radius_;
};

class PlanarDam : public Scenario {
public:
    explicit PlanarDam(const Config &c)
        : depth_(c.scenario.depth), gravity_(c.solver.gravity), x_(x_in_metres(c)),
          left_(c.scenario.depth + c.scenario.inside)
    {
        if (depth_ > 0 && left_ > depth_)
            find_bore();
    }

    double bed(double, double) const override { return -depth_; }
    double rest() const override { return 0; }
    bool has_solution() const override { return true; }
    Water water(double x, double, double, double time) const override
    {
        if (time <= 0)
            return {x < x_ ? left_ : depth_, 0, 0};
        return at((x - x_) / time);
    }

private:
    double depth_, gravity_, x_, left_;        // depths to the right and to the left of the dam
    double middle_ = 0, speed_ = 0, bore_ = 0; // between the waves; velocity of the bore

    // Behind the bore, by the jump conditions into still water.
    double velocity_behind_bore(double h) const
    {
        return (h - depth_) * std::sqrt(gravity_ / 2 * (h + depth_) / (h * depth_));
    }
    // Behind the rarefaction: u + 2 sqrt(g h) is the same all along it.
    double velocity_behind_rarefaction(double h) const
    {
        return 2 * (std::sqrt(gravity_ * left_) - std::sqrt(gravity_ * h));
    }

    // One velocity rises with the depth and the other falls: halve until numbers are used up.
    void find_bore()
    {
        double low = depth_, high = left_;
        for (int i = 0; i < 200; i++) {
            middle_ = (low + high) / 2;
            bool deep = velocity_behind_bore(middle_) > velocity_behind_rarefaction(middle_);
            (deep ? high : low) = middle_;
        }
        speed_ = velocity_behind_rarefaction(middle_);
        bore_ =
            middle_ > depth_ ? middle_ * speed_ / (middle_ - depth_) : std::sqrt(gravity_ * depth_);
    }

    // All is the same along s = (x - dam) / time.
    Water at(double s) const
    {
        double c = std::sqrt(gravity_ * left_);
        if (s <= -c)
            return {left_, 0, 0};
        if (middle_ > 0 && s >= speed_ - std::sqrt(gravity_ * middle_))
            return s < bore_ ? Water{middle_, middle_ * speed_, 0} : Water{depth_, 0, 0};
        if (s >= 2 * c || left_ <= depth_) // beyond the tip, or no dam
            return {depth_, 0, 0};
        double h = (2 * c - s) * (2 * c - s) / (9 * gravity_);
        return {h, h * 2 * (c + s) / 3, 0};
    }
};

} // namespace

std::unique_ptr<Scenario> make_dam_break(const Config &c)
{
    if (c.scenario.planar)
        return std::make_unique<PlanarDam>(c);
    return std::make_unique<RadialDam>(c);
}

} // namespace swe
