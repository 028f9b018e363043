/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * triggers.h - tests of MPI requests whose completion makes an OpenMP task ready
 * (invasive-tasks(7)).
 *
 * The program's library of triggers (mpi-shim/triggers) knows the requests.  The OpenMP runtime and
 * the MPI shim call it where a thread has nothing better to do.  Neither knows the other.
 */
#ifndef INV_TRIGGERS_H
#define INV_TRIGGERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a thread is that offers to test. */
enum inv_trigger_point {
    INV_AT_IDLE,  /* in OpenMP, and waits */
    INV_AT_TASK,  /* at a task scheduling point, and has work: it tests now and then only */
    INV_IN_MPI    /* in a call of MPI that waits: it may call the library at any thread level */
};

struct inv_triggers {
    /* Requests and probes that are pending.  Writer: the library of triggers, under its lock.
     * relaxed: a hint; a thread that misses one looks again. */
    _Atomic unsigned pending;
    /* Tests some of them.  True: an event has been fulfilled, so a task may be ready.  Set once,
     * before `pending` is raised for the first time (release; partner: the acquire load of
     * inv_triggers_look). */
    _Atomic(bool (*)(enum inv_trigger_point)) test;
    /* Is the calling thread inside an MPI call?  Then it may test with INV_IN_MPI only.  NULL:
     * not known.  Set by the MPI shim in set-up; relaxed: a function of a library that stays
     * loaded. */
    _Atomic(bool (*)(void)) in_mpi;
    /* The library's own function of that name, past the shim's wrapper; NULL in a process that
     * the shim does not know.  Set by the MPI shim's dispatcher (release; partner: the library of
     * triggers). */
    _Atomic(void *(*)(const char *name)) mpi_function;
    /* Does the process's OpenMP runtime test?  Set by the runtime when it is loaded; relaxed:
     * read by MPI_Init of the library of triggers. */
    _Atomic bool in_openmp;
    /* The only thread that may call MPI, which has to test in its sleep, too; 0: there is none,
     * other threads test.  Writer and order as of `pending`. */
    _Atomic int only_tid;
};
extern struct inv_triggers inv_triggers;

/* May the calling thread test requests at that point?  Does so.  Result as of `test`. */
bool inv_triggers_look(enum inv_trigger_point where);
/* Is the calling thread, which is about to sleep in OpenMP, the only one that tests?  It then has
 * to wake up for that now and then. */
bool inv_triggers_need_me(void);

static inline bool inv_triggers_pending(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_triggers.pending, memory_order_relaxed) != 0, 0);
}

/* The same, where there may be none. */
static inline bool inv_triggers_test(enum inv_trigger_point where)
{
    return inv_triggers_pending() && inv_triggers_look(where);
}

/* How long (ns) a thread that tests between sleeps is to sleep next, if nothing has come for `since`
 * ns: a wait is prolonged by at most a sixteenth of it, and by 2 ms. */
static inline int64_t inv_triggers_slice(uint64_t since)
{
    enum { SLICE_PART = 16, FIRST_NS = 20000, LONGEST_NS = 2000000 };
    int64_t slice = (int64_t)since / SLICE_PART;
    return slice < FIRST_NS ? FIRST_NS : slice > LONGEST_NS ? LONGEST_NS : slice;
}

#endif
