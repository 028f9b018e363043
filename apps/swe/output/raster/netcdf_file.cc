// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_file.cc - see netcdf_file.h.
#include "netcdf_file.h"

#include <cmath>
#include <utility>
#include "../checkpoint/identity.h"
#include "../../scenario/bed/netcdf_header.h"

namespace swe {

namespace {

constexpr int NONE = -1;

[[noreturn]] void fail_to(const char *tried, const std::string &path, int status)
{
    throw OutputError(std::string("cannot ") + tried + " " + path + ": " + nc_strerror(status));
}

} // namespace

NetcdfFile NetcdfFile::create(const std::string &path, int format)
{
    int id, status = nc_create(path.c_str(), NC_CLOBBER | format, &id);
    if (status != NC_NOERR)
        fail_to("create", path, status);
    nc_set_fill(id, NC_NOFILL, nullptr); // all is written anyhow
    return NetcdfFile(path, id);
}

NetcdfFile NetcdfFile::open(const std::string &path, int mode)
{
    std::uint64_t records = 0;
    const std::string problem = netcdf_problem(path, &records);
    if (!problem.empty())
        throw OutputError("cannot open " + path + ": " + problem);
    int id, status = nc_open(path.c_str(), mode, &id);
    if (status != NC_NOERR)
        fail_to("open", path, status);
    NetcdfFile file(path, id);
    file.records = records;
    return file;
}

NetcdfFile::NetcdfFile(NetcdfFile &&other) noexcept
    : name(std::move(other.name)), number(std::exchange(other.number, NONE)),
      records(other.records)
{
}

NetcdfFile::~NetcdfFile()
{
    if (number != NONE)
        nc_close(number);
}

void NetcdfFile::close() { check(nc_close(std::exchange(number, NONE)), "write"); }

void NetcdfFile::check(int status, const std::string &what) const
{
    if (status != NC_NOERR)
        throw OutputError("cannot " + what + " " + name + ": " + nc_strerror(status));
}

void NetcdfFile::fail(const std::string &message) const
{
    throw OutputError(name + ": " + message);
}

int NetcdfFile::define_dimension(const char *dimension_name, std::size_t length)
{
    int id;
    check(nc_def_dim(number, dimension_name, length, &id), "write");
    return id;
}

int NetcdfFile::define(const char *variable_name, nc_type type, const std::vector<int> &dimensions)
{
    int id;
    check(nc_def_var(number, variable_name, type, static_cast<int>(dimensions.size()),
                     dimensions.data(), &id),
          "write");
    return id;
}

void NetcdfFile::attribute(int id, const char *attribute_name, const std::string &value)
{
    check(nc_put_att_text(number, id, attribute_name, value.size(), value.data()), "write");
}

void NetcdfFile::attribute(int id, const char *attribute_name, double value)
{
    check(nc_put_att_double(number, id, attribute_name, NC_DOUBLE, 1, &value), "write");
}

void NetcdfFile::attribute(int id, const char *attribute_name, const std::vector<double> &values)
{
    check(nc_put_att_double(number, id, attribute_name, NC_DOUBLE, values.size(), values.data()),
          "write");
}

bool NetcdfFile::has(const char *attribute_name) const
{
    return nc_inq_att(number, NC_GLOBAL, attribute_name, nullptr, nullptr) == NC_NOERR;
}

std::string NetcdfFile::text(const char *attribute_name) const
{
    nc_type type;
    std::size_t length;
    const std::string what = std::string("attribute ") + attribute_name;
    if (nc_inq_att(number, NC_GLOBAL, attribute_name, &type, &length) != NC_NOERR ||
        type != NC_CHAR)
        fail(what + " is missing, or not a text");
    std::string value(length, ' ');
    if (length > 0)
        check(nc_get_att_text(number, NC_GLOBAL, attribute_name, value.data()),
              "read " + what + " of");
    return value;
}

void NetcdfFile::expect(const char *attribute_name, const std::string &expected,
                        const std::string &advice) const
{
    if (!has(attribute_name))
        fail_without_identity(name, advice);
    expect_same(name, attribute_name, text(attribute_name), expected, advice);
}

double NetcdfFile::number_of(const char *attribute_name) const
{
    const std::vector<double> values = numbers_of(attribute_name);
    if (values.size() != 1)
        fail(std::string("attribute ") + attribute_name + " is missing, or not a number");
    return values[0];
}

std::vector<double> NetcdfFile::numbers_of(const char *attribute_name) const
{
    nc_type type;
    std::size_t length;
    std::vector<double> values;
    if (nc_inq_att(number, NC_GLOBAL, attribute_name, &type, &length) == NC_NOERR &&
        type != NC_CHAR)
        values.resize(length);
    if (values.empty() ||
        nc_get_att_double(number, NC_GLOBAL, attribute_name, values.data()) != NC_NOERR)
        fail(std::string("attribute ") + attribute_name + " is missing, or not a number");
    return values;
}

long long NetcdfFile::integer(const char *attribute_name) const
{
    const double value = number_of(attribute_name);
    if (!(std::fabs(value) < 9e15) || value != std::floor(value))
        fail(std::string("attribute ") + attribute_name + " is not a whole number");
    return static_cast<long long>(value);
}

std::size_t NetcdfFile::dimension(const char *dimension_name) const
{
    int id;
    std::size_t length;
    if (nc_inq_dimid(number, dimension_name, &id) != NC_NOERR ||
        nc_inq_dimlen(number, id, &length) != NC_NOERR)
        fail(std::string("dimension ") + dimension_name + " is missing");
    return length;
}

int NetcdfFile::variable(const char *variable_name, nc_type type,
                         const std::vector<std::size_t> &shape) const
{
    int id, count, dimensions[NC_MAX_VAR_DIMS];
    nc_type there;
    const std::string what = std::string("variable ") + variable_name;
    if (nc_inq_varid(number, variable_name, &id) != NC_NOERR ||
        nc_inq_var(number, id, nullptr, &there, &count, dimensions, nullptr) != NC_NOERR)
        fail(what + " is missing");
    bool same = there == type && static_cast<std::size_t>(count) == shape.size();
    for (std::size_t i = 0; same && i < shape.size(); i++) {
        std::size_t length;
        same = nc_inq_dimlen(number, dimensions[i], &length) == NC_NOERR && length == shape[i];
    }
    if (!same)
        fail(what + " is of another type or shape");
    return id;
}

} // namespace swe
