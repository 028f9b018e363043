// SPDX-License-Identifier: GPL-3.0-or-later
// exchange.cc - messages by non-blocking sends and receives.
#include "exchange.h"

#include <stdexcept>
#include "../../../include/invasive-tasks.h"

#pragma weak inv_fulfil_when_all

namespace swe {

static MPI_Datatype type_of(float) { return MPI_FLOAT; }
static MPI_Datatype type_of(double) { return MPI_DOUBLE; }
static MPI_Datatype type_of(std::uint8_t) { return MPI_UINT8_T; }

// Values of a phase may be under way while marks are told.
template <class T> static constexpr int TAG = sizeof(T) == 1 ? 2 : 1;

template <class T> void Messages<T>::resize(const Interfaces &interfaces, int fields)
{
    if (begun)
        throw std::logic_error("messages of a grid that is no more");
    of = std::vector<Neighbour>(interfaces.neighbours.size());
    for (std::size_t i = 0; i < of.size(); i++) {
        of[i].rank = interfaces.neighbours[i];
        of[i].edges = interfaces.shared_edges[i];
        std::size_t numbers = static_cast<std::size_t>(fields) * of[i].edges;
        of[i].out.assign(numbers, T{});
        for (auto &in : of[i].in)
            in.assign(numbers, T{});
    }
    for (const auto &runs : interfaces.runs)
        for (const Run &run : runs)
            if (run.kind == Run::RANK)
                of[run.partner].stretches++;
}

template <class T> void Messages<T>::receive(Neighbour &n)
{
    std::vector<T> &in = n.in[reading ^ 1];
    MPI_Irecv(in.data(), static_cast<int>(in.size()), type_of(T{}), n.rank, TAG<T>, comm,
              &n.receiving);
    n.receives = true;
}

template <class T> void Messages<T>::send(Neighbour &n)
{
    MPI_Isend(n.out.data(), static_cast<int>(n.out.size()), type_of(T{}), n.rank, TAG<T>, comm,
              &n.sending);
    n.sent = true;
}

template <class T> void Messages<T>::begin()
{
    begun = true;
    for (Neighbour &n : of) {
        n.unwritten.store(n.stretches, std::memory_order_relaxed); // threads start after this
        n.sent = n.receives = false;
        if (progression != Progression::LATE)
            receive(n);
    }
}

template <class T> void Messages<T>::progress()
{
    for (Neighbour &n : of)
        if (!n.sent && n.unwritten.load(std::memory_order_acquire) == 0)
            send(n);
    if (progression == Progression::TEST)
        test();
    else if (progression == Progression::LATE)
        probe();
}

// MPI libraries move long messages only in calls.
template <class T> void Messages<T>::test()
{
    int done;
    for (Neighbour &n : of) {
        MPI_Test(&n.receiving, &done, MPI_STATUS_IGNORE); // of none: done
        MPI_Test(&n.sending, &done, MPI_STATUS_IGNORE);
    }
}

template <class T> void Messages<T>::probe()
{
    int has_come;
    for (Neighbour &n : of) {
        if (n.receives)
            continue;
        MPI_Iprobe(n.rank, TAG<T>, comm, &has_come, MPI_STATUS_IGNORE);
        if (has_come)
            receive(n);
    }
}

template <class T> void Messages<T>::finish()
{
    if (!begun)
        return;
    requests.clear();
    for (Neighbour &n : of) {
        if (!n.receives)
            receive(n);
        requests.push_back(n.receiving);
    }
    for (Neighbour &n : of)
        requests.push_back(n.sending);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (Neighbour &n : of)
        n.sending = n.receiving = MPI_REQUEST_NULL;
    reading ^= 1;
    begun = false;
}

template <class T> bool Messages<T>::can_trigger() { return inv_fulfil_when_all != nullptr; }

template <class T> bool Messages<T>::hand_over()
{
    if (!begun)
        return false;
    for (Neighbour &n : of) {
        n.handed_over[0] = n.receiving;
        n.handed_over[1] = n.sending;
        n.receiving = n.sending = MPI_REQUEST_NULL;
    }
    reading ^= 1;
    begun = false;
    return true;
}

template <class T> void Messages<T>::await(int neighbour, omp_event_handle_t event)
{
    MPI_Request *requests_ = of[neighbour].handed_over;
    if (inv_fulfil_when_all(2, requests_, MPI_STATUSES_IGNORE, event) == MPI_SUCCESS)
        return;
    MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE); // no memory, or another level of threads
    omp_fulfill_event(event);
}

template <class T> void Messages<T>::swap()
{
    finish();
    begun = true;
    for (Neighbour &n : of)
        receive(n);
    for (Neighbour &n : of)
        send(n);
    finish();
}

template class Messages<float>;
template class Messages<double>;
template class Messages<std::uint8_t>;

} // namespace swe
