// SPDX-License-Identifier: GPL-3.0-or-later
// vtu.h - the grid and its water as VTK's XML files, for ParaView and tools/pictures.py.
//
// A frame is NAME-STEP-RANK.vtu, a piece each rank, and NAME-STEP.pvtu, which puts them together;
// NAME.pvd is the series of frames with their times.  Arrays are base64 of zlib blocks: a file is
// XML to any parser, and a fraction of the size of text.  Cells share points: a filter of ParaView
// that goes from cells to points (contours, warping) then sees one surface and not loose triangles,
// and points are half as many as cells, not three times.  Only where ranks meet are they double.
// Format: VTK File Formats, https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html
#ifndef SWE_OUTPUT_VTU_H
#define SWE_OUTPUT_VTU_H

#include <string>
#include "failure.h"
#include "snapshot.h"

namespace swe {

// Collective.  Takes NAME.pvd away, which is of another run; its frames stay.  Throws OutputError.
void begin_vtu(const std::string &directory, const std::string &name, MPI_Comm comm);

// Collective over comm, the ranks of the snapshot.  Makes the directory if it is not there.
//
// The series may be continued: frames of NAME.pvd that are of this time or later, as there are when
// a run restarts from a checkpoint, are taken out of it (their files stay).  Whenever the run is
// killed, the files that the series names are there as a whole.  Cell data: h, hu, hv, bed, surface
// (NaN where h <= snapshot.dry), depth, cluster, rank.  Throws OutputError on all ranks.
void write_vtu(const Snapshot &snapshot, const std::string &directory, const std::string &name,
               MPI_Comm comm);

} // namespace swe
#endif
