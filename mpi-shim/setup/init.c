/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * init.c - MPI_Init and MPI_Finalize: MPI_COMM_WORLD is set up (setup.c) and ends, while sessions
 * (session.c) may go on.
 */
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/setup/agreement.h"
#include "mpi-shim/setup/launcher.h"
#include "mpi-shim/setup/session.h"
#include "mpi-shim/setup/setup.h"
#include "mpi-shim/wait/poll.h"
#include "mpi-shim/wait/watch.h"
#include "libinvasive/process.h"

/* The call is watched, if the library calls the hook.  MPI_Comm_idup is not used: after it the
 * library would look for non-blocking collectives at every poll (agreement.c). */
static int duplicate_world(const struct shim_agreement *a, MPI_Comm *own)
{
    MPI_Request request;
    (void)a;
    if (shim_hooked())
        return SHIM_WATCH(
            NULL, SHIM_DOMAIN_RANK_ALL, SHIM_DOMAIN_RANK_NONE,
            shim_pmpi.Comm_create_group(MPI_COMM_WORLD, shim_world.group, SHIM_TAG_UNUSED, own));
    int result = shim_pmpi.Comm_idup(MPI_COMM_WORLD, own, &request);
    return shim_complete(result, &request);
}

/* May threads call MPI at once?  The level is also asked for after MPI_Init, since the user may
 * have set it (MPIR_CVAR_DEFAULT_THREAD_LEVEL, OMPI_MPI_THREAD_LEVEL). */
static bool threads_call_at_once(void)
{
    int level = MPI_THREAD_MULTIPLE;
    shim_pmpi.Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

/* threads: number of threads of the process before MPI_Init; 0: unknown. */
static void set_up_world(const struct shim_launcher *launcher, unsigned threads)
{
    MPI_Group world;
    unsigned now = inv_threads_now();
    shim_world_opens();
    shim_poll_library_has(threads > 0 && now > threads ? now - threads : 0);
    if (threads_call_at_once())
        shim_threads_call();
    if (!shim_world.joined && shim_pmpi.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS)
        shim_join(world);
    shim_set_up(MPI_COMM_WORLD, 0, duplicate_world);
    if (shim_world.joined && inv_managed())
        shim_launcher_check(launcher, shim_world.size);
}

int shim_Init(int *argc, char ***argv)
{
    struct shim_launcher launcher;
    shim_clock_start();
    shim_launcher_read(&launcher);
    unsigned threads = inv_threads_now();
    int result = shim_pmpi.Init(argc, argv);
    if (result == MPI_SUCCESS && inv_asked())
        set_up_world(&launcher, threads);
    return result;
}

int shim_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    struct shim_launcher launcher;
    shim_clock_start();
    shim_launcher_read(&launcher);
    unsigned threads = inv_threads_now();
    int result = shim_pmpi.Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS && inv_asked())
        set_up_world(&launcher, threads);
    return result;
}

/* MPI_Finalize spins until all ranks have called it, so the ranks wait for each other here first.
 * Sessions may go on. */
int shim_Finalize(void)
{
    int sessions = shim_world_closes(), all_go_on = 0, mine = sessions > 0;
    struct shim_managed_group *all = shim_managed_group_of_all();
    if (shim_world.in_force && all)
        shim_Allreduce(&mine, &all_go_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!sessions)
        shim_tear_down(true);
    else if (all)
        shim_sessions_keep(all, all_go_on);
    return shim_pmpi.Finalize();
}
