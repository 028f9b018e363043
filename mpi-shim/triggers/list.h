/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* list.h - the requests and probes that are pending (list.c). */
#ifndef TRIGGERS_LIST_H
#define TRIGGERS_LIST_H

#include "include/invasive-tasks.h"
#include "libinvasive/process/triggers.h"

#include <stdint.h>

/* An event that waits for several requests. */
struct trigger_group {
    omp_event_handle_t event;
    int left; /* under the lock */
};

struct trigger_probe {
    int source, tag;
    MPI_Comm comm;
    inv_message_fn *arrived;
    void *arg;
};

struct trigger_entry {
    MPI_Request request;
    MPI_Status *status; /* or MPI_STATUS_IGNORE */
    MPI_Fint *fortran_status; /* NULL: there is none */
    omp_event_handle_t event;
    struct trigger_group *group; /* NULL: the request is the only one of its event */
    struct trigger_probe *probe; /* NULL: a request */
};

/* Those of libinvasive-process.so where the process has it, else the library's own. */
struct inv_triggers *triggers_shared(void);
/* Does a thread that alone may call MPI test where it waits, in OpenMP and in MPI? */
bool triggers_main_tests(void);
/* Tests a batch of requests and probes, if the calling thread may at that point and no other
 * thread is at it; fulfils events.  True: it has fulfilled some, or a message has arrived. */
bool triggers_test(enum inv_trigger_point where);
/* Forgets all that is pending.  No thread tests any more when it returns. */
void triggers_end(void);
/* Appends all of the entries, or none; the first call finds out which threads may test, so it is
 * made by one that may call MPI.  MPI_SUCCESS, MPI_ERR_NO_MEM, or MPI_ERR_OTHER: MPI is not
 * there, or no thread would test.  *first: this call has begun to use MPI, so its end is to be
 * watched; or NULL. */
int triggers_append(const struct trigger_entry *e, unsigned count, bool *first);
/* The time of the latest test (CLOCK_MONOTONIC, ns). */
uint64_t triggers_tested_ns(void);

#endif
