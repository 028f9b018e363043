// SPDX-License-Identifier: GPL-3.0-or-later
// maxima.h - how high and fast the water was at most on a raster, and when the wave arrived: a
// NetCDF file with one frame, which covers all of the run up to when it was written.
//
// The file says which simulation it is of, and when that was looked at: a run may have begun
// without looks (attribute `since`, s), and gone on for a while without (`gaps`, s: from, to, from,
// to, ...); the last look was at `until`, s.
//
// A rank knows what it saw itself.  A file that is gone on from is given to all ranks, so a pixel
// may come to another rank: greatest of all is greatest over the ranks.  What a run did between
// the checkpoint that another one goes on from and its end is in the file, too, and stays: it is of
// the same simulation, but that the end may have cut a step short.
#ifndef SWE_OUTPUT_MAXIMA_H
#define SWE_OUTPUT_MAXIMA_H

#include <optional>
#include <string>
#include <vector>
#include "raster/raster.h"

namespace swe {

class Maxima {
public:
    // `arrival`: so far from `rest`, m, is the surface when the wave has arrived.  Where
    // `resume_time` is given, begins with what the file at `path` has, if there is one; that its
    // last look is more than `every` before is a gap.  Collective; throws OutputError on all ranks
    // when the file is of another raster, state or arrival.  `state`: of checkpoints.  Nothing is
    // changed before write().
    Maxima(const std::string &path, const RasterShape &shape, const std::string &state, double rest,
           double arrival, std::optional<double> resume_time, double every, MPI_Comm comm);

    // Time of the first look, s; infinite if there was none.
    double since() const { return first_look; }

    // From when to when, s, no look is known.  On rank 0.
    struct Gap {
        double begin, end;
    };
    const std::vector<Gap> &gaps() const { return missed; }

    // Looks at this rank's cells; not collective.
    void add(const Snapshot &snapshot);

    // Collective.  The file is there as a whole, or as it was.
    void write();

private:
    std::string path;
    RasterShape shape;
    std::string configuration; // state and arrival
    double rest, arrival, first_look;
    double last_look, own_look;       // of all that the file knows of, and of this run
    double longest;                   // between two looks without a gap
    std::vector<Gap> missed, to_come; // before and after the time at which this run began
    MPI_Comm comm;
    // Surface, depth, speed: greatest so far, -inf where none.  Arrival: earliest, +inf where none.
    std::vector<float> field[4];

    void read();
    void find_gap(double resume_time);
    void save(const std::vector<float> *all) const;
};

} // namespace swe
#endif
