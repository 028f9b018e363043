/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * session.c - sessions: MPI without MPI_COMM_WORLD.
 *
 * Opening a session is local: the other ranks may do so hours later.  The process joins the domain
 * then, and no more.  Making a communicator from a group is collective.  There the ranks agree
 * whether they are managed (setup.c), unless they are in a managed group already (managed_group.c).
 * The communicator for the shim's messages belongs to a session of the shim, so that it outlives
 * the program's sessions.
 */
#include "mpi-shim/setup/session.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/arrival/opened_group.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/ranks/handler.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/setup/agreement.h"
#include "mpi-shim/setup/setup.h"
#include "mpi-shim/wait/watch.h"
#include "libinvasive/process.h"
#include "libinvasive/base/uncancelled.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Written by this file's functions, under the lock, as is shim_world.open. */
static struct {
    pthread_mutex_t lock;
    int count; /* that the program has open */
    bool own_open;
    MPI_Session own; /* the shim's */
} sessions = {.lock = PTHREAD_MUTEX_INITIALIZER};

void shim_world_opens(void)
{
    pthread_mutex_lock(&sessions.lock);
    shim_world.open = true;
    pthread_mutex_unlock(&sessions.lock);
}

int shim_world_closes(void)
{
    pthread_mutex_lock(&sessions.lock);
    shim_world.open = false;
    int open = sessions.count;
    pthread_mutex_unlock(&sessions.lock);
    return open;
}

/* The thread level that the library has granted.  MPICH has the level of its first initialisation,
 * although 4.0 reports another one: after MPI_Init with a lower level, threads that call at once
 * make it fail. */
static bool threads_may_call(MPI_Session session)
{
    MPI_Info info;
    char level[32] = "MPI_THREAD_MULTIPLE";
    int length = sizeof level, found;
    if (shim_world.joined && !shim_is_open_mpi())
        return shim_world.threads_may_call;
    if (shim_pmpi.Session_get_info(session, &info) != MPI_SUCCESS)
        return true;
    shim_pmpi.Info_get_string(info, "thread_level", &length, level, &found);
    shim_pmpi.Info_free(&info);
    return strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

/* The group of all ranks, in the shim's session; under the lock. */
static bool open_own(MPI_Info info, MPI_Group *all)
{
    if (!sessions.own_open &&
        shim_pmpi.Session_init(info, MPI_ERRORS_RETURN, &sessions.own) != MPI_SUCCESS)
        return false;
    sessions.own_open = true;
    return shim_pmpi.Group_from_session_pset(sessions.own, "mpi://WORLD", all) == MPI_SUCCESS;
}

static void handle_opened(MPI_Session session, MPI_Info info)
{
    INV_UNCANCELLED;
    MPI_Group all;
    pthread_mutex_lock(&sessions.lock);
    inv_assert(sessions.count >= 0);
    sessions.count++;
    if (threads_may_call(session))
        shim_threads_call();
    if (!shim_world.joined && inv_wanted() && open_own(info, &all))
        shim_join(all);
    pthread_mutex_unlock(&sessions.lock);
}

int shim_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    if (!shim_world.joined)
        shim_clock_start();
    int result = shim_pmpi.Session_init(info, errhandler, session);
    if (result == MPI_SUCCESS)
        handle_opened(*session, info);
    return result;
}

/* MPICH's last finalize returns in no rank before all ranks have called it. */
static bool barrier_at_end(void)
{
    struct shim_managed_group *all = shim_managed_group_of_all();
    if (!all || all->own == MPI_COMM_NULL || shim_is_open_mpi())
        return false;
    shim_Barrier(all->own);
    return true;
}

static void close_last(void)
{
    shim_tear_down(barrier_at_end());
    if (sessions.own_open)
        shim_pmpi.Session_finalize(&sessions.own);
    sessions.own_open = false;
}

int shim_Session_finalize(MPI_Session *session)
{
    bool last = false;
    if (session && *session != MPI_SESSION_NULL) {
        pthread_mutex_lock(&sessions.lock);
        last = sessions.count > 0 && --sessions.count == 0 && !shim_world.open;
        pthread_mutex_unlock(&sessions.lock);
    }
    if (last)
        close_last();
    return shim_pmpi.Session_finalize(session);
}

/* --- communicators from groups */

/* A communicator of these ranks, in the shim's session. */
static int make_own(const struct shim_agreement *a, MPI_Comm *comm)
{
    MPI_Group group;
    char text[64];
    int result = shim_pmpi.Group_incl(shim_world.group, a->size, a->world_rank, &group);
    if (result != MPI_SUCCESS)
        return result;
    snprintf(text, sizeof text, "invasive %d", a->number);
    result = SHIM_WATCH_OR_CALL(
        SHIM_DOMAIN_RANK_ALL,
        shim_pmpi.Comm_create_from_group(group, text, MPI_INFO_NULL, MPI_ERRORS_RETURN, comm));
    shim_pmpi.Group_free(&group);
    return result;
}

void shim_sessions_keep(struct shim_managed_group *all, bool all_go_on)
{
    INV_UNCANCELLED;
    MPI_Comm old = all->own;
    MPI_Group group;
    if (all->number != 0)
        return; /* the communicator is of the shim's session already */
    all->own = MPI_COMM_NULL;
    pthread_mutex_lock(&sessions.lock);
    bool open = open_own(MPI_INFO_NULL, &group);
    pthread_mutex_unlock(&sessions.lock);
    if (open) { /* in the place of MPI_COMM_WORLD's group */
        shim_pmpi.Group_free(&shim_world.group);
        shim_world.group = group;
    }
    if (open && all_go_on)
        (void)shim_pmpi.Comm_create_from_group(group, "invasive", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                               &all->own);
    shim_pmpi.Comm_free(&old);
}

/* An arrival barrier if the group is managed.  Not where threads call at once: if two threads make
 * the first communicators of the same ranks, one may know already that the group is managed, and
 * the other not yet. */
static void barrier_of_group(MPI_Group group, int tag, const void *call_site)
{
    if (shim_managed_group_any() && !shim_hooked() && !shim_world.threads_may_call)
        shim_arrival_barrier_group(group, tag, call_site);
}

/* The core is lent while the other ranks of the first communicator are unknown and may be late. */
static bool lend_core(void)
{
    if (shim_managed_group_any() || !shim_world.joined || !inv_managed())
        return false;
    inv_wait_begin();
    return true;
}

int shim_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
                                MPI_Errhandler errhandler, MPI_Comm *newcomm)
{
    int number = shim_text_tag(stringtag) | 1; /* 0 is MPI_COMM_WORLD's */
    barrier_of_group(group, number, SHIM_SITE);
    bool lent = lend_core();
    int result = SHIM_WATCH_OR_CALL(
        SHIM_DOMAIN_RANK_NONE,
        shim_pmpi.Comm_create_from_group(group, stringtag, info, errhandler, newcomm));
    if (lent)
        inv_wait_end();
    if (result == MPI_SUCCESS && *newcomm != MPI_COMM_NULL) {
        shim_handler_count_set(); /* the new communicator has one */
        shim_set_up(*newcomm, number, make_own);
    }
    return result;
}

/* The ranks of both groups agree together. */
static void set_up_both(MPI_Comm inter, int number)
{
    MPI_Comm both;
    if (shim_pmpi.Intercomm_merge(inter, 0, &both) != MPI_SUCCESS)
        return;
    shim_set_up(both, number, make_own);
    shim_pmpi.Comm_free(&both);
}

int shim_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
                                      MPI_Group remote_group, int remote_leader,
                                      const char *stringtag, MPI_Info info,
                                      MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
    int number = shim_text_tag(stringtag) | 1;
    barrier_of_group(local_group, number, SHIM_SITE);
    bool lent = lend_core();
    int result = SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE,
                                    shim_pmpi.Intercomm_create_from_groups(
                                        local_group, local_leader, remote_group, remote_leader,
                                        stringtag, info, errhandler, newintercomm));
    if (lent)
        inv_wait_end();
    if (result == MPI_SUCCESS && *newintercomm != MPI_COMM_NULL) {
        shim_handler_count_set(); /* the new communicator has one */
        set_up_both(*newintercomm, number);
    }
    return result;
}
