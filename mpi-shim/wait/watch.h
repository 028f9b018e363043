/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * watch.h - watched calls (watch.c).
 *
 * If the library calls the shim from its progress engine (hook.c), wrappers call the library's own
 * blocking functions.  A short call then costs two stores; a long one is noticed from inside.
 */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/wait.h"

#pragma GCC visibility push(hidden)

/* Called once, in set-up: does the library call the hook while it waits? */
void shim_watch_set_up(bool hooked);
/* From now on several threads may call MPI at once, so none sleeps in the hook any more. */
void shim_watch_no_more(void);

/* The calling thread's watched call; only this thread writes it. */
struct shim_watch {
    struct shim_site *site; /* NULL: this thread is in no watched call */
    uintptr_t frame;        /* shim_thread.frame when the call began */
    struct shim_comm *comm; /* a collective's, else NULL */
    int peer[2];            /* domain ranks that may wait for what this call does */
    bool at_arrival;        /* no rank leaves the collective before all have arrived */
    bool asleep;
    bool slept;     /* is or was asleep in this call; valid if start is not 0 */
    unsigned rings; /* how often this thread, as a sleeper, may still ring the other ranks */
    unsigned polls; /* of the library, since the call began */
    unsigned awake; /* waits in sequence that did not sleep, with more processes than cores */
    uint64_t start; /* ticks: the first reading of the clock, a moment after the beginning */
    uint64_t idle;  /* ticks: nothing has arrived since then */
    uint64_t shared_at; /* ticks: another thread has last run here in a yield then */
    /* ticks: the first arrival of a message since the last slice of sleep; 0: none */
    uint64_t arrivals_since;
    struct shim_sleep sleep;
};
extern __thread struct shim_watch shim_watch
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The clock is read at every SHIM_WATCH_POLLS-th poll.  A call is over quickly if it has fewer than SHIM_QUICK_POLLS: a
 * message of a few bytes comes within 50 polls between cores that are far from each other. */
enum { SHIM_WATCH_POLLS = 16, SHIM_QUICK_POLLS = 64 };
/* The thread's latest watched call has not returned: an error handler has left it by longjmp. */
void shim_watch_abandoned(void);
/* The watched call ends, and the clock was read in it: records the wait. */
void shim_watch_waited(void);

/* Notes the call that begins.  The arguments as in shim_watch_begin. */
SHIM_INLINE void shim_watch_start(struct shim_site *site, struct shim_comm *comm, bool at_arrival,
                                  int peer, int other)
{
    shim_watch.site = site;
    shim_watch.frame = shim_thread.frame;
    shim_watch.comm = comm;
    shim_watch.peer[0] = peer;
    shim_watch.peer[1] = other;
    shim_watch.at_arrival = at_arrival;
    shim_watch.polls = 0;
    shim_watch.start = 0;
}

/* A watched call begins.  comm: the communicator of a collective, else NULL; at_arrival: as in
 * struct shim_watch.  The domain ranks `peer` and `other`, or SHIM_DOMAIN_RANK_NONE, are rung when
 * the call turns out to be long, and at its end. */
static inline void shim_watch_begin(struct shim_comm *comm, bool at_arrival, int peer, int other)
{
    if (__builtin_expect(shim_watch.site != NULL, 0))
        shim_watch_abandoned();
    shim_watch_start(shim_site(SHIM_SITE), comm, at_arrival, peer, other);
    shim_workload_call(SHIM_SITE);
}

/* The library's function has returned. */
SHIM_INLINE void shim_watch_over(void)
{
    if (__builtin_expect(shim_watch.start != 0, 0)) {
        shim_watch_waited();
    } else {
        uint32_t quick = atomic_load_explicit(&shim_watch.site->quick, memory_order_relaxed);
        if (__builtin_expect(quick < 64, 0))
            atomic_store_explicit(&shim_watch.site->quick, quick + 1, memory_order_relaxed);
    }
    shim_watch.site = NULL;
}

/* The same, and rings the ranks that may wait for this one. */
static inline void shim_watch_end(void)
{
    shim_ring(shim_watch.peer[0]);
    if (shim_watch.peer[1] != shim_watch.peer[0])
        shim_ring(shim_watch.peer[1]);
    if (shim_watch.comm)
        shim_ring_sleepers(shim_watch.comm, shim_watch.at_arrival);
    shim_watch_over();
}
/* The function for shim_hook_set: the library polls (hook.h). */
unsigned shim_polled(unsigned polls, unsigned how);

/* Calls a blocking function of the library, watched. */
#define SHIM_WATCH(comm, peer, other, call)                                                        \
    __extension__({                                                                                \
        shim_watch_begin(comm, false, peer, other);                                                \
        int result_ = (call);                                                                      \
        shim_watch_end();                                                                          \
        result_;                                                                                   \
    })
/* The same if the library calls the shim while it polls; else calls the function unwatched. */
#define SHIM_WATCH_OR_CALL(peer, call) \
    (shim_hooked() ? SHIM_WATCH(NULL, peer, SHIM_DOMAIN_RANK_NONE, call) : (call))
/* The same for a collective of a communicator, watched if the communicator is unmanaged.  With
 * ranks of other jobs the call may be long, and spawned ranks may need this rank's core
 * meanwhile. */
#define SHIM_WATCH_UNMANAGED(c, call)                                        \
    (shim_hooked() && (c) && (c)->unmanaged                                  \
         ? SHIM_WATCH(c, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE, call) \
         : (call))

#pragma GCC visibility pop
#endif
