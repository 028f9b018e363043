/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * triggers.c - tasks that become ready when messages arrive (invasive-tasks.h).  Two ranks; rank 0
 * has the tasks, rank 1 sends to them.  Prints "ok" on rank 0.
 *
 *   triggers LEVEL SCENE    LEVEL: 0 to 3, that of MPI_Init_thread
 *   one        a task for each of many messages, and one that depends on them all
 *   all        one event for many requests, null ones and a persistent one among them; statuses
 *   late       receives are posted when messages are there
 *   truncated  a message is too long; MPI_ERRORS_RETURN, or with another argument the handler that ends the job
 *   handler    the same, and the handler gives another request to a task
 *   answer     tasks answer to messages while the only thread waits in MPI_Recv: for invade --mpi-tasks
 *   wrong      arguments that are refused
 *   endless    both ranks have tasks, for ever
 */
#include <invasive-tasks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fewer than 64: the distribution's OpenMP runtime defers no more tasks of a team of one thread. */
enum { MESSAGES = 40 };

static int got[MESSAGES];
static omp_event_handle_t events[MESSAGES];
static MPI_Comm comm; /* the ranks of MPI_COMM_WORLD */

/* GCC leaves a task out whose body is empty, and the event with it. */
static void __attribute__((noinline)) stay(void)
{
    __asm__ volatile("" : : : "memory");
}

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "triggers: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check_all(void)
{
    for (int i = 0; i < MESSAGES; i++)
        check(got[i] == i + 1, "a task has run before its message came");
}

static void one(void)
{
    int sum = 0;
    for (int i = 0; i < MESSAGES; i++) {
        omp_event_handle_t event;
        MPI_Request request;
#pragma omp task detach(event) depend(out : got[i])
        stay();
        MPI_Irecv(&got[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
        check(inv_fulfil_when(&request, event) == MPI_SUCCESS, "inv_fulfil_when");
        check(request == MPI_REQUEST_NULL, "the request was left");
#pragma omp task depend(in : got[i]) firstprivate(i) shared(sum)
        {
            check(got[i] == i + 1, "a task has run before its message came");
#pragma omp atomic
            sum++;
        }
    }
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
#pragma omp taskwait
    check(sum == MESSAGES, "taskwait was over early");
}

static void all(void)
{
    static MPI_Request requests[MESSAGES + 1];
    static MPI_Status statuses[MESSAGES + 1];
    MPI_Request persistent;
    omp_event_handle_t event;
    MPI_Recv_init(&got[0], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &persistent);
    MPI_Start(&persistent);
    requests[0] = persistent;
    for (int i = 1; i < MESSAGES; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    requests[MESSAGES] = MPI_REQUEST_NULL;
#pragma omp task detach(event)
    stay();
    check(inv_fulfil_when_all(MESSAGES + 1, requests, statuses, event) == MPI_SUCCESS, "all");
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
#pragma omp taskwait
    check_all();
    for (int i = 0; i < MESSAGES; i++)
        check(statuses[i].MPI_TAG == i && statuses[i].MPI_ERROR == MPI_SUCCESS, "status");
    MPI_Request_free(&persistent); /* inactive */
}

static int arrived(MPI_Message *message, const MPI_Status *status, void *arg)
{
    static int count;
    MPI_Request request;
    int tag = status->MPI_TAG;
    check(arg == got, "argument");
    MPI_Imrecv(&got[tag], 1, MPI_INT, message, &request);
    check(inv_fulfil_when(&request, events[tag]) == MPI_SUCCESS, "inv_fulfil_when");
    return ++count < MESSAGES;
}

static void late(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        omp_event_handle_t event;
#pragma omp task detach(event)
        stay();
        events[i] = event;
    }
    check(inv_when_message(1, MPI_ANY_TAG, MPI_COMM_WORLD, arrived, got) == MPI_SUCCESS, "late");
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
#pragma omp taskwait
    check_all();
}

static void truncated(void)
{
    omp_event_handle_t event;
    MPI_Request request;
    MPI_Status status;
    int class;
    MPI_Irecv(&got[0], 1, MPI_INT, 1, 0, comm, &request);
#pragma omp task detach(event)
    stay();
    check(inv_fulfil_when_all(1, &request, &status, event) == MPI_SUCCESS, "truncated");
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
#pragma omp taskwait
    MPI_Error_class(status.MPI_ERROR, &class);
    check(class == MPI_ERR_TRUNCATE, "no error");
}

static MPI_Request another;

/* MPICH 4.0 allows no MPI call in a handler. */
static void give_another(MPI_Comm *where, int *code, ...)
{
    (void)where, (void)code;
    check(inv_fulfil_when(&another, events[1]) == MPI_SUCCESS, "in a handler");
}

static void handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(give_another, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler); /* which MPICH 4.0 calls instead */
    for (int i = 0; i < 2; i++) {
        omp_event_handle_t event;
#pragma omp task detach(event)
        stay();
        events[i] = event;
    }
    MPI_Request request;
    MPI_Irecv(&got[0], 1, MPI_INT, 1, 0, comm, &request);
    MPI_Irecv(&got[1], 1, MPI_INT, 1, 1, comm, &another);
    check(inv_fulfil_when(&request, events[0]) == MPI_SUCCESS, "inv_fulfil_when");
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
#pragma omp taskwait
    check(got[1] == 3, "the handler's message");
    MPI_Errhandler_free(&handler);
}

static void add_answers(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        omp_event_handle_t event;
        MPI_Request request;
#pragma omp task detach(event) depend(out : got[i])
        stay();
        MPI_Irecv(&got[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
        check(inv_fulfil_when(&request, event) == MPI_SUCCESS, "inv_fulfil_when");
#pragma omp task depend(in : got[i]) firstprivate(i)
        MPI_Send(&got[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    }
}

static void answer(void)
{
    int sum;
    add_answers();
    MPI_Send(NULL, 0, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD);
    MPI_Recv(&sum, 1, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(sum == MESSAGES * (MESSAGES + 1) / 2, "sum of the answers");
#pragma omp taskwait
}

static void wrong(void)
{
    omp_event_handle_t event;
    MPI_Request request = MPI_REQUEST_NULL;
#pragma omp task detach(event)
    stay();
    check(inv_fulfil_when(NULL, event) == MPI_ERR_REQUEST, "no request");
    check(inv_fulfil_when_all(1, NULL, MPI_STATUSES_IGNORE, event) == MPI_ERR_REQUEST, "none");
    check(inv_fulfil_when_all(-1, &request, MPI_STATUSES_IGNORE, event) == MPI_ERR_COUNT, "-1");
    check(inv_when_message(0, 0, MPI_COMM_WORLD, NULL, NULL) == MPI_ERR_ARG, "no function");
    check(inv_fulfil_when_all(0, NULL, MPI_STATUSES_IGNORE, event) == MPI_SUCCESS, "no requests");
#pragma omp taskwait
}

static void endless(int other)
{
    static double work;
    for (;;) {
        for (int i = 0; i < MESSAGES; i++) {
            omp_event_handle_t event;
            MPI_Request request;
#pragma omp task detach(event) depend(out : got[i])
            stay();
            MPI_Irecv(&got[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &request);
            inv_fulfil_when(&request, event);
#pragma omp task depend(in : got[i])
            for (int k = 0; k < 10000; k++) {
#pragma omp atomic
                work += k;
            }
        }
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(&i, 1, MPI_INT, other, i, MPI_COMM_WORLD);
#pragma omp taskwait
    }
}

static void send_two(void)
{
    int two[2] = {1, 2};
    MPI_Recv(NULL, 0, MPI_INT, 0, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(two, 2, MPI_INT, 0, 0, comm);
}

static void send_another(void)
{
    int three = 3;
    send_two();
    MPI_Send(&three, 1, MPI_INT, 0, 1, comm);
}

static void send_all(void)
{
    MPI_Recv(NULL, 0, MPI_INT, 0, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = MESSAGES - 1; i >= 0; i--) {
        int value = i + 1;
        if (i % 10 == 0)
            usleep(3000); /* so long that the other rank's threads fall asleep */
        MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    }
}

static void receive_answers(void)
{
    int sum = 0;
    for (int i = 0; i < MESSAGES; i++) {
        int value;
        MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += value;
    }
    MPI_Send(&sum, 1, MPI_INT, 0, MESSAGES, MPI_COMM_WORLD);
}

static const struct scene {
    const char *name;
    void (*tasks)(void);
    void (*messages)(void);
} scenes[] = {{"one", one, send_all}, {"all", all, send_all}, {"late", late, send_all},
              {"truncated", truncated, send_two}, {"handler", handler, send_another},
              {"answer", answer, send_all}, {"wrong", wrong, NULL}};

static void play(const char *name, int rank)
{
    for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, name) != 0)
            continue;
        if (rank == 0)
            scenes[i].tasks();
        else if (scenes[i].messages)
            scenes[i].messages();
    }
    if (rank == 1 && strcmp(name, "answer") == 0)
        receive_answers();
    if (strcmp(name, "endless") == 0)
        endless(1 - rank);
}

int main(int argc, char **argv)
{
    MPI_Request none = MPI_REQUEST_NULL;
    if (inv_fulfil_when(&none, (omp_event_handle_t)0) != MPI_ERR_OTHER)
        return 4;
    int level, rank, want = argc >= 3 ? atoi(argv[1]) : 0;
    MPI_Init_thread(&argc, &argv, want, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *scene = argc >= 3 ? argv[2] : "";
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (argc < 4) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which MPICH 4.0 calls instead */
    }
    int threads = strcmp(scene, "answer") == 0 ? 1 : 2;
#pragma omp parallel num_threads(threads)
#pragma omp master
    play(scene, rank);
    if (rank == 0)
        printf("ok\n");
    MPI_Finalize();
    return inv_fulfil_when(&none, (omp_event_handle_t)0) == MPI_ERR_OTHER ? 0 : 5;
}
