/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* fulfil.c - what programs call (invasive-tasks.h). */
#include "mpi-shim/triggers/fulfil.h"
#include "mpi-shim/triggers/helper.h"
#include "mpi-shim/triggers/list.h"

#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    triggers_helper_end();
    triggers_end();
    return MPI_SUCCESS;
}

/* MPI_Finalize frees the attributes of MPI_COMM_SELF before all else, in any language. */
static void watch_finalize(void)
{
    int keyval;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL) == MPI_SUCCESS)
        PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
}

static int add(const struct trigger_entry *e, unsigned count)
{
    bool first;
    int level, result = triggers_append(e, count, &first);
    if (first)
        watch_finalize();
    if (result != MPI_SUCCESS)
        return result;
    PMPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE)
        triggers_helper_call();
    return MPI_SUCCESS;
}

struct trigger_entry *triggers_make(int count, omp_event_handle_t event)
{
    struct trigger_entry *e = calloc((size_t)count, sizeof *e);
    struct trigger_group *group = count > 1 ? malloc(sizeof *group) : NULL;
    if (!e || (count > 1 && !group)) {
        free(e);
        free(group);
        return NULL;
    }
    if (group)
        *group = (struct trigger_group){event, count};
    for (int i = 0; i < count; i++)
        e[i] = (struct trigger_entry){
            .request = MPI_REQUEST_NULL, .status = MPI_STATUS_IGNORE, .event = event, .group = group};
    return e;
}

int triggers_add(struct trigger_entry *e, int count)
{
    int result = add(e, (unsigned)count);
    if (result == MPI_SUCCESS)
        triggers_test(INV_IN_MPI); /* a message may be there */
    else
        free(e->group);
    return result;
}

PUBLIC int inv_fulfil_when(MPI_Request *request, omp_event_handle_t event)
{
    if (!request)
        return MPI_ERR_REQUEST;
    return inv_fulfil_when_all(1, request, MPI_STATUSES_IGNORE, event);
}

PUBLIC int inv_fulfil_when_all(int count, MPI_Request *requests, MPI_Status *statuses,
                               omp_event_handle_t event)
{
    if (count < 0 || (count > 0 && !requests))
        return count < 0 ? MPI_ERR_COUNT : MPI_ERR_REQUEST;
    if (count == 0) {
        omp_fulfill_event(event);
        return MPI_SUCCESS;
    }
    struct trigger_entry *e = triggers_make(count, event);
    if (!e)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < count; i++) {
        e[i].request = requests[i];
        if (statuses != MPI_STATUSES_IGNORE)
            e[i].status = &statuses[i];
        /* Now: once appended, another thread may complete them, and the task may use their
         * memory. */
        requests[i] = MPI_REQUEST_NULL;
    }
    int result = triggers_add(e, count);
    for (int i = 0; i < count && result != MPI_SUCCESS; i++)
        requests[i] = e[i].request;
    free(e);
    return result;
}

PUBLIC int inv_when_message(int source, int tag, MPI_Comm comm, inv_message_fn *arrived, void *arg)
{
    if (!arrived)
        return MPI_ERR_ARG;
    struct trigger_probe *p = malloc(sizeof *p);
    if (!p)
        return MPI_ERR_NO_MEM;
    *p = (struct trigger_probe){source, tag, comm, arrived, arg};
    int result = add(&(struct trigger_entry){.probe = p}, 1);
    if (result != MPI_SUCCESS)
        free(p);
    return result;
}
