// SPDX-License-Identifier: GPL-3.0-or-later
// halo.cc - see halo.h.
#include "halo.h"

#include <algorithm>

namespace euler {

Halo::Halo(const std::vector<Peer> &peers, int ghosts, std::size_t trace, MPI_Comm comm)
    : peers_(peers), trace_(trace), comm_(comm), out_(peers.size())
{
    for (auto &set : ghosts_)
        set.resize(trace * static_cast<std::size_t>(ghosts));
    for (std::size_t i = 0; i < peers.size(); i++)
        out_[i].resize(trace * peers[i].send.size());
}

void Halo::receive(int parity)
{
    for (const Peer &peer : peers_) {
        requests_.push_back(MPI_REQUEST_NULL);
        MPI_Irecv(&ghosts_[parity][trace_ * static_cast<std::size_t>(peer.first_ghost)],
                  static_cast<int>(trace_) * peer.ghosts, MPI_DOUBLE, peer.rank, parity, comm_,
                  &requests_.back());
    }
}

void Halo::send(int parity, const std::function<const double *(Source)> &find)
{
    for (std::size_t i = 0; i < peers_.size(); i++) {
        double *to = out_[i].data();
        for (const Source &source : peers_[i].send) {
            const double *from = find(source);
            to = std::copy(from, from + trace_, to);
        }
        requests_.push_back(MPI_REQUEST_NULL);
        MPI_Isend(out_[i].data(), static_cast<int>(out_[i].size()), MPI_DOUBLE, peers_[i].rank,
                  parity, comm_, &requests_.back());
    }
}

} // namespace euler
