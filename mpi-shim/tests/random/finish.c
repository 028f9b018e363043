/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * finish.c - all the ways to complete a set of requests.  Which one is taken, and in which
 * order requests come out of it, is the rank's own business: nothing of that is logged.
 */
#include "random.h"

#include <sched.h>
#include <stdlib.h>

void note_status(struct world *w, const char *what, const MPI_Status *s, MPI_Datatype type)
{
    int count = -1, elements = -1, cancelled = -1;
    MPI_Get_count(s, type, &count);
    MPI_Get_elements(s, type, &elements);
    MPI_Test_cancelled(s, &cancelled);
    note(w, "%s source %d tag %d count %d elements %d cancelled %d", what, s->MPI_SOURCE,
         s->MPI_TAG, count, elements, cancelled);
}

/* A polling program: mostly it does nothing between its tests. */
static void between_tests(struct world *w)
{
    if (chance(&w->mine, 5))
        sched_yield();
    if (chance(&w->mine, 1))
        dawdle(w);
}

static void one_by_one(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses)
{
    int order[256];
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = below(&w->mine, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int k = 0; k < n; k++) {
        int i = order[k], flag = 0, way = below(&w->mine, 4);
        if (way == 1)
            while (MPI_Test(&requests[i], &flag, &statuses[i]), !flag)
                between_tests(w);
        else if (way == 2) /* does not complete it, but lets MPI make progress */
            while (MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE), !flag)
                between_tests(w);
        if (way != 1)
            MPI_Wait(&requests[i], &statuses[i]);
    }
}

/* All that are not null are active.  (Asking again when all are done would do too, but for
 * MPICH 4.0, which waits for ever for a persistent collective that has not been started again.) */
static int active(int n, const MPI_Request *requests)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += requests[i] != MPI_REQUEST_NULL;
    return count;
}

static void any_of_them(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses)
{
    bool test = chance(&w->mine, 50);
    for (int left = active(n, requests); left > 0;) {
        int which = -7, flag = 1;
        MPI_Status status;
        if (test)
            MPI_Testany(n, requests, &which, &flag, &status);
        else
            MPI_Waitany(n, requests, &which, &status);
        if (!flag) {
            between_tests(w);
            continue;
        }
        require(w, which >= 0 && which < n, "any: no index");
        statuses[which] = status;
        left--;
    }
}

static void some_of_them(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses)
{
    bool test = chance(&w->mine, 50);
    for (int left = active(n, requests); left > 0;) {
        int count = -7, indices[256];
        MPI_Status some[256];
        if (test)
            MPI_Testsome(n, requests, &count, indices, some);
        else
            MPI_Waitsome(n, requests, &count, indices, some);
        require(w, count >= !test && count <= left, "some: not a number of requests");
        left -= count;
        for (int i = 0; i < count; i++)
            statuses[indices[i]] = some[i];
        if (count == 0)
            between_tests(w);
    }
}

/* All at once, or each alone. */
static void finish_silently(struct world *w, int n, MPI_Request *requests)
{
    int flag = 0, way = below(&w->mine, 4);
    if (way == 0)
        while (MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE), !flag)
            between_tests(w);
    else if (way == 1)
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; way > 1 && i < n; i++) {
        flag = 0;
        if (way == 2)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        else
            while (MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE), !flag)
                between_tests(w);
    }
}

void finish(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 0;
    require(w, n <= 256, "too many requests");
    if (!statuses) {
        finish_silently(w, n, requests);
        return;
    }
    switch (below(&w->mine, 6)) {
    case 0:
        one_by_one(w, n, requests, statuses);
        break;
    case 1:
        any_of_them(w, n, requests, statuses);
        break;
    case 2:
        some_of_them(w, n, requests, statuses);
        break;
    case 3:
        while (MPI_Testall(n, requests, &flag, statuses), !flag)
            between_tests(w);
        break;
    default:
        MPI_Waitall(n, requests, statuses);
    }
}
