/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * launcher.c - does MPI know of as many ranks as the launcher has started?
 *
 * An mpiexec of another MPI library than the program's starts n processes of which each takes
 * itself for rank 0 of 1, and all do the same work.  No library tells the user.
 */
#include "mpi-shim/setup/launcher.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/environment.h"
#include "mpi-shim/dispatch/library.h"
#include "libinvasive/process.h"

#include <limits.h>
#include <stdlib.h>

static long read_number(const char *variable)
{
    const char *text = inv_getenv(variable);
    char *end;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return value < 0 || *end || value > INT_MAX ? -1 : value;
}

/* Called before MPI_Init, in which a library may set variables that other launchers use.  If one
 * launcher has started another, the variables of both are set: ranks are missing only if none of
 * them says that there is one rank. */
void shim_launcher_read(struct shim_launcher *launcher)
{
    static const struct {
        const char *ranks, *rank, *name;
    } all[] = {
        {"PMI_SIZE", "PMI_RANK", "the mpiexec of MPICH or a relative"},
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "the mpiexec of Open MPI"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
    };
    *launcher = (struct shim_launcher){.ranks = 0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        long ranks = read_number(all[i].ranks), rank = read_number(all[i].rank);
        if (ranks == 1) {
            launcher->ranks = 0;
            return;
        }
        if (ranks < 0 || rank < 0 || launcher->ranks)
            continue;
        launcher->name = all[i].name;
        launcher->ranks = ranks;
        launcher->rank = rank;
    }
}

void shim_launcher_check(const struct shim_launcher *launcher, int ranks)
{
    if (ranks != 1 || launcher->ranks < 2)
        return;
    struct inv_record *r = inv_own_record();
    if (r)
        atomic_store_explicit(&r->launched, (uint32_t)launcher->ranks, memory_order_relaxed);
    if (launcher->rank == 0)
        inv_say_on_stderr("invasive: %s has started %ld ranks, but each is rank 0 of 1, since the "
                          "program's MPI is %s: start it with that MPI's mpiexec.\n",
                          launcher->name, launcher->ranks, SHIM_LIBRARY_NAME);
}
