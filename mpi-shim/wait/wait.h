/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * wait.h - the wait engine: check, spin, lend and sleep (wait.c).
 */
#ifndef SHIM_WAIT_H
#define SHIM_WAIT_H

#include "mpi-shim/measure/site.h"
#include "mpi-shim/ranks/comm.h"

#pragma GCC visibility push(hidden)

struct shim_wait {
    bool (*done)(struct shim_wait *); /* the check: is the wait over?  Also lets MPI make
                                         progress */
    void *arg;
    struct shim_comm *comm; /* the thread sleeps at this communicator's board; NULL: at none */
    bool at_arrival;        /* the board counts the thread as a sleeper until it is awake */
    int result;             /* MPI's code, set by done() */
};
/* Waits until done(), without running tasks meanwhile.  Must be called by the thread that would
 * have blocked. */
void shim_wait_idle(struct shim_wait *w, const void *call_site);
/* In a wait since `start` (ticks): sleeps with the core lent until done(), for at most limit_ticks.
 * until_rung: a ring ends the sleep, too.  True: done. */
bool shim_wait_slices(struct shim_wait *w, uint64_t start, uint64_t limit_ticks, bool until_rung);
/* Is it still better to spin than to lend, in a wait since `start` in which nothing has arrived
 * since `idle` (ticks)?  If the core's owner asks for the core, the thread may move to another
 * core. */
bool shim_spin_on(const struct shim_site *site, uint64_t start, uint64_t idle);

/* Tells the idle threads of the process until when cores are held in short waits (short_waits.h). */
void shim_short_waits_refresh(void);

/* Should the thread lend its core without spinning first?  True if the wait will be long and
 * another process wants a core and would get this one.  With more processes than cores a yield
 * returns only when other threads on the core have computed; the caller would hold its core all
 * that time. */
bool shim_lends_at_once(const struct shim_site *site);

/* With more processes than cores: how long to yield to other threads before the sleep, in ticks. */
uint64_t shim_yield_ticks(const struct shim_site *site);
/* Yields the CPU, in a wait.  *shared_at: ticks, when another thread has last run here; the
 * function sets it to now when one does.  True: no thread has run here for so long that a sleep is
 * better. */
bool shim_yield_is_enough(uint64_t *shared_at);

/* A thread that sleeps slice by slice: begin, then in turn a check and a slice, end. */
struct shim_sleep {
    struct shim_comm *comm; /* the thread sleeps at this communicator's board; NULL: at none */
    bool counted;           /* the board counts the thread as a sleeper */
    uint32_t seen;          /* the bell before the latest check */
    int64_t slice;          /* ns */
    bool steep;             /* slices do not grow: the one after the first has full length */
    uint64_t start;         /* of the wait, ticks */
    uint64_t check_until;   /* ticks: no sleep before; the thread was just rung, or preempted */
    uint64_t shared_at;     /* ticks: while checking, another thread has last run here then */
    uint64_t rang;          /* ticks: when this thread last rang for something that arrived */
};

/* How many ranks share a core of the domain: ranks in the domain / cores, rounded up; 1 with enough
 * cores. */
uint64_t shim_sharing(void);
/* The calling thread, in a wait since `start` (ticks), lends its core.  comm, counted: as in struct
 * shim_sleep. */
void shim_sleep_begin(struct shim_sleep *s, struct shim_comm *comm, bool counted, uint64_t start);
/* Sleeps for s->slice at most.  True: the thread was rung. */
bool shim_sleep_slice(struct shim_sleep *s);
/* The wait is over: the thread has a core again. */
void shim_sleep_end(struct shim_sleep *s);
/* A message has arrived at a sleeper's check: the thread keeps checking for a while.  The library
 * may answer the message, and the other side may sleep until the answer comes: MPICH moves the data
 * of MPI_Put and MPI_Get by messages back and forth.  True: it is time to ring the other side. */
bool shim_sleep_arrived(struct shim_sleep *s);

#pragma GCC visibility pop
#endif
