// SPDX-License-Identifier: GPL-3.0-or-later
// tsunami.cc - an earthquake under the sea.  The bed moves by Okada's model (okada.h), at once, and
// the water over it with it: at time 0 the surface has the bed's displacement.  Bathymetry is from
// a file, or the synthetic basin.
#include <cmath>
#include "basin.h"
#include "bathymetry.h"
#include "faults.h"
#include "scenarios.h"

namespace swe {
namespace {

class Tsunami : public Scenario {
public:
    explicit Tsunami(const Config &c)
        : basin_(c), uplift_(c.scenario.faults.empty() ? synthetic_faults(c)
                                                       : read_faults(c.scenario.faults, c),
                             c)
    {
        if (!c.scenario.bathymetry.empty())
            survey_ = std::make_unique<Bathymetry>(c.scenario.bathymetry, c);
    }

    double bed(double x, double y) const override
    {
        return (survey_ ? survey_->at(x, y) : basin_.at(x, y)) + uplift_.at(x, y);
    }
    double rest() const override { return 0; }
    Water water(double x, double y, double bed, double) const override
    {
        return {std::fmax(0, uplift_.at(x, y) - bed), 0, 0};
    }

private:
    Basin basin_;
    std::unique_ptr<Bathymetry> survey_;
    Uplift uplift_;
};

} // namespace

std::unique_ptr<Scenario> make_tsunami(const Config &c) { return std::make_unique<Tsunami>(c); }

} // namespace swe
