/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * sessions.c - sessions SCENE: programs that open sessions, each of which prints what it has seen,
 * the same with and without us, for testsuite/mpi/test_sessions.py.
 *
 *   only     all kinds of waits in communicators of one session, without MPI_Init
 *   halves   none of the groups has all ranks; between two of them there is an intercommunicator
 *   merged   four ranks, and a communicator of all that was made from halves; rank 0 uses it
 *            before, and others after another one is made of all
 *   late     rank 0 is late each time: for a message, a collective, a group, the end; managed, until
 *            all others have slept 0.1 s
 *   world    the same for messages and collectives in MPI_COMM_WORLD, while a session is open
 *   around   a session is opened before MPI_Init, and closed after MPI_Finalize
 *   inside   a session is opened after MPI_Init, and closed before MPI_Finalize
 *   after    a session is opened after MPI_Init, and closed after MPI_Finalize
 *   again    a session, and when it is closed another one
 *   self     two sessions, and a communicator of one rank
 *   threads  a session of threads that call at once, and one that does not ask for it
 */
#include "asleep.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static long hash = 5381;

static void see(int number) { hash = (hash * 33 + number) & 0xffffff; }

static void need(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sessions: rank %d: %s\n", rank, what);
    abort();
}

static MPI_Session open_session(void)
{
    MPI_Session session;
    need(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS, "init");
    return session;
}

/* The ranks of the session's world that are `rest` modulo `step`. */
static MPI_Group part(MPI_Session session, int rest, int step)
{
    MPI_Group world, group;
    need(MPI_Group_from_session_pset(session, "mpi://WORLD", &world) == MPI_SUCCESS, "pset");
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &size);
    int ranges[1][3] = {{rest, size - 1, step}};
    if (step == 1)
        return world;
    MPI_Group_range_incl(world, rest < size, ranges, &group);
    MPI_Group_free(&world);
    return group;
}

static MPI_Comm of_group(MPI_Group group, const char *text)
{
    MPI_Comm comm;
    need(MPI_Comm_create_from_group(group, text, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
             MPI_SUCCESS,
         "create from group");
    MPI_Group_free(&group);
    return comm;
}

static void ring(MPI_Comm comm)
{
    int me, n, got = -1;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Sendrecv(&rank, 1, MPI_INT, (me + 1) % n, 1, &got, 1, MPI_INT, (me + n - 1) % n, 1, comm,
                 MPI_STATUS_IGNORE);
    see(got);
}

/* An error that MPI finds in a wait. */
static void truncated(MPI_Comm comm)
{
    int me, n, numbers[4] = {0};
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    if (me == 0 && n > 1)
        MPI_Send(numbers, 4, MPI_INT, 1, 2, comm);
    if (me == 1)
        see(MPI_Recv(numbers, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS);
}

static void window(MPI_Comm comm)
{
    int mine = 0, me, n, *base;
    MPI_Win win;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
    *base = 0;
    MPI_Win_fence(0, win);
    mine = me + 7;
    MPI_Put(&mine, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win); /* what is in it is not seen: MPICH 4.0 puts it to the wrong rank */
}

static void talk(MPI_Comm comm)
{
    int sum = 0, one = 1, me, flag = 0;
    MPI_Request request;
    MPI_Comm other;
    MPI_Group group;
    ring(comm);
    MPI_Comm_rank(comm, &me);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    see(sum);
    sum = me;
    MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
    see(sum);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    see(sum);
    MPI_Comm_dup(comm, &other);
    ring(other);
    MPI_Comm_free(&other);
    MPI_Comm_split(comm, me % 2, -me, &other);
    ring(other);
    MPI_Comm_group(other, &group);
    MPI_Comm third;
    MPI_Comm_create_group(comm, group, 3, &third);
    ring(third);
    MPI_Comm_free(&third);
    MPI_Group_free(&group);
    MPI_Comm_free(&other);
    window(comm);
    truncated(comm);
    see(MPI_Send(&one, 1, MPI_INT, 1000, 0, comm) != MPI_SUCCESS);
    see(MPI_Recv(&one, -1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_Barrier(comm);
}

static void talk_in(MPI_Session session, const char *text)
{
    MPI_Comm comm = of_group(part(session, 0, 1), text);
    talk(comm);
    MPI_Comm_free(&comm);
}

static void only(void)
{
    MPI_Session session = open_session();
    talk_in(session, "first");
    talk_in(session, "second");
    MPI_Session_finalize(&session);
}

static void halves(void)
{
    MPI_Session session = open_session();
    MPI_Group world = part(session, 0, 1), mine, other;
    MPI_Comm comm = of_group(part(session, rank % 2, 2), rank % 2 ? "odd" : "even"), inter;
    talk(comm);
    MPI_Comm_free(&comm);
    if (size > 1) {
        mine = part(session, rank % 2, 2);
        other = part(session, !(rank % 2), 2);
        need(MPI_Intercomm_create_from_groups(mine, 0, other, 0, "both", MPI_INFO_NULL,
                                              MPI_ERRORS_RETURN, &inter) == MPI_SUCCESS,
             "intercommunicator");
        int sum = 0;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
        see(sum);
        MPI_Barrier(inter);
        MPI_Intercomm_merge(inter, rank % 2, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        talk(comm);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&inter);
        MPI_Group_free(&mine);
        MPI_Group_free(&other);
    }
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
}

static MPI_Comm from_ranks(MPI_Session session, int first, int last, int step, const char *text)
{
    MPI_Group world = part(session, 0, 1), group;
    int ranges[1][3] = {{first, last, step}};
    MPI_Group_range_incl(world, 1, ranges, &group);
    MPI_Group_free(&world);
    return of_group(group, text);
}

static void merged(void)
{
    MPI_Session session = open_session();
    MPI_Group world = part(session, 0, 1);
    MPI_Group_free(&world);
    need(size == 4, "four ranks");
    int high = rank / 2, n = rank;
    MPI_Comm half = from_ranks(session, high * 2, high * 2 + 1, 1, high ? "high" : "low");
    MPI_Comm leaders = rank % 2 ? MPI_COMM_NULL : from_ranks(session, 0, 2, 2, "leaders");
    MPI_Comm inter, all, later;
    MPI_Intercomm_create(half, 0, leaders, !high, 5, &inter);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    if (rank == 0)
        MPI_Send(&n, 1, MPI_INT, 1, 1, all);
    later = of_group(part(session, 0, 1), "later");
    if (rank == 1)
        MPI_Recv(&n, 1, MPI_INT, 0, 1, all, MPI_STATUS_IGNORE);
    MPI_Bcast(&n, 1, MPI_INT, 3, all);
    see(n);
    talk(all);
    MPI_Comm_free(&later);
    MPI_Comm_free(&all);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    if (leaders != MPI_COMM_NULL)
        MPI_Comm_free(&leaders);
    MPI_Session_finalize(&session);
}

enum { MOST_RANKS = 64 };
static int pids[MOST_RANKS];

/* Stock ranks do not sleep while they wait. */
static void be_late(void)
{
    for (int r = 1; rank == 0 && r < size && getenv("INVASIVE_SOCKET"); r++)
        until_asleep_ms(pids[r], 100);
}

/* In a receive and in a barrier all others wait for rank 0. */
static void hear_of_the_first(MPI_Comm comm)
{
    int n = 0, pid = (int)getpid();
    need(size <= MOST_RANKS, "fewer ranks");
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, comm);
    be_late();
    if (rank == 0)
        for (int r = 1; r < size; r++)
            MPI_Send(&r, 1, MPI_INT, r, 5, comm);
    else
        MPI_Recv(&n, 1, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE);
    see(n);
    be_late();
    MPI_Barrier(comm);
}

static void late(void)
{
    MPI_Session session = open_session();
    MPI_Comm comm = of_group(part(session, 0, 1), "late"), again;
    hear_of_the_first(comm);
#ifndef MPICH /* Debian's spins there; the standard interface's header does not say whose it is */
    be_late();
#endif
    again = of_group(part(session, 0, 1), "again");
    MPI_Comm_free(&again);
    MPI_Comm_free(&comm);
    be_late();
    MPI_Session_finalize(&session);
}

static void init(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static void world(void)
{
    init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Session session = open_session();
    hear_of_the_first(MPI_COMM_WORLD);
    MPI_Session_finalize(&session);
    MPI_Finalize();
}

static void around(void)
{
    MPI_Session session = open_session();
    MPI_Comm comm = of_group(part(session, 0, 1), "around");
    talk(comm);
    init();
    talk(MPI_COMM_WORLD);
    talk(comm);
    MPI_Finalize();
    talk(comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

static void inside(void)
{
    init();
    MPI_Session session = open_session();
    talk_in(session, "inside");
    MPI_Session_finalize(&session);
    talk(MPI_COMM_WORLD);
    MPI_Finalize();
}

static void after(void)
{
    init();
    MPI_Session session = open_session();
    MPI_Comm comm = of_group(part(session, 0, 1), "after");
    talk(comm);
    MPI_Finalize();
    talk(comm);
    MPI_Comm_free(&comm);
    talk_in(session, "alone");
    MPI_Session_finalize(&session);
}

static void again(void)
{
    for (int i = 0; i < 3; i++)
        only();
}

static void self(void)
{
    MPI_Session session = open_session(), second = open_session();
    MPI_Group group;
    part(session, 0, 1);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm comm = of_group(group, "self");
    int n = 0;
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &n, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
    see(n);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&second);
    MPI_Session_finalize(&session);
}

static void threads(void)
{
    MPI_Info info;
    MPI_Session session;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    MPI_Info_free(&info);
    talk_in(session, "threads");
    only();
    talk_in(session, "threads");
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"only", only},     {"halves", halves}, {"merged", merged}, {"late", late},
                  {"world", world},   {"around", around}, {"inside", inside}, {"after", after},
                  {"again", again},   {"self", self},     {"threads", threads}};
    for (unsigned i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            printf("rank %d of %d: %06lx\n", rank, size, (unsigned long)hash);
            return 0;
        }
    fprintf(stderr, "usage: sessions SCENE\n");
    return 2;
}
