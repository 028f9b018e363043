// SPDX-License-Identifier: GPL-3.0-or-later
// temporary.h - a directory for a test's files, which goes when the test does.
#ifndef SWE_TESTS_TEMPORARY_H
#define SWE_TESTS_TEMPORARY_H

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace swe {

struct Temporary {
    std::string path;
    Temporary() : path(std::filesystem::temp_directory_path() / "swe-test-XXXXXX")
    {
        if (!mkdtemp(path.data()))
            throw std::runtime_error("no directory " + path);
    }
    ~Temporary() { std::filesystem::remove_all(path); }
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;
};

} // namespace swe
#endif
