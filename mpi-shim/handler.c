/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * handler.c - errors that MPI finds in a wait of ours go to the error handler to which the blocking
 * function would have reported them: the communicator's.
 *
 * Open MPI's MPI_Test does that itself.  MPICH's reports to MPI_COMM_SELF's, which is
 * MPI_COMM_WORLD's as long as it has never been set (before 4.0 to MPI_COMM_WORLD's), whatever
 * communicator the request is of.  Where the communicator's handler is another one, or the
 * program's own function, these are kept quiet during the wait, and the communicator's is called
 * after it.  One that has never been set stays so, as far as possible: to set it to what it is
 * would change what it is, since a communicator that MPICH makes of it then no longer follows
 * MPI_COMM_WORLD's.
 * Where there are only sessions, MPICH has MPI_COMM_WORLD inside all the same, as soon as two ranks
 * have made a communicator, and asks its handler; a rank alone has MPI_COMM_SELF.
 * As long as the program has never set a handler all are the same, and nothing of this happens.
 */
#include "shim.h"

#include <pthread.h>
#include <string.h>

_Atomic unsigned shim_handlers_set;

static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static int quiet; /* waits that want quiet now; several threads may wait */
static MPI_Errhandler kept[2];
static MPI_Comm kept_at[2];
static int kept_places;

bool shim_is_open_mpi(void)
{
    static _Atomic int known; /* relaxed: whoever finds it out finds the same */
    int known_now = atomic_load_explicit(&known, memory_order_relaxed);
    if (!known_now) {
        static char version[16384];
        int length = 0;
        shim_pmpi.Get_library_version(version, &length);
        known_now = strstr(version, "Open MPI") ? 1 : 2;
        atomic_store_explicit(&known, known_now, memory_order_relaxed);
    }
    return known_now == 1;
}

static bool world_set, self_set; /* by the program; under quiet_lock */

/* Whose handlers may be asked; how many they are. */
static int places(MPI_Comm at[2])
{
    at[0] = MPI_COMM_WORLD;
    at[1] = MPI_COMM_SELF;
    if (shim_world_is_open())
        return 2;
    if (shim_world.size == 1)
        at[0] = MPI_COMM_SELF;
    return shim_is_open_mpi() ? 0 : 1;
}

/* Those of them that have to be kept quiet: one that has never been set follows. */
static int places_to_quiet(MPI_Comm at[2])
{
    int count = places(at);
    return count == 2 && !self_set ? 1 : count;
}

static bool predefined(MPI_Errhandler handler)
{
    return handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL;
}

/* Does an error in a wait on it have to be reported in another way than MPI_Test does? */
static bool differs(MPI_Comm comm)
{
    MPI_Errhandler handler[3];
    MPI_Comm at[3] = {comm};
    int count = 1 + places(at + 1);
    bool same = true;
    for (int i = 0; i < count; i++) {
        shim_pmpi.Comm_get_errhandler(at[i], &handler[i]);
        same = same && handler[i] == handler[0] && predefined(handler[0]);
    }
    for (int i = 0; i < count; i++)
        if (!predefined(handler[i]))
            shim_pmpi.Errhandler_free(&handler[i]);
    return !same;
}

bool shim_handlers_are_defaults(void)
{
    pthread_mutex_lock(&quiet_lock);
    bool defaults = !world_set && !self_set && !shim_is_open_mpi();
    pthread_mutex_unlock(&quiet_lock);
    return defaults;
}

void shim_quiet_begin(void)
{
    pthread_mutex_lock(&quiet_lock);
    if (quiet == 0)
        kept_places = places_to_quiet(kept_at);
    for (int i = 0; quiet == 0 && i < kept_places; i++) {
        shim_pmpi.Comm_get_errhandler(kept_at[i], &kept[i]);
        shim_pmpi.Comm_set_errhandler(kept_at[i], MPI_ERRORS_RETURN);
    }
    quiet++;
    pthread_mutex_unlock(&quiet_lock);
}

void shim_quiet_end(void)
{
    pthread_mutex_lock(&quiet_lock);
    quiet--;
    for (int i = 0; quiet == 0 && i < kept_places; i++) {
        shim_pmpi.Comm_set_errhandler(kept_at[i], kept[i]);
        if (!predefined(kept[i]))
            shim_pmpi.Errhandler_free(&kept[i]);
    }
    pthread_mutex_unlock(&quiet_lock);
}

bool shim_errhandler_suspend_now(struct shim_comm *c, unsigned set)
{
    if (c->handlers_seen != set) {
        c->handler_differs = !shim_is_open_mpi() && differs(c->handle);
        c->handlers_seen = set;
    }
    if (c->handler_differs)
        shim_quiet_begin();
    return c->handler_differs;
}

int shim_errhandler_resume_now(MPI_Comm comm, int result)
{
    shim_quiet_end();
    if (result != MPI_SUCCESS)
        shim_pmpi.Comm_call_errhandler(comm, result);
    return result;
}

/* While another thread's wait keeps these two quiet, what is set comes into force after it. */
static int set_at_place(int (*set)(MPI_Comm, MPI_Errhandler), MPI_Comm comm, MPI_Errhandler handler)
{
    pthread_mutex_lock(&quiet_lock);
    int result = set(comm, handler);
    *(comm == MPI_COMM_SELF ? &self_set : &world_set) |= result == MPI_SUCCESS;
    for (int i = 0; quiet && result == MPI_SUCCESS && i < kept_places; i++)
        if (comm == kept_at[i]) {
            if (!predefined(kept[i]))
                shim_pmpi.Errhandler_free(&kept[i]);
            shim_pmpi.Comm_get_errhandler(comm, &kept[i]);
            shim_pmpi.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        }
    pthread_mutex_unlock(&quiet_lock);
    return result;
}

/* Also called by functions of the program that the library calls.  For a communicator that does not
 * exist it calls an error handler itself, which may leave by longjmp: no lock then. */
static int set_handler(int (*set)(MPI_Comm, MPI_Errhandler), MPI_Comm comm, MPI_Errhandler handler)
{
    int result = comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF ? set_at_place(set, comm, handler)
                                                                 : set(comm, handler);
    /* relaxed: two threads that set and wait at once have no order in MPI either */
    atomic_fetch_add_explicit(&shim_handlers_set, 1, memory_order_relaxed);
    return result;
}

int shim_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    return set_handler(shim_pmpi.Comm_set_errhandler, comm, handler);
}

int shim_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler)
{
    return set_handler(shim_pmpi.Errhandler_set, comm, handler);
}
