// SPDX-License-Identifier: GPL-3.0-or-later
// schedule.h - in which order a traversal's work is done, and by what means of OpenMP.
//
// Enclave tasking (Charrier, Hazelwood, Weinzierl 2018, arXiv:1806.07984, section 3): the cells at
// a rank's border come first and their traces are sent at once, then those where levels meet, whose
// marks all ranks wait for.  These are the skeleton.  All others are enclaves: tasks behind the
// skeleton, with as much to do as hides the messages.  What ranks exchange is waited for at the
// start of the next step.
//   none              a loop over all cells for each kind of work; messages when all is done
//   subgrids          the paper's baseline: a loop over the cells of each level, but cells where
//                     levels meet one after the other
//   skeleton-first    a task each cell: faces, corrector and predictor
//   arithmetic-aware  faces and correctors in a loop; a task each predictor
// The results are the same, bit by bit.
#ifndef EULER_SCHEDULE_H
#define EULER_SCHEDULE_H

#include <functional>
#include "traversal.h"

namespace euler {

struct Messages {
    std::function<void()> send;  // when the cells at the border have their traces
    std::function<void()> agree; // when the cells where levels meet have their marks
};

// Does all of it.  Messages are sent by the calling thread.
template <int D>
void run(Variant variant, Traversal<D> &traversal, const Messages &messages);

} // namespace euler
#endif
