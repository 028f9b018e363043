/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * handler.c - error handlers: an error that MPI finds in a wait of the shim is reported to the
 * communicator's, as by the blocking function (errhandler.c).
 *
 * Open MPI's MPI_Test reports there by itself.  MPICH's MPI_Test reports to the handler of
 * MPI_COMM_SELF, whatever communicator the request is of.  That is MPI_COMM_WORLD's handler until
 * the program sets another one; before 4.0 it always is.  If the communicator's handler differs, or
 * is a function of the program, MPI_COMM_SELF and MPI_COMM_WORLD have MPI_ERRORS_RETURN during the
 * wait, and the communicator's handler is called after it.
 *
 * A handler that the program has never set is not set here either, as far as possible: setting it,
 * even to the same value, has an effect.  A communicator that MPICH duplicates from MPI_COMM_SELF
 * would no longer follow MPI_COMM_WORLD's handler.
 *
 * Where there are only sessions, MPICH has an internal MPI_COMM_WORLD as soon as two ranks have
 * made a communicator, and asks its handler.  A rank alone has MPI_COMM_SELF.
 *
 * While the program has not set a handler, all are the same, and nothing of this happens.
 */
#include "mpi-shim/ranks/handler.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/world.h"

struct shim_handlers shim_handlers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The communicators whose handlers MPI_Test may call; returns their number. */
static int asked_comms(MPI_Comm at[2])
{
    at[0] = MPI_COMM_WORLD;
    at[1] = MPI_COMM_SELF;
    if (shim_world.open)
        return 2;
    if (shim_world.size == 1)
        at[0] = MPI_COMM_SELF;
    return shim_is_open_mpi() ? 0 : 1;
}

/* Those of them whose handlers must be set: MPI_COMM_SELF follows MPI_COMM_WORLD until the program
 * sets a handler of its own. */
static int comms_to_change(MPI_Comm at[2])
{
    int count = asked_comms(at);
    inv_assert(count >= 0 && count <= 2);
    return count == 2 && !shim_handlers.self_set ? 1 : count;
}

static bool is_predefined(MPI_Errhandler handler)
{
    return handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL;
}

bool shim_errors_go_elsewhere(MPI_Comm comm)
{
    MPI_Errhandler handler[3];
    MPI_Comm at[3] = {comm};
    int count = 1 + asked_comms(at + 1);
    bool same = true;
    for (int i = 0; i < count; i++) {
        shim_pmpi.Comm_get_errhandler(at[i], &handler[i]);
        same = same && handler[i] == handler[0] && is_predefined(handler[0]);
    }
    for (int i = 0; i < count; i++)
        if (!is_predefined(handler[i]))
            shim_pmpi.Errhandler_free(&handler[i]);
    return !same;
}

bool shim_handlers_are_defaults(void)
{
    pthread_mutex_lock(&shim_handlers.lock);
    bool defaults = !shim_handlers.world_set && !shim_handlers.self_set && !shim_is_open_mpi();
    pthread_mutex_unlock(&shim_handlers.lock);
    return defaults;
}

void shim_errors_return_begin(void)
{
    pthread_mutex_lock(&shim_handlers.lock);
    if (shim_handlers.returning == 0)
        shim_handlers.count = comms_to_change(shim_handlers.saved_of);
    for (int i = 0; shim_handlers.returning == 0 && i < shim_handlers.count; i++) {
        shim_pmpi.Comm_get_errhandler(shim_handlers.saved_of[i], &shim_handlers.saved[i]);
        shim_pmpi.Comm_set_errhandler(shim_handlers.saved_of[i], MPI_ERRORS_RETURN);
    }
    shim_handlers.returning++;
    pthread_mutex_unlock(&shim_handlers.lock);
}

void shim_errors_return_end(void)
{
    pthread_mutex_lock(&shim_handlers.lock);
    inv_assert(shim_handlers.returning > 0 && shim_handlers.count >= 0 && shim_handlers.count <= 2);
    shim_handlers.returning--;
    for (int i = 0; shim_handlers.returning == 0 && i < shim_handlers.count; i++) {
        shim_pmpi.Comm_set_errhandler(shim_handlers.saved_of[i], shim_handlers.saved[i]);
        if (!is_predefined(shim_handlers.saved[i]))
            shim_pmpi.Errhandler_free(&shim_handlers.saved[i]);
    }
    pthread_mutex_unlock(&shim_handlers.lock);
}

void shim_handler_count_set(void)
{
    /* relaxed: two threads that set and wait at once have no order in MPI either */
    atomic_fetch_add_explicit(&shim_handlers.set, 1, memory_order_relaxed);
}

/* While another thread's wait has MPI_ERRORS_RETURN there, the new handler takes effect after
 * it. */
static int set_asked_handler(int (*set)(MPI_Comm, MPI_Errhandler), MPI_Comm comm,
                             MPI_Errhandler handler)
{
    pthread_mutex_lock(&shim_handlers.lock);
    int result = set(comm, handler);
    bool *is_set = comm == MPI_COMM_SELF ? &shim_handlers.self_set : &shim_handlers.world_set;
    *is_set |= result == MPI_SUCCESS;
    int changed = shim_handlers.returning && result == MPI_SUCCESS ? shim_handlers.count : 0;
    for (int i = 0; i < changed; i++)
        if (comm == shim_handlers.saved_of[i]) {
            if (!is_predefined(shim_handlers.saved[i]))
                shim_pmpi.Errhandler_free(&shim_handlers.saved[i]);
            shim_pmpi.Comm_get_errhandler(comm, &shim_handlers.saved[i]);
            shim_pmpi.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        }
    pthread_mutex_unlock(&shim_handlers.lock);
    return result;
}

/* Also called from functions of the program that the library calls.  For an invalid communicator
 * the library calls an error handler, which may leave by longjmp, so the lock is not held then. */
static int set_handler(int (*set)(MPI_Comm, MPI_Errhandler), MPI_Comm comm, MPI_Errhandler handler)
{
    bool asked = comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF;
    int result = asked ? set_asked_handler(set, comm, handler) : set(comm, handler);
    shim_handler_count_set();
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
