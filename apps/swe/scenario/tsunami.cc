// SPDX-License-Identifier: GPL-3.0-or-later
// tsunami.cc - an earthquake under the sea.  The bed moves by Okada's model (okada.h), at once, and
// the water over it with it: at time 0 the surface has the bed's displacement.  Bathymetry is from
// a file, or the synthetic basin.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <zlib.h>
#include "basin.h"
#include "bed/bathymetry.h"
#include "faults/faults.h"
#include "scenarios.h"
#include "faults/uplift.h"

namespace swe {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char *text, ...)
{
    char line[1000];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    return line;
}

class Tsunami : public Scenario {
public:
    explicit Tsunami(const Config &c)
        : config_(c), basin_(c),
          faults_(c.scenario.faults.empty() ? synthetic_faults(c)
                                            : read_faults(c.scenario.faults, c)),
          uplift_(faults_, c)
    {
        if (!c.scenario.bathymetry.empty())
            survey_ = std::make_unique<Bathymetry>(c.scenario.bathymetry, c);
    }

    double bed(double x, double y) const override
    {
        return (survey_ ? survey_->at(x, y) : basin_.at(x, y)) + uplift_.at(x, y);
    }
    double spacing() const override { return survey_ ? survey_->spacing() : 0; }
    double rest() const override { return 0; }
    Water water(double x, double y, double bed, double) const override
    {
        return {std::fmax(0, uplift_.at(x, y) - bed), 0, 0};
    }

    std::string inputs() const override
    {
        static_assert(sizeof(SubFault) == 9 * sizeof(double), "no bytes between numbers");
        uLong crc = crc32_z(0, reinterpret_cast<const unsigned char *>(faults_.data()),
                            faults_.size() * sizeof(SubFault));
        return format("sub-faults = %zu with CRC %08lx\n", faults_.size(), crc) +
               (survey_ ? format("bathymetry = %zu x %zu points with CRC %08x\n",
                                 survey_->columns(), survey_->rows(), survey_->crc())
                        : "");
    }

    std::vector<std::string> summary() const override
    {
        const auto &s = config_.scenario;
        auto [lowest, highest] = range_of_bed();
        std::string earthquake =
            format("earthquake: %zu sub-faults of %s, magnitude %.2f; the bed moves by %.3g to "
                   "%.3g m",
                   faults_.size(), s.faults.empty() ? "the synthetic list" : s.faults.c_str(),
                   magnitude(faults_), uplift_.lowest(), uplift_.highest());
        std::string bed =
            survey_ ? format("bathymetry: %s, of which %zu x %zu points, %.6g to %.6g "
                             "degrees east, %.6g to %.6g north",
                             s.bathymetry.c_str(), survey_->columns(), survey_->rows(),
                             survey_->west(), survey_->east(), survey_->south(), survey_->north())
                    : "bathymetry: the synthetic basin";
        std::vector<std::string> lines = {
            earthquake, bed + format("; heights about %.5g to %.5g m", lowest, highest), map()};
        if (!uplift_.is_under_domain())
            lines.insert(lines.begin() + 1,
                         "earthquake: no sub-fault is in the domain: is the list "
                         "of this part of the Earth?");
        return lines;
    }

private:
    Config config_;
    Basin basin_;
    std::vector<SubFault> faults_;
    Uplift uplift_;
    std::unique_ptr<Bathymetry> survey_;

    // At as many places as there are in a picture.
    std::pair<double, double> range_of_bed() const
    {
        constexpr int n = 256;
        const auto &d = config_.domain;
        std::pair<double, double> range(INFINITY, -INFINITY);
        for (int k = 0; k < n * n; k++) {
            double at = bed(d.x0 + (k % n + 0.5) / n * config_.width(),
                            d.y0 + (k / n + 0.5) / n * config_.height());
            range = {std::min(range.first, at), std::max(range.second, at)};
        }
        return range;
    }

    std::string map() const
    {
        Projection globe(config_);
        double south = config_.domain.y0, north = south + config_.height();
        return format("map: %.5g to %.5g degrees east, %.5g to %.5g north; lengths from west to "
                      "east are %+.0f %% in the south and %+.0f %% in the north",
                      globe.lon(config_.domain.x0), globe.lon(config_.domain.x0 + config_.width()),
                      globe.lat(south), globe.lat(north), 100 * globe.stretch(south),
                      100 * globe.stretch(north));
    }
};

} // namespace

std::unique_ptr<Scenario> make_tsunami(const Config &c) { return std::make_unique<Tsunami>(c); }

} // namespace swe
