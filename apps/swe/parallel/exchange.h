// SPDX-License-Identifier: GPL-3.0-or-later
// exchange.h - the messages between ranks whose parts of the grid touch.
//
// One message to each neighbour and phase: what is at the edges that are shared with it, in an
// order that both know (grid/interfaces.h).  The threads that work on clusters write the
// outgoing messages in place and read the incoming ones; the thread that called MPI_Init sends
// them.  Either in between, swap(); or while others still work: begin(), then progress() now and
// then, by which each message is sent as soon as all of it is written, and finish().  Or, in place
// of finish(), hand_over(): then a task for each neighbour awaits what is under way (await()).
#ifndef SWE_PARALLEL_EXCHANGE_H
#define SWE_PARALLEL_EXCHANGE_H

#include <atomic>
#include <cstdint>
#include <mpi.h>
#include <omp.h>
#include <vector>
#include "../config.h"
#include "../grid/interfaces.h"

namespace swe {

// Messages of one type of number: `fields` numbers an edge, a field after the other.  All members
// are for the thread that called MPI_Init, but for outgoing(), incoming() and wrote().
template <class T> class Messages {
public:
    Messages(MPI_Comm comm_, Progression progression_) : comm(comm_), progression(progression_) {}
    ~Messages() { finish(); }

    // Not between begin() and finish().
    void resize(const Interfaces &interfaces, int fields);

    // Place 0 .. edges-1 of field f of the message to or from a neighbour; what comes in is what
    // the latest finish() or swap() has waited for.
    T *outgoing(int neighbour, int f) { return of[neighbour].place(of[neighbour].out, f); }
    const T *incoming(int neighbour, int f) const
    {
        return of[neighbour].place(of[neighbour].in[reading], f);
    }

    // Sends all and waits for all.
    void swap();

    // Outgoing messages are written from now on.
    void begin();
    // Any thread, once for each stretch of the message to a neighbour in each phase: it is in
    // place, or stays as it was.
    void wrote(int neighbour)
    {
        // release: partner is progress(), after whose load MPI reads what any thread has written
        of[neighbour].unwritten.fetch_sub(1, std::memory_order_release);
    }
    // Sends what is written, and does what the configuration says.
    void progress();
    // Waits for all since begin(), when all is written; else nothing.
    void finish();

    // Is the library linked by which messages make tasks ready?
    static bool can_trigger();
    // After begin(), when all is written: begin() may follow, and incoming() is what await() is for.
    // Returns false where nothing is under way.
    bool hand_over();
    // Fulfils the event when the message from the neighbour has come and the one to it may be
    // written again; once for each neighbour after hand_over().
    void await(int neighbour, omp_event_handle_t event);
    int neighbours() const { return static_cast<int>(of.size()); }

private:
    struct Neighbour {
        int rank = 0;
        std::int32_t edges = 0;
        std::int32_t stretches = 0; // of the message, each written by one cluster
        std::vector<T> out, in[2];  // one side of `in` is read while the other one is received
        std::atomic<std::int32_t> unwritten{0}; // stretches, since begin()
        bool sent = false, receives = false;
        MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
        MPI_Request handed_over[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; // for await()

        // As const as the vector is.
        template <class V> auto place(V &v, int f) const
        {
            return v.data() + static_cast<std::size_t>(f) * edges;
        }
    };

    MPI_Comm comm;
    Progression progression;
    std::vector<Neighbour> of;
    std::vector<MPI_Request> requests; // scratch memory
    int reading = 0;                   // side of `in`
    bool begun = false;

    void receive(Neighbour &n);
    void send(Neighbour &n);
    void test();
    void probe();
};

} // namespace swe
#endif
