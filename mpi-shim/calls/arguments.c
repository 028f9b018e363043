/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* arguments.c - see arguments.h. */
#include "mpi-shim/calls/arguments.h"

/* Nothing but MPI_BOTTOM, the address 0, can be NULL; predefined types have no addresses. */
bool shim_null_buffer_valid(MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner = MPI_COMBINER_NAMED;
    shim_pmpi.Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    return combiner != MPI_COMBINER_NAMED;
}
