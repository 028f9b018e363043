// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_fuzz.cc - COUNT SEED [netcdf4]: the reader of bathymetry gets COUNT files, good ones of
// the classic formats with bytes changed, cut off, or with other sizes in the header; or, with
// `netcdf4`, changed ones of NetCDF-4, whose reader is HDF5: each in a process of its own, so that
// one which ends that, or does not end, is known.  It must give heights within its limits or a
// ConfigError that names the file, and never take much memory.  Prints how many were good; 1 when
// a promise is broken, and the file is netcdf_fuzz.broken.nc then.
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <netcdf.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../scenario/bed/bathymetry.h"

using namespace swe;

namespace {

std::uint64_t state;

unsigned chance(std::size_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return static_cast<unsigned>((state >> 33) % below);
}

std::string content(const std::string &file)
{
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

// The header is the first bytes; what is there decides sizes.
std::string changed(std::string bytes, std::size_t header)
{
    for (unsigned k = 1 + chance(4); k > 0; k--) {
        std::size_t at = chance(8) ? chance(std::min(header, bytes.size())) : chance(bytes.size());
        switch (chance(6)) {
        case 0:
            bytes.resize(at + 1);
            break;
        case 1:
            bytes[at] = static_cast<char>(1u << chance(8));
            break;
        case 2: // a large or small number, as the format has them: four bytes, the highest first
            at &= ~std::size_t{3};
            for (std::size_t i = at; i < at + 4 && i < bytes.size(); i++)
                bytes[i] = chance(3) ? '\0' : static_cast<char>(chance(2) ? 0xff : chance(256));
            break;
        case 3:
            bytes.insert(at, 4, '\0');
            break;
        default:
            bytes[at] = static_cast<char>(chance(256));
        }
    }
    return bytes;
}

const char *judge(const std::string &file, const Config &config, unsigned long &good)
{
    try {
        Bathymetry b(file, config);
        good++;
        for (double x : {-3e5, -5e4, 0.0, 7e4})
            if (!(b.at(x, x / 2) >= -12000 && b.at(x, x / 2) <= 10000))
                return "a height beyond the limits was taken";
    } catch (const ConfigError &e) {
        if (std::string(e.what()).compare(0, file.size(), file) != 0)
            return "an error does not name the file";
    }
    return nullptr;
}

// The same in a process of its own.
const char *judge_apart(const std::string &file, const Config &config, unsigned long &good)
{
    constexpr unsigned PATIENCE_S = 20;
    constexpr int IS_GOOD = 10, IS_BROKEN = 11;
    pid_t child = fork();
    if (child < 0)
        return "no process";
    if (child == 0) {
        unsigned long found = 0;
        alarm(PATIENCE_S);
        const char *broken = judge(file, config, found);
        if (broken)
            std::fprintf(stderr, "%s\n", broken);
        _exit(broken ? IS_BROKEN : found ? IS_GOOD : 0);
    }
    int status;
    if (waitpid(child, &status, 0) != child)
        return "a process is lost";
    if (!WIFEXITED(status))
        return WTERMSIG(status) == SIGALRM ? "no end after 20 s" : "the reader crashed";
    good += WEXITSTATUS(status) == IS_GOOD;
    return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == IS_GOOD ? nullptr : "a promise";
}

constexpr std::size_t ROWS = 41, COLUMNS = 41;

double slope(double lon, double lat) { return 100 * (lon - 143) - 10 * lat; }

std::string classic_file(const std::string &directory)
{
    std::string file = directory + "/good.nc";
    write_bathymetry(file, {141, 145, 36, 40}, COLUMNS, ROWS, slope);
    return content(file);
}

// Compressed in pieces, as files of NetCDF-4 are.
std::string netcdf4_file(const std::string &directory)
{
    std::string file = directory + "/good.nc";
    int id, dims[2], lat, lon, elevation, status = NC_NOERR;
    auto check = [&status](int result) { status = status == NC_NOERR ? result : status; };
    const std::size_t pieces[2] = {16, 16};
    std::vector<double> lats(ROWS), lons(COLUMNS);
    std::vector<short> heights;
    for (std::size_t i = 0; i < ROWS; i++)
        lats[i] = 36 + 4 * double(i) / (ROWS - 1);
    for (std::size_t j = 0; j < COLUMNS; j++)
        lons[j] = 141 + 4 * double(j) / (COLUMNS - 1);
    for (double y : lats)
        for (double x : lons)
            heights.push_back(static_cast<short>(slope(x, y)));
    check(nc_create(file.c_str(), NC_CLOBBER | NC_NETCDF4, &id));
    check(nc_def_dim(id, "lat", ROWS, &dims[0]));
    check(nc_def_dim(id, "lon", COLUMNS, &dims[1]));
    check(nc_def_var(id, "lat", NC_DOUBLE, 1, &dims[0], &lat));
    check(nc_def_var(id, "lon", NC_DOUBLE, 1, &dims[1], &lon));
    check(nc_def_var(id, "elevation", NC_SHORT, 2, dims, &elevation));
    check(nc_def_var_chunking(id, elevation, NC_CHUNKED, pieces));
    check(nc_def_var_deflate(id, elevation, 1, 1, 5));
    check(nc_put_att_text(id, elevation, "units", 1, "m"));
    check(nc_enddef(id));
    check(nc_put_var_double(id, lat, lats.data()));
    check(nc_put_var_double(id, lon, lons.data()));
    check(nc_put_var_short(id, elevation, heights.data()));
    check(nc_close(id));
    return status == NC_NOERR ? content(file) : "";
}

const char *run(const std::string &directory, unsigned long count, bool netcdf4,
                unsigned long &good)
{
    Config config = parse_config("name = \"tsunami\"\n[domain]\nsquare = 200e3\nx0 = -100e3\n"
                                 "y0 = -100e3\n",
                                 "f");
    std::string bytes = netcdf4 ? netcdf4_file(directory) : classic_file(directory);
    std::string file = directory + "/f.nc";
    const char *broken = bytes.empty() ? "the good file cannot be written" : nullptr;
    for (unsigned long i = 0; i < count && !broken; i++) {
        std::ofstream(file, std::ios::binary) << changed(bytes, netcdf4 ? bytes.size() : 700);
        broken = netcdf4 ? judge_apart(file, config, good) : judge(file, config, good);
    }
    if (broken)
        std::filesystem::copy_file(file, "netcdf_fuzz.broken.nc",
                                   std::filesystem::copy_options::overwrite_existing);
    return broken;
}

} // namespace

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 500, good = 0;
    state = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
    std::string directory = std::filesystem::temp_directory_path() / "swe-netcdf-XXXXXX";
    if (!mkdtemp(directory.data()))
        return std::perror(directory.c_str()), 2;
    bool netcdf4 = argc > 3 && std::string(argv[3]) == "netcdf4";
    const char *broken = run(directory, count, netcdf4, good);
    std::filesystem::remove_all(directory);
    rusage used;
    getrusage(netcdf4 ? RUSAGE_CHILDREN : RUSAGE_SELF, &used);
    if (!broken && used.ru_maxrss > (1 << 20))
        broken = "more than 1 GiB of memory was used";
    std::printf("%lu good of %lu%s%s\n", good, count, broken ? ": " : "", broken ? broken : "");
    return broken != nullptr;
}
