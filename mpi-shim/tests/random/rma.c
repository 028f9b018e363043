/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rma.c - windows and epochs of all three kinds.  Each rank's window has a part for each other
 * rank, which only that one writes, and one number that all of them add to: so the result does
 * not depend on the order.  It is not logged all the same with MPICH 4.0, where it differs from run
 * to run, without us too; nor is the number, with any.  That epochs end is what is tested there.
 */
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { PART = 8 };

struct window {
    struct comm *comm;
    MPI_Win win;
    int *base, ints; /* the last one is the sum */
};

static void open_window(struct world *w, struct window *v, struct comm *c)
{
    int way = below(&w->shared, 3);
#ifdef OPEN_MPI
    way = 1; /* Debian's has no way to create one on memory that is there */
#endif
    *v = (struct window){.comm = c, .ints = comm_size(c) * PART + 1};
    MPI_Aint bytes = (MPI_Aint)((size_t)v->ints * sizeof(int));
    if (c->side < 0)
        return;
    if (way == 0) {
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &v->base);
        MPI_Win_create(v->base, bytes, sizeof(int), MPI_INFO_NULL, c->handle, &v->win);
    } else if (way == 1) {
        MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, c->handle, &v->base, &v->win);
    } else {
        MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, c->handle, &v->base, &v->win);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, c->rank, 0, v->win);
    memset(v->base, 0, (size_t)bytes);
    MPI_Win_unlock(c->rank, v->win);
    MPI_Barrier(c->handle);
}

/* Open MPI 4.1 makes no windows for one rank. */
static struct comm *pick_window_comm(struct world *w)
{
    struct comm *c = pick_comm(w, false);
#ifdef OPEN_MPI
    return comm_size(c) > 1 ? c : NULL;
#else
    return c;
#endif
}

static void close_window(struct world *w, struct window *v, bool created)
{
    struct comm *c = v->comm;
    MPI_Barrier(c->handle);
    note(w, "window of %d ints", v->ints);
    int *base = v->base;
    MPI_Win_free(&v->win);
    if (created)
        MPI_Free_mem(base);
}

/* Write my part at target, and add to its sum. */
static void touch(struct world *w, struct window *v, int target, int round, int *part, int *one)
{
    for (int i = 0; i < PART; i++)
        part[i] = w->rank * 1000 + round * 10 + i;
    *one = w->rank + round + 1;
    MPI_Put(part, PART, MPI_INT, target, v->comm->rank * PART, PART, MPI_INT, v->win);
    MPI_Accumulate(one, 1, MPI_INT, target, v->ints - 1, 1, MPI_INT, MPI_SUM, v->win);
}

/* My part, read back. */
static void check_part(struct world *w, const int *part, const int *got)
{
#ifdef OPEN_MPI
    note(w, "my part is there: %d", memcmp(part, got, PART * sizeof *part) == 0);
#else
    (void)w, (void)part, (void)got;
#endif
}

static bool is_created(const struct window *v)
{
    int *flavor = NULL, flag = 0;
    MPI_Win_get_attr(v->win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    return flag && *flavor == MPI_WIN_FLAVOR_CREATE;
}

/* Memory that is attached later; its addresses are the displacements. */
static void dynamic_window(struct world *w, struct comm *c, int target, int source)
{
    int memory = -1, value = w->rank + 7;
    MPI_Aint mine, address[RANKS];
    MPI_Info info;
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, c->handle, &win);
    MPI_Info_create(&info);
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    MPI_Win_attach(win, &memory, sizeof memory);
    MPI_Get_address(&memory, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, address, 1, MPI_AINT, c->handle);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, target, address[target], 1, MPI_INT, win);
    MPI_Win_fence(0, win);
#ifdef OPEN_MPI
    note(w, "put to me: %d", memory);
#endif
    note(w, "a dynamic window, from %d", source);
    MPI_Win_detach(win, &memory);
    MPI_Win_free(&win);
}

void step_fence(struct world *w)
{
    struct window v;
    struct comm *c = pick_window_comm(w);
    if (!c)
        return;
    if (chance(&w->shared, 20)) {
        int by = below(&w->shared, comm_size(c)), n = comm_size(c);
        if (c->side >= 0)
            dynamic_window(w, c, (c->rank + by) % n, (c->rank + n - by) % n);
        return;
    }
    open_window(w, &v, c);
    int rounds = 1 + below(&w->shared, 4), shift = below(&w->shared, comm_size(c)),
        n = comm_size(c);
    if (c->side < 0)
        return;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, v.win);
    for (int round = 0; round < rounds; round++) {
        int part[PART], got[PART] = {0}, one, target = (c->rank + shift + round) % n;
        touch(w, &v, target, round, part, &one);
        if (chance(&w->mine, 20))
            dawdle(w);
        MPI_Win_fence(0, v.win);
        MPI_Get(got, PART, MPI_INT, target, c->rank * PART, PART, MPI_INT, v.win);
        MPI_Win_fence(round == rounds - 1 ? MPI_MODE_NOSUCCEED : 0, v.win);
        check_part(w, part, got);
    }
    close_window(w, &v, is_created(&v));
}

static void locked_one(struct world *w, struct window *v, int target, int round, bool exclusive)
{
    int part[PART], got[PART] = {0}, one;
    MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, v->win);
    touch(w, v, target, round, part, &one);
    if (chance(&w->mine, 10))
        dawdle(w);
    if (chance(&w->mine, 50))
        MPI_Win_flush_local(target, v->win);
    MPI_Win_flush(target, v->win);
    MPI_Get(got, PART, MPI_INT, target, v->comm->rank * PART, PART, MPI_INT, v->win);
    MPI_Win_unlock(target, v->win);
    check_part(w, part, got);
}

static void locked_all(struct world *w, struct window *v, int target, int round)
{
    int part[PART], got[PART] = {0}, one, before = -1, zero = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Win_lock_all(0, v->win);
    touch(w, v, target, round, part, &one);
    if (chance(&w->mine, 50))
        MPI_Win_flush_local_all(v->win);
    MPI_Win_flush_all(v->win);
    MPI_Fetch_and_op(&zero, &before, MPI_INT, target, v->ints - 1, MPI_SUM, v->win);
    MPI_Win_flush(target, v->win);
    MPI_Rget(got, PART, MPI_INT, target, v->comm->rank * PART, PART, MPI_INT, v->win, &request);
    finish(w, 1, &request, &status);
    check_part(w, part, got);
    MPI_Rput(part, PART, MPI_INT, target, v->comm->rank * PART, PART, MPI_INT, v->win, &request);
    finish(w, 1, &request, &status);
    MPI_Raccumulate(&zero, 1, MPI_INT, target, v->ints - 1, 1, MPI_INT, MPI_SUM, v->win, &request);
    finish(w, 1, &request, NULL);
    MPI_Rget_accumulate(&zero, 1, MPI_INT, &before, 1, MPI_INT, target, v->ints - 1, 1, MPI_INT,
                        MPI_SUM, v->win, &request);
    finish(w, 1, &request, NULL);
    MPI_Win_unlock_all(v->win);
}

void step_lock(struct world *w)
{
    struct window v;
    struct comm *c = pick_window_comm(w);
    if (!c)
        return;
    open_window(w, &v, c);
    int rounds = 1 + below(&w->shared, 4), n = comm_size(c);
    for (int round = 0; round < rounds; round++) {
        int shift = below(&w->shared, n), way = below(&w->shared, 3);
        if (c->side < 0)
            continue;
        if (way == 2)
            locked_all(w, &v, (c->rank + shift) % n, round);
        else
            locked_one(w, &v, (c->rank + shift) % n, round, way == 0);
    }
    if (c->side >= 0)
        close_window(w, &v, is_created(&v));
}

static void end_exposure(struct world *w, MPI_Win win)
{
    int flag = 0;
    if (chance(&w->mine, 50))
        MPI_Win_wait(win);
    else
        while (MPI_Win_test(win, &flag), !flag)
            if (chance(&w->mine, 2))
                dawdle(w);
}

void step_pscw(struct world *w)
{
    struct window v;
    struct comm *c = pick_window_comm(w);
    if (!c)
        return;
    open_window(w, &v, c);
    int rounds = 1 + below(&w->shared, 4), n = comm_size(c), shift = below(&w->shared, n);
    if (c->side < 0)
        return;
    int to = (c->rank + shift) % n, from = (c->rank + n - shift) % n;
    MPI_Group all, targets, origins;
    MPI_Comm_group(c->handle, &all);
    MPI_Group_incl(all, 1, &to, &targets);
    MPI_Group_incl(all, 1, &from, &origins);
    for (int round = 0; round < rounds; round++) {
        int part[PART], one;
        MPI_Win_post(origins, 0, v.win);
        MPI_Win_start(targets, 0, v.win);
        touch(w, &v, to, round, part, &one);
        if (chance(&w->mine, 20))
            dawdle(w);
        MPI_Win_complete(v.win);
        end_exposure(w, v.win);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&targets);
    MPI_Group_free(&origins);
    close_window(w, &v, is_created(&v));
}
