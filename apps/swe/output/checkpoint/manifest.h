// SPDX-License-Identifier: GPL-3.0-or-later
// manifest.h - the list of a checkpoint's files, by which a whole checkpoint is known.
//
// A text with a line each rank's file: its size and CRC-32.  The last line is the CRC of the lines
// before it.
#ifndef SWE_OUTPUT_MANIFEST_H
#define SWE_OUTPUT_MANIFEST_H

#include <cstdint>
#include <string>
#include <vector>

namespace swe {

struct Manifest {
    struct File {
        std::uint64_t size = 0, crc = 0;
    };
    long step = 0;
    std::vector<File> files; // by rank

    std::string text() const;
    // Throws OutputError, with the path, if the text is not what text() gives.
    static Manifest parse(const std::string &path, const std::string &text);
};

std::uint64_t crc_of(const std::string &bytes);

} // namespace swe
#endif
