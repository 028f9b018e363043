// SPDX-License-Identifier: GPL-3.0-or-later
// faults.cc - see faults.h.
#include "faults.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include "../../config_keys.h"
#include "../projection.h"

namespace swe {
namespace {

constexpr std::size_t LARGEST_FILE = 4 << 20; // bytes
constexpr std::size_t MOST_FAULTS = 20000;

// What a column's name says: which number of a sub-fault, and its unit.
struct Column {
    const char *name;
    int number; // of FIELDS
    double unit;
    double lowest, highest; // in its unit
};

enum Field { X, Y, DEPTH, STRIKE, DIP, RAKE, SLIP, LENGTH, WIDTH, FIELDS };
const char *const FIELD_NAMES[FIELDS] = {"x_m (or x_km, lon)",
                                         "y_m (or y_km, lat)",
                                         "depth_m (or depth_km)",
                                         "strike",
                                         "dip",
                                         "rake",
                                         "slip_m",
                                         "length_m (or length_km)",
                                         "width_m (or width_km)"};

constexpr Column COLUMNS[] = {
    {"lon", X, 0, -360, 360},         {"lat", Y, 0, -90, 90},
    {"x_m", X, 1, -1e9, 1e9},         {"y_m", Y, 1, -1e9, 1e9},
    {"x_km", X, 1000, -1e6, 1e6},     {"y_km", Y, 1000, -1e6, 1e6},
    {"depth_m", DEPTH, 1, 0, 1e6},    {"depth_km", DEPTH, 1000, 0, 1000},
    {"strike", STRIKE, 1, -360, 360}, {"dip", DIP, 1, 0, 90},
    {"rake", RAKE, 1, -360, 360},     {"slip_m", SLIP, 1, 0, 1000},
    {"length_m", LENGTH, 1, 1, 2e6},  {"length_km", LENGTH, 1000, 1e-3, 2000},
    {"width_m", WIDTH, 1, 1, 1e6},    {"width_km", WIDTH, 1000, 1e-3, 1000},
};

std::vector<std::string_view> words_of(std::string_view line)
{
    constexpr const char *blank = " \t\r,";
    std::vector<std::string_view> words;
    line = line.substr(0, line.find('#'));
    for (std::size_t at = 0; (at = line.find_first_not_of(blank, at)) != line.npos;) {
        std::size_t end = std::min(line.find_first_of(blank, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

class ListReader {
public:
    ListReader(std::string file, const Config &config)
        : file_(std::move(file)), globe_(config), reference_(config.scenario.fault_reference)
    {
    }

    std::vector<SubFault> read(std::string_view text)
    {
        constexpr std::string_view mark = "\xef\xbb\xbf"; // of UTF-8: spreadsheets write it
        if (text.substr(0, mark.size()) == mark)
            text.remove_prefix(mark.size());
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end = std::min(text.find('\n', at), text.size());
            line_++;
            auto words = words_of(text.substr(at, end - at));
            at = end + 1;
            if (words.empty())
                continue;
            if (columns_.empty())
                header(words);
            else
                fault(words);
        }
        if (faults_.empty())
            throw ConfigError(file_ + ": no sub-faults; a line with the names of the columns is "
                                      "needed, and a line for each sub-fault");
        return std::move(faults_);
    }

private:
    std::string file_;
    Projection globe_;
    FaultReference reference_;
    std::size_t line_ = 0;
    std::vector<const Column *> columns_;
    std::vector<SubFault> faults_;

    [[noreturn]] void fail(const std::string &what) const
    {
        throw ConfigError(file_ + ':' + std::to_string(line_) + ": " + what);
    }

    void header(const std::vector<std::string_view> &words)
    {
        bool given[FIELDS] = {};
        for (std::string_view word : words) {
            auto column = std::find_if(std::begin(COLUMNS), std::end(COLUMNS),
                                       [word](const Column &c) { return word == c.name; });
            if (column == std::end(COLUMNS))
                fail("\"" + printable(word) + "\": no such column; there are " + all_columns());
            if (given[column->number])
                fail("\"" + printable(word) + "\": the list has this column already");
            given[column->number] = true;
            columns_.push_back(column);
        }
        for (int i = 0; i < FIELDS; i++)
            if (!given[i])
                fail(std::string("no column ") + FIELD_NAMES[i]);
        if (degrees(X) != degrees(Y))
            fail("lon and lat belong together");
    }

    static std::string all_columns()
    {
        std::string names;
        for (const Column &c : COLUMNS)
            names += (names.empty() ? "" : " ") + std::string(c.name);
        return names;
    }

    bool degrees(int field) const
    {
        return std::any_of(columns_.begin(), columns_.end(),
                           [field](const Column *c) { return c->number == field && c->unit == 0; });
    }

    double number(std::string_view word, const Column &column) const
    {
        double value = 0;
        auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (problem != std::errc() || end != word.data() + word.size() ||
            !(value >= column.lowest && value <= column.highest))
            fail(std::string(column.name) + " = " + printable(word) + ": must be a number from " +
                 toml_number(column.lowest) + " to " + toml_number(column.highest));
        return column.unit > 0 ? value * column.unit : value;
    }

    void fault(const std::vector<std::string_view> &words)
    {
        if (words.size() != columns_.size())
            fail(std::to_string(words.size()) + " numbers; must be " +
                 std::to_string(columns_.size()) + ", one a column");
        if (faults_.size() == MOST_FAULTS)
            fail("more than " + std::to_string(MOST_FAULTS) + " sub-faults");
        double v[FIELDS];
        for (std::size_t i = 0; i < words.size(); i++)
            v[columns_[i]->number] = number(words[i], *columns_[i]);
        if (degrees(X)) {
            v[X] = globe_.x(v[X]);
            v[Y] = globe_.y(v[Y]);
        }
        double top = v[DEPTH] - v[WIDTH] / 2 * std::sin(v[DIP] * PI / 180);
        if (reference_ == FaultReference::CENTRE && top < 0)
            fail("the upper edge would be " + toml_number(-top) +
                 " m over the surface; depth is that of the centre, unless "
                 "scenario.fault_reference says otherwise");
        faults_.push_back(from_reference(
            {v[X], v[Y], v[DEPTH], v[STRIKE], v[DIP], v[RAKE], v[SLIP], v[LENGTH], v[WIDTH]},
            reference_));
    }
};

} // namespace

SubFault from_reference(SubFault f, FaultReference reference)
{
    if (reference == FaultReference::CENTRE)
        return f;
    double s = std::sin(f.strike * PI / 180), c = std::cos(f.strike * PI / 180);
    double along = reference == FaultReference::TOP_CORNER ? f.length / 2 : 0;
    double right = f.width / 2 * std::cos(f.dip * PI / 180); // the plane dips to there
    f.x += along * s + right * c;
    f.y += along * c - right * s;
    f.depth += f.width / 2 * std::sin(f.dip * PI / 180);
    return f;
}

std::vector<SubFault> parse_faults(std::string_view text, const std::string &file,
                                   const Config &config)
{
    return ListReader(file, config).read(text);
}

std::vector<SubFault> read_faults(const std::string &file, const Config &config)
{
    std::ifstream in(file, std::ios::binary);
    std::string text(LARGEST_FILE + 1, '\0');
    if (!in || !in.read(text.data(), 0))
        throw ConfigError(file + ": " + std::strerror(errno));
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > LARGEST_FILE)
        throw ConfigError(file + ": longer than " + std::to_string(LARGEST_FILE) + " bytes");
    return parse_faults(text, file, config);
}

// 500 km of a trench that runs 20 degrees east of north, 200 km down a dip of 12 degrees; slip
// most near the trench and in the middle.
std::vector<SubFault> synthetic_faults(const Config &config)
{
    constexpr int along = 10, down = 5;
    constexpr double length = 50e3, width = 40e3, strike = 200, dip = 12, top = 5e3, most = 40;
    constexpr double taper[down] = {1, 0.9, 0.6, 0.3, 0.1};
    Projection centre(config);
    double s = std::sin(strike * PI / 180), c = std::cos(strike * PI / 180);
    std::vector<SubFault> faults;
    for (int i = 0; i < along; i++) {
        for (int j = 0; j < down; j++) {
            double part = (2 * i + 1 - along) / double(along), a = part * along / 2 * length;
            // Down the dip is to the right of the strike; the trench passes 65 km east of the
            // centre.
            double r = (j + 0.5) * width * std::cos(dip * PI / 180);
            double slip = most * (1 - part * part) * (1 - part * part) * taper[j];
            faults.push_back({centre.x0 + 65e3 + a * s + r * c, centre.y0 + a * c - r * s,
                              top + (j + 0.5) * width * std::sin(dip * PI / 180), strike, dip, 90,
                              slip, length, width});
        }
    }
    return faults;
}

double magnitude(const std::vector<SubFault> &faults)
{
    double moment = 0; // N m
    for (const SubFault &f : faults)
        moment += 40e9 * f.slip * f.length * f.width;
    return moment > 0 ? (std::log10(moment) - 9.1) / 1.5 : -INFINITY;
}

} // namespace swe
