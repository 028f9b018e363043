// SPDX-License-Identifier: GPL-3.0-or-later
// bathymetry.cc - see bathymetry.h.  A file is taken for hostile: every size is looked at before
// memory is asked for, every number before it is used.
#include "bathymetry.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <netcdf.h>
#include <zlib.h>
#include "netcdf_header.h"

namespace swe {
namespace {

constexpr std::size_t LONGEST_AXIS = 1 << 18;      // points; GEBCO's 15 seconds have 86400
constexpr std::size_t MOST_POINTS = 1 << 27;       // of the part that is read: 512 MiB
constexpr std::size_t AT_ONCE = 1 << 22;           // points that are read in one call
constexpr std::size_t LONGEST_WORD = 256;          // of an attribute
constexpr double LOWEST = -12000, HIGHEST = 10000; // m; nothing on Earth is beyond

std::string number(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

// A NetCDF file of others, in which nothing is as it must be until it was looked at.  Errors are
// ConfigErrors, with file and variable.
class ForeignFile {
public:
    explicit ForeignFile(const std::string &name) : name_(name)
    {
        if (std::string problem = netcdf_problem(name); !problem.empty())
            fail("", problem);
        check(nc_open(name.c_str(), NC_NOWRITE, &id_), "");
    }
    ~ForeignFile() { nc_close(id_); }
    ForeignFile(const ForeignFile &) = delete;
    ForeignFile &operator=(const ForeignFile &) = delete;

    int id() const { return id_; }

    [[noreturn]] void fail(const std::string &variable, const std::string &what) const
    {
        throw ConfigError(name_ + (variable.empty() ? "" : ": variable " + variable) + ": " + what);
    }
    void check(int status, const std::string &variable) const
    {
        if (status != NC_NOERR)
            fail(variable, std::string("NetCDF: ") + nc_strerror(status));
    }

    // The variable of that name, or -1.
    int find(const std::string &variable) const
    {
        int v = -1;
        return nc_inq_varid(id_, variable.c_str(), &v) == NC_NOERR ? v : -1;
    }

    nc_type type_of(int v, const std::string &variable) const
    {
        nc_type type = NC_NAT;
        check(nc_inq_vartype(id_, v, &type), variable);
        return type;
    }

    void must_be_numeric(int v, const std::string &variable) const
    {
        const nc_type type = type_of(v, variable);
        if (type == NC_CHAR || type < NC_BYTE || type > NC_UINT64)
            fail(variable, "must have numbers, of any type");
    }

    // A numeric attribute of that many numbers; none if there is no such attribute.
    std::vector<double> numbers(int v, const std::string &variable, const char *name,
                                std::size_t count) const
    {
        nc_type type = NC_NAT;
        std::size_t length = 0;
        if (nc_inq_att(id_, v, name, &type, &length) != NC_NOERR)
            return {};
        std::vector<double> values(count, NAN);
        if (length != count || type == NC_CHAR ||
            nc_get_att_double(id_, v, name, values.data()) != NC_NOERR)
            fail(variable, std::string("attribute ") + name + " must be " +
                               (count == 1 ? "one number" : std::to_string(count) + " numbers"));
        return values;
    }

    // A numeric attribute of one number; `otherwise` if there is none.
    double attribute(int v, const std::string &variable, const char *name, double otherwise) const
    {
        auto values = numbers(v, variable, name, 1);
        return values.empty() ? otherwise : values[0];
    }

    // An attribute of text, in small letters; empty if there is none.
    std::string word(int v, const std::string &variable, const char *name) const
    {
        nc_type type = NC_NAT;
        std::size_t length = 0;
        std::string text;
        if (nc_inq_att(id_, v, name, &type, &length) != NC_NOERR)
            return text;
        if (type == NC_CHAR && length <= LONGEST_WORD) {
            text.resize(length);
            check(nc_get_att_text(id_, v, name, text.data()), variable);
        } else if (type == NC_STRING && length == 1) {
            char *given = nullptr;
            check(nc_get_att_string(id_, v, name, &given), variable);
            text = given ? given : "";
            nc_free_string(1, &given);
        } else {
            fail(variable, std::string("attribute ") + name + " must be a word");
        }
        return plain(text);
    }

private:
    std::string name_;
    int id_ = -1;

    // Without the blanks and zeros that some programs put behind it; fit to be printed.
    static std::string plain(std::string text)
    {
        text.resize(std::min(text.find_last_not_of(std::string(" \t\n\0", 4)) + 1, LONGEST_WORD));
        for (char &c : text)
            c = static_cast<unsigned char>(c) < 32 || c == 127
                    ? '?'
                    : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return text;
    }
};

struct Axis {
    std::string name;
    std::vector<double> degrees; // as in the file
};

bool any_of(const std::string &word, std::initializer_list<const char *> words)
{
    return std::any_of(words.begin(), words.end(), [&word](const char *w) { return word == w; });
}

// The coordinate variable of a dimension.
Axis read_axis(const ForeignFile &file, int dimension)
{
    char name[NC_MAX_NAME + 1] = "";
    std::size_t length = 0;
    file.check(nc_inq_dim(file.id(), dimension, name, &length), "");
    Axis axis{name, {}};
    if (length < 2 || length > LONGEST_AXIS)
        file.fail("", "dimension " + axis.name + " is " + std::to_string(length) +
                          " long; must be from 2 to " + std::to_string(LONGEST_AXIS));
    int v = file.find(name), dimensions = 0, its = -1;
    if (v < 0)
        file.fail("", "no variable " + axis.name + " with the coordinates of its dimension");
    file.must_be_numeric(v, name);
    file.check(nc_inq_varndims(file.id(), v, &dimensions), name);
    if (dimensions != 1)
        file.fail(name, "must have one dimension, and has " + std::to_string(dimensions));
    file.check(nc_inq_vardimid(file.id(), v, &its), name);
    if (its != dimension)
        file.fail(name, "must have the dimension of the same name");
    axis.degrees.resize(length);
    file.check(nc_get_var_double(file.id(), v, axis.degrees.data()), name);
    double scale = file.attribute(v, name, "scale_factor", 1);
    double offset = file.attribute(v, name, "add_offset", 0);
    for (double &d : axis.degrees)
        d = d * scale + offset;
    return axis;
}

void must_be_degrees(const ForeignFile &file, const Axis &axis, double lowest, double highest)
{
    const auto &d = axis.degrees;
    bool rising = d[1] > d[0];
    for (std::size_t i = 0; i < d.size(); i++) {
        if (!(d[i] >= lowest && d[i] <= highest))
            file.fail(axis.name, "element " + std::to_string(i) + " is " + number(d[i]) +
                                     "; must be degrees from " + number(lowest) + " to " +
                                     number(highest));
        if (i > 0 && (rising ? d[i] <= d[i - 1] : d[i] >= d[i - 1]))
            file.fail(axis.name,
                      "must rise or fall all along, and does not at element " + std::to_string(i));
    }
}

// A row or column that is read: where it is in the file, and its degrees as the domain counts.
struct Line {
    std::size_t index;
    double degrees;
};

// The lines from the last at or before `low` to the first at or after `high`.
std::vector<Line> covering(const ForeignFile &file, const Axis &axis,
                           const std::vector<Line> &rising, double low, double high)
{
    auto less = [](double value, const Line &line) { return value < line.degrees; };
    auto first = std::upper_bound(rising.begin(), rising.end(), low, less);
    auto last =
        std::upper_bound(rising.begin(), rising.end(), std::nextafter(high, -INFINITY), less);
    if (first == rising.begin() || last == rising.end()) {
        auto ends = std::minmax(axis.degrees.front(), axis.degrees.back());
        file.fail(axis.name, "the domain needs " + number(low) + " to " + number(high) +
                                 " degrees, and the file has " + number(ends.first) + " to " +
                                 number(ends.second) +
                                 "; see scenario.lon0, scenario.lat0 and domain.square");
    }
    return {first - 1, last + 1};
}

std::vector<Line> rising_lines(const Axis &axis, double turn)
{
    std::vector<Line> lines;
    std::size_t n = axis.degrees.size();
    bool rising = axis.degrees[1] > axis.degrees[0];
    for (std::size_t i = 0; i < n; i++) {
        std::size_t index = rising ? i : n - 1 - i;
        lines.push_back({index, axis.degrees[index] + turn});
    }
    return lines;
}

// Meridians, counted from the turn of the globe in which the domain begins.  Where a file goes all
// round, another turn follows: the domain may lie across the file's ends.
std::vector<Line> columns_for(const ForeignFile &file, const Axis &axis, double low, double high)
{
    const auto &d = axis.degrees;
    double span = std::fabs(d.back() - d.front());
    double spacing = span / static_cast<double>(d.size() - 1);
    bool global = span + 1.5 * spacing >= 360;
    std::vector<Line> all;
    double first = std::min(d.front(), d.back());
    double turn = 360 * std::floor((low - first) / 360);
    for (int k = 0; k < (global ? 2 : 1); k++, turn += 360)
        for (const Line &line : rising_lines(axis, turn))
            if (all.empty() || line.degrees > all.back().degrees + spacing / 1e3)
                all.push_back(line);
    return covering(file, axis, all, low, high);
}

// Reads rows and columns of a variable; `take` gets each number.
template <class Take> void read_points(const ForeignFile &file, int v, const std::string &name,
                                       const std::vector<Line> &rows,
                                       const std::vector<Line> &columns, const Take &take)
{
    std::vector<double> block;
    for (std::size_t c = 0; c < columns.size();) {
        // Columns that are neighbours in the file too.
        std::size_t end = c + 1;
        auto step = [&](std::size_t i) {
            return static_cast<std::ptrdiff_t>(columns[i].index - columns[i - 1].index);
        };
        while (end < columns.size() && std::abs(step(end)) == 1 && step(end) == step(c + 1))
            end++;
        std::size_t many = end - c, left = std::min(columns[c].index, columns[end - 1].index);
        std::size_t at_once = std::max<std::size_t>(1, AT_ONCE / many);
        for (std::size_t r = 0; r < rows.size(); r += at_once) {
            std::size_t r_end = std::min(r + at_once, rows.size());
            std::size_t top = std::min(rows[r].index, rows[r_end - 1].index);
            std::size_t start[2] = {top, left}, count[2] = {r_end - r, many};
            block.resize(count[0] * count[1]);
            file.check(nc_get_vara_double(file.id(), v, start, count, block.data()), name);
            for (std::size_t i = r; i < r_end; i++)
                for (std::size_t j = c; j < end; j++)
                    take(i, j, block[(rows[i].index - top) * many + (columns[j].index - left)]);
        }
        c = end;
    }
}

// What is where nothing was written, if no attribute says otherwise.  Every byte may be a number.
double default_fill(nc_type type)
{
    switch (type) {
    case NC_SHORT:
        return NC_FILL_SHORT;
    case NC_USHORT:
        return NC_FILL_USHORT;
    case NC_INT:
        return NC_FILL_INT;
    case NC_UINT:
        return NC_FILL_UINT;
    case NC_INT64:
        return static_cast<double>(NC_FILL_INT64);
    case NC_UINT64:
        return static_cast<double>(NC_FILL_UINT64);
    case NC_FLOAT:
        return static_cast<double>(NC_FILL_FLOAT);
    case NC_DOUBLE:
        return NC_FILL_DOUBLE;
    default:
        return NAN;
    }
}

// Of how many numbers an integer type with a sign is one; 0 of other types.
double count_of_signed(nc_type type)
{
    switch (type) {
    case NC_BYTE:
        return 0x1p8;
    case NC_SHORT:
        return 0x1p16;
    case NC_INT:
        return 0x1p32;
    case NC_INT64:
        return 0x1p64;
    default:
        return 0;
    }
}

// What a variable's attributes say of its numbers, after the conventions of NetCDF and CF.
class Heights {
public:
    Heights(const ForeignFile &file, int v, const std::string &name)
        : scale_(file.attribute(v, name, "scale_factor", 1)),
          offset_(file.attribute(v, name, "add_offset", 0)),
          wraps_at_(file.word(v, name, "_Unsigned") == "true"
                        ? count_of_signed(file.type_of(v, name))
                        : 0),
          fill_(value(file.attribute(v, name, "_FillValue", default_fill(file.type_of(v, name))))),
          missing_(value(file.attribute(v, name, "missing_value", NAN))),
          lowest_(value(file.attribute(v, name, "valid_min", -INFINITY))),
          highest_(value(file.attribute(v, name, "valid_max", INFINITY)))
    {
        if (auto range = file.numbers(v, name, "valid_range", 2); !range.empty()) {
            lowest_ = std::max(lowest_, value(range[0]));
            highest_ = std::min(highest_, value(range[1]));
        }
        std::string units = file.word(v, name, "units");
        if (!any_of(units, {"", "m", "meter", "meters", "metre", "metres"}))
            file.fail(name, "attribute units is \"" + units + "\"; heights must be in m");
        std::string positive = file.word(v, name, "positive");
        if (!any_of(positive, {"", "up", "down"}))
            file.fail(name,
                      "attribute positive is \"" + positive + "\"; must be \"up\" or \"down\"");
        upwards_ = positive == "down" ? -1 : 1;
    }

    // The range is of the numbers in the file.
    bool is_missing(double raw) const
    {
        const double got = value(raw);
        return got == fill_ || got == missing_ || got < lowest_ || got > highest_;
    }
    double metres(double raw) const { return upwards_ * (value(raw) * scale_ + offset_); }

private:
    double scale_, offset_;
    double wraps_at_; // numbers without a sign are in a type with one; 0: they are not
    double fill_, missing_, lowest_, highest_, upwards_;

    double value(double raw) const { return raw < 0 && std::isfinite(raw) ? raw + wraps_at_ : raw; }
};

// The variable of the heights, and the axes of its two dimensions.
struct HeightVariable {
    std::string name;
    int id;
    Axis lat, lon;
};

HeightVariable find_heights(const ForeignFile &file)
{
    std::string name = "elevation";
    int v = file.find(name), dimensions = 0;
    if (v < 0)
        v = file.find(name = "z");
    if (v < 0)
        file.fail("", "no variable elevation or z, with the height of the bed in m");
    file.must_be_numeric(v, name);
    file.check(nc_inq_varndims(file.id(), v, &dimensions), name);
    if (dimensions != 2)
        file.fail(name, "must have two dimensions, latitude and longitude, and has " +
                            std::to_string(dimensions));
    int its[2];
    file.check(nc_inq_vardimid(file.id(), v, its), name);
    Axis lat = read_axis(file, its[0]), lon = read_axis(file, its[1]);
    if (!any_of(lat.name, {"lat", "latitude", "y"}) || !any_of(lon.name, {"lon", "longitude", "x"}))
        file.fail(name, "must have the dimensions (lat, lon), and has (" + lat.name + ", " +
                            lon.name + ')');
    must_be_degrees(file, lat, -90, 90);
    must_be_degrees(file, lon, -360, 720);
    return {name, v, std::move(lat), std::move(lon)};
}

// [rows][columns]
std::vector<float> read_heights(const ForeignFile &file, const HeightVariable &variable,
                                const std::vector<Line> &rows, const std::vector<Line> &columns)
{
    const std::string &name = variable.name;
    if (rows.size() > MOST_POINTS / columns.size())
        file.fail(name, std::to_string(rows.size()) + " x " + std::to_string(columns.size()) +
                            " points are in the domain; at most " + std::to_string(MOST_POINTS) +
                            ": take a coarser file or a smaller domain");
    Heights heights(file, variable.id, name);
    std::vector<float> all(rows.size() * columns.size());
    auto take = [&](std::size_t i, std::size_t j, double raw) {
        double height = heights.metres(raw);
        bool missing = heights.is_missing(raw);
        if (missing || !(height >= LOWEST && height <= HIGHEST))
            file.fail(name, (missing ? "missing" : number(height) + " m") + " at longitude " +
                                number(columns[j].degrees) + ", latitude " +
                                number(rows[i].degrees) + "; must be a height from " +
                                number(LOWEST) + " to " + number(HIGHEST) +
                                " m everywhere in the domain");
        all[i * columns.size() + j] = static_cast<float>(height);
    };
    read_points(file, variable.id, name, rows, columns, take);
    return all;
}

} // namespace

Bathymetry::Bathymetry(const std::string &path, const Config &config) : globe_(config)
{
    ForeignFile file(path);
    HeightVariable variable = find_heights(file);
    const auto &d = config.domain;
    auto rows = covering(file, variable.lat, rising_lines(variable.lat, 0), globe_.lat(d.y0),
                         globe_.lat(d.y0 + config.height()));
    auto columns =
        columns_for(file, variable.lon, globe_.lon(d.x0), globe_.lon(d.x0 + config.width()));
    height_ = read_heights(file, variable, rows, columns);
    for (const Line &row : rows)
        lat_.push_back(row.degrees);
    for (const Line &column : columns)
        lon_.push_back(column.degrees);
}

double Bathymetry::spacing() const
{
    auto shortest = [](const std::vector<double> &axis) {
        double least = INFINITY;
        for (std::size_t i = 1; i < axis.size(); i++)
            least = std::min(least, axis[i] - axis[i - 1]);
        return least;
    };
    return std::min(shortest(lat_) * globe_.metres_lat, shortest(lon_) * globe_.metres_lon);
}

std::uint32_t Bathymetry::crc() const
{
    uLong crc = 0;
    auto add = [&crc](const auto &numbers) {
        crc = crc32_z(crc, reinterpret_cast<const unsigned char *>(numbers.data()),
                      numbers.size() * sizeof numbers[0]);
    };
    add(lon_);
    add(lat_);
    add(height_);
    return static_cast<std::uint32_t>(crc);
}

double Bathymetry::at(double x, double y) const
{
    auto place = [](const std::vector<double> &axis, double value, std::size_t &index) {
        value = std::min(std::max(value, axis.front()), axis.back());
        auto next = std::upper_bound(axis.begin() + 1, axis.end() - 1, value);
        index = static_cast<std::size_t>(next - axis.begin()) - 1;
        return (value - axis[index]) / (axis[index + 1] - axis[index]);
    };
    std::size_t i, j;
    double t = place(lat_, globe_.lat(y), i), s = place(lon_, globe_.lon(x), j);
    const float *south = &height_[i * lon_.size() + j], *north = south + lon_.size();
    double low = double(south[0]) + s * (double(south[1]) - double(south[0]));
    double high = double(north[0]) + s * (double(north[1]) - double(north[0]));
    return low + t * (high - low);
}

void write_bathymetry(const std::string &file, const Region &region, std::size_t columns,
                      std::size_t rows, const std::function<double(double lon, double lat)> &height)
{
    int id, dims[2], lat_id, lon_id, elevation;
    auto check = [&file](int status) {
        if (status != NC_NOERR)
            throw std::runtime_error(file + ": " + nc_strerror(status));
    };
    auto text = [&](int v, const char *name, const std::string &value) {
        check(nc_put_att_text(id, v, name, value.size(), value.c_str()));
    };
    std::vector<double> lon(columns), lat(rows);
    for (std::size_t i = 0; i < columns; i++)
        lon[i] = region.west + (region.east - region.west) * double(i) / double(columns - 1);
    for (std::size_t i = 0; i < rows; i++)
        lat[i] = region.south + (region.north - region.south) * double(i) / double(rows - 1);
    check(nc_create(file.c_str(), NC_CLOBBER | NC_64BIT_OFFSET, &id));
    check(nc_def_dim(id, "lat", rows, &dims[0]));
    check(nc_def_dim(id, "lon", columns, &dims[1]));
    check(nc_def_var(id, "lat", NC_DOUBLE, 1, &dims[0], &lat_id));
    check(nc_def_var(id, "lon", NC_DOUBLE, 1, &dims[1], &lon_id));
    check(nc_def_var(id, "elevation", NC_SHORT, 2, dims, &elevation));
    text(NC_GLOBAL, "Conventions", "CF-1.6");
    text(NC_GLOBAL, "title", "Synthetic basin: no survey of any place on Earth");
    text(lat_id, "units", "degrees_north");
    text(lon_id, "units", "degrees_east");
    text(elevation, "units", "m");
    text(elevation, "standard_name", "height_above_mean_sea_level");
    check(nc_enddef(id));
    check(nc_put_var_double(id, lat_id, lat.data()));
    check(nc_put_var_double(id, lon_id, lon.data()));
    std::vector<short> row(columns);
    for (std::size_t i = 0; i < rows; i++) {
        for (std::size_t j = 0; j < columns; j++)
            row[j] = static_cast<short>(std::lround(height(lon[j], lat[i])));
        std::size_t start[2] = {i, 0}, count[2] = {1, columns};
        check(nc_put_vara_short(id, elevation, start, count, row.data()));
    }
    check(nc_close(id));
}

} // namespace swe
