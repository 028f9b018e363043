/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * onesided.c - synchronisation of windows.
 *
 * Fence and free: all ranks come together first (party.c).  Post, start, complete, wait: who
 * starts waits for the posts, which we tell each other; MPI_Win_wait is a row of MPI_Win_test.
 * Lock, unlock and flush wait for the target to make progress, and cannot be split: the target
 * is woken, if it sleeps in a wait of ours, and its timer bounds what it may miss.
 */
#include "shim.h"

int shim_rouse(MPI_Win win, int rank)
{
    struct shim_party *p = shim_party_of_win(win);
    if (!p)
        return SHIM_MEMBER_NONE;
    if (rank == SHIM_RANKS_ALL) {
        shim_party_ring(p);
        return SHIM_MEMBER_ALL;
    }
    if ((unsigned)rank >= (unsigned)p->size)
        return SHIM_MEMBER_NONE;
    int member = shim_world.member_of[p->world_rank[rank]];
    if (rank != p->me)
        shim_ring_member(member);
    return member;
}

void shim_window_locked(MPI_Win win, int change)
{
    struct shim_party *p = shim_party_of_win(win);
    if (p)
        atomic_fetch_add_explicit(&p->locks, change, memory_order_relaxed);
}

static bool is_locked(struct shim_party *p)
{
    return atomic_load_explicit(&p->locks, memory_order_relaxed) != 0;
}

int shim_Win_free(MPI_Win *win)
{
    struct shim_party *p = win ? shim_party_of_win(*win) : NULL;
    if (!p || is_locked(p) || p->started || p->posted) /* the latter are errors */
        return shim_pmpi.Win_free(win);
    if (!shim_hooked)
        shim_assemble_party(p, SHIM_SITE);
    shim_party_take(p);
    int result = SHIM_WATCH_OR_CALL(SHIM_MEMBER_NONE, shim_pmpi.Win_free(win));
    shim_party_end(p, result == MPI_SUCCESS);
    return result;
}

int shim_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    int result = shim_pmpi.Win_post(group, assertion, win);
    struct shim_party *p = shim_party_of_win(win);
    if (result == MPI_SUCCESS && p) {
        p->posted = true;
        if (shim_hooked)
            shim_party_ring(p);
        else if (!(assertion & MPI_MODE_NOCHECK))
            shim_party_tell_posted(p, group);
    }
    return result;
}

int shim_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    struct shim_party *p = shim_party_of_win(win);
    if (!shim_hooked && p && !p->started && !is_locked(p) && !(assertion & MPI_MODE_NOCHECK))
        shim_party_await_posted(p, group, SHIM_SITE);
    int result = SHIM_WATCH_OR_CALL(SHIM_MEMBER_NONE, shim_pmpi.Win_start(group, assertion, win));
    if (result == MPI_SUCCESS && p)
        p->started = true;
    return result;
}

int shim_Win_complete(MPI_Win win)
{
    struct shim_party *p = shim_party_of_win(win);
    shim_party_ring(p);
    int result = SHIM_WATCH_OR_CALL(SHIM_MEMBER_NONE, shim_pmpi.Win_complete(win));
    if (result == MPI_SUCCESS && p)
        p->started = false;
    shim_party_ring(p); /* they may be in MPI_Win_wait */
    return result;
}

struct exposure {
    MPI_Win win;
    int flag;
};

static bool look_win_test(struct shim_wait *w)
{
    struct exposure *e = w->arg;
    w->result = shim_pmpi.Win_test(e->win, &e->flag);
    return e->flag || w->result != MPI_SUCCESS;
}

int shim_Win_wait(MPI_Win win)
{
    struct shim_party *p = shim_party_of_win(win);
    if (!p || !p->posted)
        return shim_pmpi.Win_wait(win);
    struct exposure e = {.win = win};
    int result = shim_hooked ? SHIM_WATCH(NULL, SHIM_MEMBER_NONE, SHIM_MEMBER_NONE,
                                          shim_pmpi.Win_wait(win))
                             : shim_look_and_wait(look_win_test, &e, SHIM_SITE);
    if (result == MPI_SUCCESS)
        p->posted = false;
    return result;
}

int shim_Win_test(MPI_Win win, int *flag)
{
    struct shim_party *p = shim_party_of_win(win);
    if (!p || !p->posted || !flag)
        return shim_pmpi.Win_test(win, flag);
    struct exposure e = {.win = win};
    int result = shim_look_once(look_win_test, &e, SHIM_SITE);
    *flag = e.flag;
    if (result == MPI_SUCCESS && e.flag)
        p->posted = false;
    return result;
}
