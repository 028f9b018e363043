// SPDX-License-Identifier: GPL-3.0-or-later
// checkpoint.h - a whole simulation on the disk, from which any number of ranks goes on.
//
// A checkpoint is a directory checkpoint-STEP with a NetCDF file each rank, checkpoint-RANK.nc, and
// the text `manifest`, which lists them with sizes and CRCs.  It is written as
// checkpoint-STEP.tmp; the manifest comes when all ranks are done, then the directory gets its
// name: an interrupted checkpoint is never taken for one.  Cells are the depths of the leaves in
// the order of the curve, which is all there is to know of a binary tree; connectivity is made
// again.  The last two are kept.
#ifndef SWE_OUTPUT_CHECKPOINT_H
#define SWE_OUTPUT_CHECKPOINT_H

#include <functional>
#include <string>
#include "../../../lib/output/failure.h"
#include "../snapshot.h"

namespace swe {

using namespace apps;

// Collective over comm, the ranks of the state.  Writes directory/checkpoint-STEP.  Checkpoints of
// later steps are of a run that this one replaces (it went on from an earlier checkpoint, or
// began anew) and are removed; of earlier ones the last is kept.  When the number of values of a
// cluster is not values * cells, or something cannot be written, all ranks throw OutputError, and
// former checkpoints are as they were.
void write_checkpoint(const RankState &state, const std::string &directory, MPI_Comm comm);

// What a run that goes on asks of a checkpoint.
struct Resume {
    std::string configuration;          // must be the checkpoint's
    std::int32_t values = 3;            // a cell
    int roots = 0;                      // of the whole grid
    int root_depth = 0;                 // their depth; the checkpoint's may be another one
    std::function<bool(int root)> mine; // is the root one of this rank?
};

// The last whole checkpoint in an output directory.  Throws OutputError if there is none.
std::string latest_checkpoint(const std::string &directory);

// The one before this one in the same directory, or an empty text: none is known.
std::string former_checkpoint(const std::string &checkpoint);

// Is `place`, from which read_checkpoint() reads, the directory, or a checkpoint in it?
bool is_checkpoint_of(const std::string &place, const std::string &directory);

// Its step; -1 if there is none.  Throws OutputError if the directory cannot be read.
long latest_step(const std::string &directory);

// Takes those of later steps away; of -1 all of them, for a run that begins anew.  The latest goes
// first, at once and for good: one that was taken away in part would be the latest, and damaged.
void remove_checkpoints_after(const std::string &directory, long step);

// Reads the clusters of this rank's roots from `place`: a checkpoint, or a directory of which the
// latest is taken.  They come in the order of the curve, and are complete: every root of this
// rank is filled by its clusters, every cluster by its cells, and all numbers are finite.  Not
// collective; rank and ranks of the result are those of the writer of the first file.  Throws
// OutputError that says what is wrong with which file, and, when files of it are not those that
// were written, or missing, which checkpoint was before.  Memory: one file at a time is
// read whole.
RankState read_checkpoint(const std::string &place, const Resume &resume);

} // namespace swe
#endif
