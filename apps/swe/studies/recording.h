// SPDX-License-Identifier: GPL-3.0-or-later
// recording.h - the work that a rank of a simulation had, as a file, to repeat it
// without computing (studies/replay.cc).
//
// A text of lines.  A stretch of steps has one grid, whose clusters have so many cells; between two
// stretches is an adaption.  Seconds are wall time where the record was made.
//
//     swe-record 1
//     rank 0 of 4 stages 1 neighbours 1 3
//     clusters 512 480 497
//     steps 4 seconds 0.00123
//     adaption sweeps 3 seconds 0.00031 serial 0.00002
//     clusters 512 480 960
//     ...
//     end
#ifndef SWE_STUDIES_RECORDING_H
#define SWE_STUDIES_RECORDING_H

#include <cstdint>
#include <string>
#include <vector>

namespace swe {

struct Adaption {
    int sweeps = 0;
    double seconds = 0, serial = 0; // serial: of them, outside of loops that threads share
};

struct Stretch {
    std::vector<std::int64_t> clusters; // cells of each
    long steps = 0;
    double seconds = 0;
    bool is_last = true; // no adaption follows
    Adaption adaption;

    std::int64_t cells() const;
};

struct Recording {
    int rank = 0, ranks = 1, stages = 1;
    std::vector<int> neighbours; // ranks
    std::vector<Stretch> stretches;
};

// PREFIX.RANK
std::string recording_file(const std::string &prefix, int rank);

// Throws std::runtime_error with file and line: missing, no record, cut off.
Recording read_recording(const std::string &file);

std::string header_text(const Recording &recording);
std::string stretch_text(const Stretch &stretch);
extern const char *const RECORDING_END;

} // namespace swe
#endif
