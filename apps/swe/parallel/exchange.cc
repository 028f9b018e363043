// SPDX-License-Identifier: GPL-3.0-or-later
// exchange.cc - messages by non-blocking sends and receives.
#include "exchange.h"

namespace swe {

static MPI_Datatype type_of(float) { return MPI_FLOAT; }
static MPI_Datatype type_of(double) { return MPI_DOUBLE; }
static MPI_Datatype type_of(std::uint8_t) { return MPI_UINT8_T; }

template <class T> void Messages<T>::resize(const Interfaces &interfaces, int fields)
{
    ranks = interfaces.neighbours;
    edges = interfaces.shared_edges;
    out.resize(ranks.size());
    in.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); i++) {
        out[i].assign(static_cast<std::size_t>(fields) * edges[i], T{});
        in[i].assign(static_cast<std::size_t>(fields) * edges[i], T{});
    }
}

template <class T> void Messages<T>::swap(MPI_Comm comm)
{
    constexpr int tag = 1;
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < ranks.size(); i++) {
        requests.push_back(MPI_REQUEST_NULL);
        MPI_Irecv(in[i].data(), static_cast<int>(in[i].size()), type_of(T{}), ranks[i], tag, comm,
                  &requests.back());
    }
    for (std::size_t i = 0; i < ranks.size(); i++) {
        requests.push_back(MPI_REQUEST_NULL);
        MPI_Isend(out[i].data(), static_cast<int>(out[i].size()), type_of(T{}), ranks[i], tag, comm,
                  &requests.back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

template class Messages<float>;
template class Messages<double>;
template class Messages<std::uint8_t>;

} // namespace swe
