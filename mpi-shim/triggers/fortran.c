/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* fortran.c - what Fortran programs call (invasive.f90): handles are integers, and statuses are
 * arrays. */
#include "mpi-shim/triggers/fulfil.h"

#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

#ifdef MPI_F_STATUS_SIZE
enum { STATUS_SIZE = MPI_F_STATUS_SIZE };
#else
enum { STATUS_SIZE = sizeof(MPI_Status) / sizeof(MPI_Fint) };
#endif

typedef int message_function(MPI_Fint *message, const MPI_Fint *status, void *arg);

struct probe_of_fortran {
    message_function *arrived;
    void *arg;
};

PUBLIC int inv_fulfil_when_f(MPI_Fint *request, omp_event_handle_t event);
PUBLIC int inv_fulfil_when_all_f(int count, MPI_Fint *requests, MPI_Fint *statuses,
                                 omp_event_handle_t event);
PUBLIC int inv_when_message_f(int source, int tag, MPI_Fint comm, message_function *arrived,
                              void *arg);

int inv_fulfil_when_f(MPI_Fint *request, omp_event_handle_t event)
{
    return inv_fulfil_when_all_f(1, request, NULL, event);
}

/* statuses: NULL where the argument is absent. */
int inv_fulfil_when_all_f(int count, MPI_Fint *requests, MPI_Fint *statuses,
                          omp_event_handle_t event)
{
    if (count <= 0)
        return inv_fulfil_when_all(count, NULL, MPI_STATUSES_IGNORE, event);
    struct trigger_entry *e = triggers_make(count, event);
    if (!e)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < count; i++) {
        e[i].request = PMPI_Request_f2c(requests[i]);
        e[i].fortran_status = statuses ? &statuses[(size_t)i * STATUS_SIZE] : NULL;
        requests[i] = PMPI_Request_c2f(MPI_REQUEST_NULL); /* now: as in inv_fulfil_when_all */
    }
    int result = triggers_add(e, count);
    for (int i = 0; i < count && result != MPI_SUCCESS; i++)
        requests[i] = PMPI_Request_c2f(e[i].request);
    free(e);
    return result;
}

static int call_fortran(MPI_Message *message, const MPI_Status *status, void *arg)
{
    struct probe_of_fortran *p = arg;
    MPI_Fint m = PMPI_Message_c2f(*message), s[STATUS_SIZE];
    PMPI_Status_c2f(status, s);
    int more = p->arrived(&m, s, p->arg);
    if (!more)
        free(p);
    return more;
}

int inv_when_message_f(int source, int tag, MPI_Fint comm, message_function *arrived, void *arg)
{
    struct probe_of_fortran *p = malloc(sizeof *p);
    if (!p)
        return MPI_ERR_NO_MEM;
    *p = (struct probe_of_fortran){arrived, arg};
    int result = inv_when_message(source, tag, PMPI_Comm_f2c(comm), call_fortran, p);
    if (result != MPI_SUCCESS)
        free(p);
    return result;
}
