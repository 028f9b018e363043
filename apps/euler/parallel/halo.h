// SPDX-License-Identifier: GPL-3.0-or-later
// halo.h - the ghosts of a mesh: one message to and from each peer in a step.
//
// Traces of one step are read while those of the next one arrive, so there are two sets, called by
// the step's parity.  Only the thread that has initialised MPI calls; ghosts may be read by all
// threads after wait() and until the next receive() of the same parity.
#ifndef EULER_HALO_H
#define EULER_HALO_H

#include <functional>
#include <vector>
#include "../../lib/aligned.h"
#include "../mesh/mesh.h"
#include "wait.h"

namespace euler {

class Halo {
public:
    // trace: doubles.  The peers must outlive it; `ghosts` is their sum.
    Halo(const std::vector<Peer> &peers, int ghosts, std::size_t trace, MPI_Comm comm);

    const double *ghost(int parity, int number) const
    {
        return &ghosts_[parity][trace_ * static_cast<std::size_t>(number)];
    }

    // Begins to receive, or copies what find() gives and begins to send it.
    void receive(int parity);
    void send(int parity, const std::function<const double *(Source)> &find);

    // Until all has come and may be changed that was sent.
    void wait(double look_us) { wait_all(requests_, look_us); }

private:
    const std::vector<Peer> &peers_;
    const std::size_t trace_;
    MPI_Comm comm_;
    apps::AlignedVector<double> ghosts_[2];
    std::vector<apps::AlignedVector<double>> out_; // a message each peer
    std::vector<MPI_Request> requests_;
};

} // namespace euler
#endif
