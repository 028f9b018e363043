// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_file.h - an open NetCDF file whose errors name the file, and which is closed in any case.
//
// All files are of the classic formats (64-bit offsets or data): when the writer is killed, the
// records that were synchronised before stay readable, which HDF5 does not promise.
#ifndef SWE_OUTPUT_NETCDF_FILE_H
#define SWE_OUTPUT_NETCDF_FILE_H

#include <cstdint>
#include <string>
#include <vector>
#include <netcdf.h>
#include "../../../lib/output/failure.h"

namespace swe {

using namespace apps;

// All functions throw OutputError.
class NetcdfFile {
public:
    static NetcdfFile create(const std::string &path, int format); // NC_64BIT_OFFSET, _DATA
    static NetcdfFile open(const std::string &path, int mode);     // NC_NOWRITE, NC_WRITE; fails at
                                                                   // what the library crashes at
    NetcdfFile(NetcdfFile &&other) noexcept;
    NetcdfFile &operator=(NetcdfFile &&) = delete;
    ~NetcdfFile();

    void close(); // reports what the destructor cannot

    // For calls of the library: file.check(nc_sync(file.id()), "write").
    void check(int status, const std::string &what) const;
    [[noreturn]] void fail(const std::string &message) const;
    int id() const { return number; }
    const std::string &path() const { return name; }
    // So many records were whole when it was opened, of those that it says it has: the library reads
    // those that were cut off as 0.
    std::uint64_t whole_records() const { return records; }

    int define_dimension(const char *dimension, std::size_t length);
    int define(const char *variable, nc_type type, const std::vector<int> &dimensions);
    void attribute(int variable, const char *attribute_name, const std::string &text);
    void attribute(int variable, const char *attribute_name, double value);
    void attribute(int variable, const char *attribute_name, const std::vector<double> &values);

    bool has(const char *attribute_name) const;
    // Fail also if there is no such thing, or one of another type or shape.
    std::string text(const char *attribute_name) const;
    // Fails with the first line that differs, and the advice, if the attribute is another text or
    // not there; it says which simulation the file is of (identity.h).
    void expect(const char *attribute_name, const std::string &text,
                const std::string &advice = "") const;
    double number_of(const char *attribute_name) const;
    std::vector<double> numbers_of(const char *attribute_name) const;
    long long integer(const char *attribute_name) const; // also when it is not a whole number
    std::size_t dimension(const char *dimension_name) const;
    int variable(const char *variable_name, nc_type type,
                 const std::vector<std::size_t> &shape) const;

private:
    NetcdfFile(std::string path, int id) : name(std::move(path)), number(id) {}
    std::string name;
    int number;
    std::uint64_t records = 0;
};

} // namespace swe
#endif
