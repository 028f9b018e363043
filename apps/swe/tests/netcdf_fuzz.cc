// SPDX-License-Identifier: GPL-3.0-or-later
// netcdf_fuzz.cc - COUNT SEED: the reader of bathymetry gets COUNT files, good ones of the classic
// formats with bytes changed, cut off, or with other sizes in the header.  It must give heights
// within its limits or a ConfigError that names the file, and never take much memory.  Prints how
// many were good; 1 when a promise is broken.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>
#include "../scenario/bathymetry.h"

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

// The header is the first few hundred bytes; what is there decides sizes.
std::string changed(std::string bytes)
{
    constexpr std::size_t header = 700;
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

std::string good_file(const std::string &directory)
{
    std::string file = directory + "/good.nc";
    write_bathymetry(file, {141, 145, 36, 40}, 41, 41,
                     [](double lon, double lat) { return 100 * (lon - 143) - 10 * lat; });
    return content(file);
}

const char *run(const std::string &directory, unsigned long count, unsigned long &good)
{
    Config config = parse_config("name = \"tsunami\"\n[domain]\nsquare = 200e3\nx0 = -100e3\n"
                                 "y0 = -100e3\n",
                                 "f");
    std::string bytes = good_file(directory), file = directory + "/f.nc";
    const char *broken = nullptr;
    for (unsigned long i = 0; i < count && !broken; i++) {
        std::ofstream(file, std::ios::binary) << changed(bytes);
        broken = judge(file, config, good);
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
    const char *broken = run(directory, count, good);
    std::filesystem::remove_all(directory);
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (!broken && used.ru_maxrss > (1 << 20))
        broken = "more than 1 GiB of memory was used";
    std::printf("%lu good of %lu%s%s\n", good, count, broken ? ": " : "", broken ? broken : "");
    return broken != nullptr;
}
