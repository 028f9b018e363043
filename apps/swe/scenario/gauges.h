// SPDX-License-Identifier: GPL-3.0-or-later
// gauges.h - the water at chosen places over time, as text: gauge-NAME.csv with the columns
// time (s), eta (height of the surface, m; of the bed where it is dry), h (m), hu, hv (m2/s).
#ifndef SWE_SCENARIO_GAUGES_H
#define SWE_SCENARIO_GAUGES_H

#include <cstdio>
#include <string>
#include <vector>
#include "../config.h"
#include "../grid/triangle.h"
#include "scenario.h"

namespace swe {

// The lattice point at or next south-west of a gauge, counted from the domain's corner: the cell
// that contains() it is the gauge's.
Lattice gauge_point(const Config &config, const Gauge &gauge);

// Names and places, a line each: what a checkpoint keeps of them.  A file of rows has no room for
// what it is of: it is gone on with if the checkpoint says that its run wrote it.
std::string describe_gauges(const Config &config);

// The file of a gauge.
std::string gauge_file(const Config &config, const Gauge &gauge);

// Throws ConfigError if a gauge has rows in output.directory before `time`, and was at another
// place when a checkpoint of that time was written, or not there: its file would have the water of
// two places or simulations, or a gap.  `written`: what the checkpoint kept.  Throws
// std::runtime_error if a file has no rows of a gauge, or may not be written.  Changes nothing.
void check_gauges(const Config &config, const std::string &written, double time);

// Is this a file of ours?
bool is_gauge_file(const std::string &path);

// The files of all gauges, of one process.  Errors are std::runtime_error with file and reason.
class GaugeWriter {
public:
    // New files in output.directory, which must be there.
    explicit GaugeWriter(const Config &config);
    // Goes on after a checkpoint: rows of its time and later, and a row that was cut off, are taken
    // away.  The next row is of this time.
    GaugeWriter(const Config &config, double restart_time);
    ~GaugeWriter();
    GaugeWriter(const GaugeWriter &) = delete;
    GaugeWriter &operator=(const GaugeWriter &) = delete;

    // A row for gauge number `gauge` of config.gauges.  Times of a gauge must rise.
    void append(std::size_t gauge, double time, const Water &water, double bed);

    // All rows to the files: to be called before a checkpoint is written, and at the end, where a
    // full disk shows.
    void flush();

private:
    struct Open {
        std::string name;
        std::FILE *file;
    };
    std::vector<Open> open_;

    void create(const std::string &name);
    static void begin(const Open &of);
    void reopen(const std::string &name, double time);
    void close();
};

} // namespace swe
#endif
