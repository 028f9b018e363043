// SPDX-License-Identifier: GPL-3.0-or-later
// agreement.h - what all ranks must know of a step: the marks of all leaves, and the fastest wave.
// One MPI_Iallgatherv, begun early in a step and waited for at the start of the next one.
#ifndef EULER_AGREEMENT_H
#define EULER_AGREEMENT_H

#include <vector>
#include "../mesh/tree.h"
#include "wait.h"

namespace euler {

class Agreement {
public:
    explicit Agreement(MPI_Comm comm);

    // Collective.  begins: leaves of each rank, as of Mesh; own: marks of this rank's.
    void begin(const std::vector<int> &begins, const std::vector<Mark> &own, double speed);

    // Waits; see wait.h.
    void finish(double look_us);

    // Of all leaves, and of all ranks: after finish().  The speed is no number if any is none.
    const std::vector<Mark> &marks() const { return marks_; }
    double speed() const { return speed_; }

private:
    MPI_Comm comm_;
    int ranks_;
    std::vector<int> begins_, counts_, places_; // bytes of each rank, and where they begin
    std::vector<char> own_, all_;               // a speed and marks; the same of each rank
    std::vector<MPI_Request> requests_;
    std::vector<Mark> marks_;
    double speed_ = 0;
};

} // namespace euler
#endif
