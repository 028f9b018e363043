// SPDX-License-Identifier: GPL-3.0-or-later
// gauges.cc - see gauges.h.
#include "gauges.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <unistd.h>
#include "../config_keys.h"
#include "projection.h"

namespace swe {
namespace {

constexpr const char *HEADER = "time,eta,h,hu,hv\n";
const long HEADER_LENGTH = static_cast<long>(std::strlen(HEADER));

using File = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

[[noreturn]] void fail(const std::string &file, const char *what)
{
    throw std::runtime_error(file + ": cannot " + what + ": " + std::strerror(errno));
}

// But for what a map's degrees are rounded by.
bool is_elsewhere(const Config &config, const Gauge &a, const Gauge &b)
{
    const double far = 1e-9 * config.domain.square;
    return std::fabs(a.x - b.x) > far || std::fabs(a.y - b.y) > far;
}

// As users may have said it.
std::string place_of(const Config &config, const Gauge &gauge)
{
    std::string text = "x = " + toml_number(gauge.x) + ", y = " + toml_number(gauge.y);
    if (config.name != "tsunami")
        return text;
    char degrees[80];
    const Projection globe(config);
    std::snprintf(degrees, sizeof degrees, " (lon = %.10g, lat = %.10g)", globe.lon(gauge.x),
                  globe.lat(gauge.y));
    return text + degrees;
}

// Time of a row; no number if the row is not whole.
double time_of(const std::string &row)
{
    double time;
    auto [end, problem] = std::from_chars(row.data(), row.data() + row.size(), time);
    bool whole = problem == std::errc() && *end == ',' && row.back() == '\n';
    return whole ? time : NAN;
}

std::string next_row(std::FILE *file)
{
    std::string row;
    for (int c; (c = std::getc(file)) != EOF;) {
        row += static_cast<char>(c);
        if (c == '\n')
            break;
    }
    return row;
}

// Where the rows before `time` end; 0 if there are none, not even of a header; -1 if this is no
// file of ours.
long kept(std::FILE *file, double time)
{
    std::string row = next_row(file);
    if (row.empty())
        return 0;
    if (row != HEADER)
        return -1;
    long end = std::ftell(file);
    while (!(row = next_row(file)).empty() && time_of(row) < time)
        end = std::ftell(file);
    return end;
}

// The same, but for a file that is not ours it throws.
long end_of_rows(std::FILE *file, const std::string &name, double time)
{
    const long end = kept(file, time);
    if (end < 0)
        throw std::runtime_error(name + ": not the rows of a gauge: the first line must be " +
                                 std::string(HEADER, HEADER_LENGTH - 1));
    return end;
}

// Where gauges were, by name.
std::map<std::string, Gauge> gauges_of(const std::string &written)
{
    std::map<std::string, Gauge> gauges;
    std::istringstream lines(written);
    Gauge one;
    while (lines >> one.name >> one.x >> one.y)
        gauges[one.name] = one;
    return gauges;
}

} // namespace

std::string gauge_file(const Config &config, const Gauge &gauge)
{
    return (std::filesystem::path(config.output.directory) / ("gauge-" + gauge.name + ".csv"))
        .string();
}

Lattice gauge_point(const Config &config, const Gauge &gauge)
{
    auto units = [&config](double from, double to, int squares) {
        auto n = static_cast<std::int64_t>(
            std::floor((to - from) / config.domain.square * double(LATTICE_UNIT)));
        return std::min(std::max<std::int64_t>(n, 0), squares * LATTICE_UNIT - 1);
    };
    return {units(config.domain.x0, gauge.x, config.domain.nx),
            units(config.domain.y0, gauge.y, config.domain.ny)};
}

std::string describe_gauges(const Config &config)
{
    std::string text;
    for (const Gauge &gauge : config.gauges)
        text += gauge.name + ' ' + toml_number(gauge.x) + ' ' + toml_number(gauge.y) + '\n';
    return text;
}

void check_gauges(const Config &config, const std::string &written, double time)
{
    const auto former = gauges_of(written);
    for (const Gauge &gauge : config.gauges) {
        const std::string name = gauge_file(config, gauge);
        const File file(std::fopen(name.c_str(), "r+"), std::fclose);
        if (!file && errno == ENOENT)
            continue;
        if (!file)
            fail(name, "write");
        if (end_of_rows(file.get(), name, time) <= HEADER_LENGTH)
            continue;
        const auto before = former.find(gauge.name);
        if (before == former.end())
            throw ConfigError(config.file + ": gauge " + gauge.name + ": of the rows of " + name +
                              " the checkpoint knows nothing: they are of another simulation, or "
                              "end long before it, or it is of an earlier version: give the gauge "
                              "another name, or move the file away");
        if (is_elsewhere(config, gauge, before->second))
            throw ConfigError(config.file + ": gauge " + gauge.name + " is at " +
                              place_of(config, gauge) + " now, and the rows of " + name +
                              " are of " + place_of(config, before->second) +
                              ": give it another name, set its place as it was, or move the "
                              "file away");
    }
}

bool is_gauge_file(const std::string &path)
{
    const File file(std::fopen(path.c_str(), "r"), std::fclose);
    return file && next_row(file.get()) == HEADER;
}

GaugeWriter::GaugeWriter(const Config &config)
{
    try {
        for (const Gauge &gauge : config.gauges)
            create(gauge_file(config, gauge));
    } catch (...) {
        close();
        throw;
    }
}

GaugeWriter::GaugeWriter(const Config &config, double restart_time)
{
    try {
        for (const Gauge &gauge : config.gauges)
            reopen(gauge_file(config, gauge), restart_time);
    } catch (...) {
        close();
        throw;
    }
}

GaugeWriter::~GaugeWriter() { close(); }

void GaugeWriter::close()
{
    for (Open &o : open_)
        std::fclose(o.file);
    open_.clear();
}

void GaugeWriter::create(const std::string &name)
{
    std::FILE *file = std::fopen(name.c_str(), "w");
    if (!file)
        fail(name, "write");
    open_.push_back({name, file});
    begin(open_.back());
}

// A file that has its header is known for a gauge's, also if the run is killed.
void GaugeWriter::begin(const Open &of)
{
    if (std::fputs(HEADER, of.file) < 0 || std::fflush(of.file))
        fail(of.name, "write");
}

void GaugeWriter::reopen(const std::string &name, double time)
{
    std::FILE *file = std::fopen(name.c_str(), "r+");
    if (!file && errno == ENOENT)
        return create(name); // a gauge that is new
    if (!file)
        fail(name, "write");
    open_.push_back({name, file});
    const long end = end_of_rows(file, name, time);
    if (std::fseek(file, end, SEEK_SET) || ftruncate(fileno(file), end))
        fail(name, "take rows away");
    if (end == 0)
        begin(open_.back());
}

void GaugeWriter::append(std::size_t gauge, double time, const Water &water, double bed)
{
    Open &o = open_.at(gauge);
    if (std::fprintf(o.file, "%.17g,%.17g,%.17g,%.17g,%.17g\n", time, water.h + bed, water.h,
                     water.hu, water.hv) < 0)
        fail(o.name, "write");
}

void GaugeWriter::flush()
{
    for (Open &o : open_)
        if (std::fflush(o.file) || std::ferror(o.file))
            fail(o.name, "write");
}

} // namespace swe
