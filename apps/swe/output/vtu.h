// SPDX-License-Identifier: GPL-3.0-or-later
// vtu.h - the grid and its water as VTK's XML files, for ParaView and tools/pictures.py.
//
// Files are those of lib/output/vtk.h; which simulation NAME.pvd is of is in a comment (identity.h).
// Cells share points: a filter of ParaView that goes from cells to points (contours, warping) then
// sees one surface and not loose triangles, and points are half as many as cells, not three times.
// Only where ranks meet are they double.
#ifndef SWE_OUTPUT_VTU_H
#define SWE_OUTPUT_VTU_H

#include <optional>
#include <string>
#include <vector>
#include "../../lib/output/failure.h"
#include "../../lib/output/vtk.h"
#include "snapshot.h"

namespace swe {

using namespace apps;

// Throws OutputError if NAME.pvd is not of this state (that of checkpoints), so that a run that
// goes on cannot add frames to it.
void check_series(const std::string &directory, const std::string &name, const std::string &state);

// Is this NAME.pvd of ours?  Those of earlier versions do not say so.
bool is_series(const std::string &path);

// The frames of one run.  All functions are collective over comm; OutputError comes on all ranks.
// Whenever the run is killed, the files that NAME.pvd names are there as a whole.
class VtuSeries {
public:
    // A new series: NAME.pvd goes, which is of another run; its frames stay.  Where `resume_time`
    // is given, NAME.pvd, which must be of the same state, has its frames up to that time after
    // this: later ones are of steps that come again, perhaps at other times.
    VtuSeries(const std::string &directory, const std::string &name, const std::string &state,
              std::optional<double> resume_time, MPI_Comm comm);

    // Adds a frame, of all ranks' cells; frames of this step, or of this time or later, are taken
    // out.  Makes the directory if it is not there.  Cell data: h, hu, hv, bed, surface (NaN where
    // h <= snapshot.dry), depth, cluster, rank.
    void add(const Snapshot &snapshot);

private:
    std::string directory, name, state;
    MPI_Comm comm;
    std::vector<VtkFrame> frames; // on rank 0

    std::string path() const;
    void read();
    void write() const;
};

} // namespace swe
#endif
