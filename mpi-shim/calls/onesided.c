/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * onesided.c - synchronisation of windows.
 *
 * Fence and free: an arrival barrier comes first (opened_group.c).  Post, start, complete, wait: a
 * rank that starts waits for messages of the shim that the other ranks have posted.  MPI_Win_wait
 * becomes repeated MPI_Win_test.  Lock, unlock and flush cannot be split: they wait until the
 * target makes progress.  So the target is woken if it sleeps in the wait engine; if it misses the
 * ring, its timer bounds the delay.
 */
#include "mpi-shim/calls/onesided.h"
#include "mpi-shim/arrival/opened_group.h"
#include "mpi-shim/dispatch/guard.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/watch.h"

int shim_wake_target(MPI_Win win, int rank)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (!g)
        return SHIM_DOMAIN_RANK_NONE;
    if (rank == SHIM_RANKS_ALL) {
        shim_opened_group_ring(g);
        return SHIM_DOMAIN_RANK_ALL;
    }
    if ((unsigned)rank >= (unsigned)g->size)
        return SHIM_DOMAIN_RANK_NONE;
    int domain_rank = shim_world.domain_rank_of[g->world_rank[rank]];
    if (rank != g->me)
        shim_ring(domain_rank);
    return domain_rank;
}

void shim_window_locked(MPI_Win win, int change)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (g)
        atomic_fetch_add_explicit(&g->locks, change, memory_order_relaxed);
}

static bool is_locked(struct shim_opened_group *g)
{
    return atomic_load_explicit(&g->locks, memory_order_relaxed) != 0;
}

int shim_Win_free(MPI_Win *win)
{
    struct shim_opened_group *g = win ? shim_opened_group_of_win(*win) : NULL;
    if (!g || is_locked(g) || g->started || g->posted) /* the latter are errors */
        return shim_pmpi.Win_free(win);
    if (!shim_hooked())
        shim_opened_group_barrier(g, SHIM_SITE);
    shim_opened_group_detach(g);
    int result = SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, shim_pmpi.Win_free(win));
    shim_opened_group_end(g, result == MPI_SUCCESS);
    return result;
}

int shim_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    int result = shim_pmpi.Win_post(group, assertion, win);
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (result == MPI_SUCCESS && g) {
        g->posted = true;
        if (shim_hooked())
            shim_opened_group_ring(g);
        else if (!(assertion & MPI_MODE_NOCHECK))
            shim_opened_group_notify_posted(g, group);
    }
    return result;
}

int shim_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (!shim_hooked() && g && !g->started && !is_locked(g) && !(assertion & MPI_MODE_NOCHECK))
        shim_opened_group_await_posted(g, group, SHIM_SITE);
    int result =
        SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, shim_pmpi.Win_start(group, assertion, win));
    if (result == MPI_SUCCESS && g)
        g->started = true;
    return result;
}

int shim_Win_complete(MPI_Win win)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    shim_opened_group_ring(g);
    int result = SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, shim_pmpi.Win_complete(win));
    if (result == MPI_SUCCESS && g)
        g->started = false;
    shim_opened_group_ring(g); /* they may be in MPI_Win_wait */
    return result;
}

struct exposure {
    MPI_Win win;
    int flag;
};

static bool check_win_test(struct shim_wait *w)
{
    struct exposure *e = w->arg;
    w->result = shim_pmpi.Win_test(e->win, &e->flag);
    return e->flag || w->result != MPI_SUCCESS;
}

int shim_Win_wait(MPI_Win win)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (!g || !g->posted)
        return shim_pmpi.Win_wait(win);
    struct exposure e = {.win = win};
    int result = shim_hooked() ? SHIM_WATCH(NULL, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
                                            shim_pmpi.Win_wait(win))
                               : shim_check_and_wait(check_win_test, &e, SHIM_SITE);
    if (result == MPI_SUCCESS)
        g->posted = false;
    return result;
}

int shim_Win_test(MPI_Win win, int *flag)
{
    struct shim_opened_group *g = shim_opened_group_of_win(win);
    if (!g || !g->posted || !flag)
        return shim_pmpi.Win_test(win, flag);
    struct exposure e = {.win = win};
    int result = shim_check_once(check_win_test, &e, SHIM_SITE);
    *flag = e.flag;
    if (result == MPI_SUCCESS && e.flag)
        g->posted = false;
    return result;
}
