/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * invasive-tasks.h - OpenMP tasks that become ready when MPI messages arrive: invasive-tasks(7).
 *
 * Link with -linvasive-tasks-mpich or -linvasive-tasks-openmpi, before the MPI library, and call
 * MPI_Init or MPI_Init_thread, not sessions alone.  Works with `invade` and without.
 *
 * The functions are MPI calls: a thread may call them where it may call MPI.  They return
 * MPI_SUCCESS or one of the error codes named below, and call no error handler of MPI themselves.
 *
 * Requests are tested by threads that wait in OpenMP or in MPI, at task scheduling points and,
 * where MPI's thread level is MPI_THREAD_MULTIPLE, by a thread of the library that mostly sleeps.
 * An event is fulfilled by the thread that has tested the last request of it.
 *
 * Method: Charrier, Hazelwood, Weinzierl, "Enclave tasking for discontinuous Galerkin methods on
 * dynamically adaptive meshes", doi:10.1137/19M1276194, section 4.
 */
#ifndef INVASIVE_TASKS_H
#define INVASIVE_TASKS_H

#include <mpi.h>
#include <omp.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * inv_fulfil_when - fulfils an OpenMP event when a request is complete.
 *
 * request  in: any request; null and inactive ones count as complete.
 *          out: MPI_REQUEST_NULL: the library completes the request, and the program must not wait
 *          for it.  Of a persistent request, give a copy of the handle; it is inactive when the
 *          event is fulfilled, and can be started again.
 * event    of a task with the `detach` clause; fulfilled once, possibly before the function
 *          returns.
 *
 * An error of the operation goes to the error handler of its communicator, as from MPI_Wait, called
 * by the thread that tests; it may call these functions, and must not leave by longjmp.  If it
 * returns, the event is fulfilled.
 *
 * Returns MPI_SUCCESS; or, with nothing done and the request as it was:
 *   MPI_ERR_REQUEST  request is NULL
 *   MPI_ERR_NO_MEM   no memory
 *   MPI_ERR_OTHER    MPI is not initialised, or it is finalised; or no thread would test: the
 *                    MPI library does not give MPI_THREAD_MULTIPLE, which the program needs without
 *                    `invade`, and with it from MPI_THREAD_SERIALIZED on
 */
int inv_fulfil_when(MPI_Request *request, omp_event_handle_t event);

/*
 * inv_fulfil_when_all - the same for an event that waits for `count` >= 0 requests.
 *
 * statuses  out: `count` of them, valid when the event is fulfilled, and to be left alone until
 *           then; also MPI_ERROR of each is set, to MPI_SUCCESS or the error.  Or
 *           MPI_STATUSES_IGNORE.
 *
 * Returns also MPI_ERR_COUNT: count < 0.
 */
int inv_fulfil_when_all(int count, MPI_Request *requests, MPI_Status *statuses,
                        omp_event_handle_t event);

/*
 * What inv_when_message calls: `message` has arrived, and is matched.  Receives it by MPI_Imrecv,
 * for instance, and gives the request to inv_fulfil_when.  Must not block.  Is called by the thread
 * that has found the message, outside of any task; not by two threads at once for one probe.
 * Returns 0 when no more messages are to be looked for, else another number.
 */
typedef int inv_message_fn(MPI_Message *message, const MPI_Status *status, void *arg);

/*
 * inv_when_message - late receives: looks for messages as MPI_Improbe does, where requests are
 * tested, and calls `arrived` for each.  No buffer is needed before a message is there.
 *
 * source, tag, comm  as for MPI_Improbe, wildcards allowed.  comm must not be freed meanwhile.
 *
 * Returns MPI_SUCCESS; MPI_ERR_ARG: arrived is NULL; MPI_ERR_NO_MEM and MPI_ERR_OTHER as above.
 */
int inv_when_message(int source, int tag, MPI_Comm comm, inv_message_fn *arrived, void *arg);

#ifdef __cplusplus
}
#endif
#endif /* INVASIVE_TASKS_H */
