// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_header.h - is a file what its NetCDF header says?  libnetcdf 4.9 believes headers of the
// classic formats: a wrong count makes it run out of memory or crash, and a file that was cut off
// reads as zeros.  So the header is gone through first, by the grammar of the formats ("The NetCDF
// Classic Format Specification", Unidata; CDF-1, CDF-2 and CDF-5).  Of NetCDF-4, which is HDF5,
// only the signature is looked at: HDF5 has checksums and bounds of its own.
#ifndef SWE_SCENARIO_NETCDF_HEADER_H
#define SWE_SCENARIO_NETCDF_HEADER_H

#include <cstdint>
#include <string>

namespace swe {

// Empty if the file may be given to nc_open() and is whole, else what is wrong with it, with the
// byte.
std::string netcdf_problem(const std::string &file);

// The same of a file that may end in a record, or before one: *records is how many are whole.  Of
// NetCDF-4 that is not looked at, and as many as there can be.
std::string netcdf_problem(const std::string &file, std::uint64_t *records);

} // namespace swe
#endif
