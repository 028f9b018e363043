// SPDX-License-Identifier: GPL-3.0-or-later
// config_check.cc - FILE [KEY=VALUE...]: reads a configuration and writes it down, or says what is
// wrong with it; --help-config explains the keys.  For testsuite/apps/test_swe_config.py.
#include <cstdio>
#include <cstring>
#include "../config.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        return std::fprintf(stderr, "usage: config_check FILE [KEY=VALUE...] | --help-config\n"), 2;
    if (!std::strcmp(argv[1], "--help-config"))
        return std::fputs(swe::config_help().c_str(), stdout) < 0;
    try {
        std::fputs(swe::describe(swe::read_config(argv[1], {argv + 2, argv + argc})).c_str(),
                   stdout);
    } catch (const swe::ConfigError &e) {
        return std::fprintf(stderr, "%s\n", e.what()), 1;
    }
    return 0;
}
