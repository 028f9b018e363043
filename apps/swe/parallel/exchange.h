// SPDX-License-Identifier: GPL-3.0-or-later
// exchange.h - the messages between ranks whose parts of the grid touch.
//
// One message to each neighbour and phase: what is at the edges that are shared with it, in an
// order that both know (grid/interfaces.h).  The threads that work on clusters write the
// outgoing messages in place and read the incoming ones; the thread that called MPI_Init sends
// them in between.
#ifndef SWE_PARALLEL_EXCHANGE_H
#define SWE_PARALLEL_EXCHANGE_H

#include <cstdint>
#include <mpi.h>
#include <vector>
#include "../grid/interfaces.h"

namespace swe {

// Messages of one type of number: `fields` numbers an edge, a field after the other.
template <class T> class Messages {
public:
    void resize(const Interfaces &interfaces, int fields);

    // Place 0 .. edges-1 of field f of the message to or from a neighbour.
    T *outgoing(int neighbour, int f) { return out[neighbour].data() + offset(neighbour, f); }
    const T *incoming(int neighbour, int f) const
    {
        return in[neighbour].data() + offset(neighbour, f);
    }

    // Sends all and waits for all.
    void swap(MPI_Comm comm);

private:
    std::vector<int> ranks;
    std::vector<std::int32_t> edges;
    std::vector<std::vector<T>> out, in;

    std::size_t offset(int neighbour, int f) const
    {
        return static_cast<std::size_t>(f) * edges[neighbour];
    }
};

} // namespace swe
#endif
