/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trigger.c - how soon a task begins whose message has come, and what pending requests cost: for
 * bench/mpi/triggers.py.  Two ranks; rank 0 has the tasks, and rank 1 sends to them.
 *
 *   trigger polled COUNT LEVEL     the message's way alone: rank 0 tests in a loop
 *   trigger idle COUNT LEVEL       rank 0 waits in taskwait
 *   trigger busy COUNT LEVEL       all threads of rank 0 run other tasks, of TASK_US
 *   trigger pending COUNT LEVEL    so many requests to which no message comes
 *   trigger quiet SECONDS LEVEL    one such request, and rank 0 waits in taskwait
 *
 * LEVEL is that of MPI_Init_thread.  Times count from the begin of MPI_Send.
 */
#define _GNU_SOURCE
#include "bench/two.h"
#include "libinvasive/process/triggers.h"

#include <invasive-tasks.h>
#include <sys/resource.h>

enum { TASK_US = 20, TASKS = 30, LOOKS = 20000, BATCH = 32, GO = 1, STAMP = 2 };

__attribute__((weak)) extern struct inv_triggers inv_triggers; /* only where the process is managed */

static uint64_t sent, begun;    /* of the sample */
static uint64_t begin[TASKS]; /* of the other tasks */

static void spin_until(uint64_t ns)
{
    while (two_now_ns() < ns)
        ;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* A compiler leaves a task out whose body is empty, and the event with it. */
static void __attribute__((noinline)) stay(void)
{
    __asm__ volatile("" : : : "memory");
}

static void send_go(void)
{
    MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD);
}

/* --- rank 1 */

static void wait_for_go(void)
{
    MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Each at another time after the call, so that all moments of rank 0 are met. */
static void send_stamps(int count, int most_us)
{
    for (int i = 0; i < count; i++) {
        wait_for_go();
        spin_until(two_now_ns() + 30000 + (uint64_t)(i * 7919 % most_us) * 1000);
        uint64_t now = two_now_ns();
        MPI_Send(&now, 1, MPI_UINT64_T, 0, STAMP, MPI_COMM_WORLD);
    }
}

static void send_to_all(int count)
{
    wait_for_go();
    for (int i = 0; i < count; i++)
        MPI_Send(NULL, 0, MPI_INT, 0, STAMP + i, MPI_COMM_WORLD);
}

/* --- rank 0 */

static double polled(void)
{
    MPI_Request request;
    int flag = 0;
    MPI_Irecv(&sent, 1, MPI_UINT64_T, 1, STAMP, MPI_COMM_WORLD, &request);
    send_go();
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return (double)(two_now_ns() - sent) / 1000;
}

/* The task that waits for the message. */
static void add_task(void)
{
    omp_event_handle_t event;
    MPI_Request request;
#pragma omp task detach(event) depend(out : sent)
    stay();
#pragma omp taskyield /* its body ends */
    MPI_Irecv(&sent, 1, MPI_UINT64_T, 1, STAMP, MPI_COMM_WORLD, &request);
    inv_fulfil_when(&request, event);
#pragma omp task depend(in : sent)
    begun = two_now_ns();
}

static double idle(void)
{
    add_task();
    send_go();
#pragma omp taskwait
    return (double)(begun - sent) / 1000;
}

/* How many other tasks have begun between the send and the task.  0: the task was the first that
 * began at a scheduling point after the send. */
static double busy(void)
{
    int before = 0;
    add_task();
    send_go();
    for (int i = 0; i < TASKS; i++) {
#pragma omp task firstprivate(i)
        {
            begin[i] = two_now_ns();
            spin_until(begin[i] + TASK_US * 1000);
        }
    }
#pragma omp taskwait
    for (int i = 0; i < TASKS; i++)
        before += begin[i] > sent && begin[i] < begun;
    return before;
}

static void measure(const char *scene, int count, double (*sample)(void))
{
    double *value = calloc((size_t)count, sizeof *value);
    if (!value)
        two_fail("memory");
    for (int i = 0; i < count; i++)
        value[i] = sample();
    double late = two_quantile(value, (unsigned)count, 0.9);
    printf("%s %.3f\n%s_nine_tenths %.3f\n", scene, two_quantile(value, (unsigned)count, 0.5), scene,
           late);
    free(value);
}

static void time_looks(void)
{
    bool (*test)(enum inv_trigger_point) = &inv_triggers ? atomic_load(&inv_triggers.test) : NULL;
    if (!test)
        MPI_Abort(MPI_COMM_WORLD, 3);
    uint64_t start = two_now_ns();
    for (int i = 0; i < LOOKS; i++)
        test(INV_IN_MPI);
    double look = (double)(two_now_ns() - start) / LOOKS;
    printf("look_ns %.1f\nrequest_ns %.2f\n", look, look / BATCH);
}

static void pending(int count)
{
    MPI_Request *request = calloc((size_t)count, sizeof(MPI_Request));
    omp_event_handle_t event;
    if (!request)
        two_fail("memory");
    for (int i = 0; i < count; i++)
        MPI_Irecv(NULL, 0, MPI_INT, 1, STAMP + i, MPI_COMM_WORLD, &request[i]);
#pragma omp task detach(event)
    stay();
    inv_fulfil_when_all(count, request, MPI_STATUSES_IGNORE, event);
    time_looks();
    send_go();
#pragma omp taskwait
    free(request);
}

static void quiet(void)
{
    uint64_t start = two_now_ns();
    double cpu = cpu_seconds();
    add_task();
    send_go();
#pragma omp taskwait
    printf("quiet_percent %.3f\n", 1e11 * (cpu_seconds() - cpu) / (double)(two_now_ns() - start));
}

/* --- both */

static void receive(const char *scene, int count)
{
#pragma omp parallel
#pragma omp master
    {
        if (strcmp(scene, "polled") == 0)
            measure(scene, count, polled);
        else if (strcmp(scene, "idle") == 0)
            measure(scene, count, idle);
        else if (strcmp(scene, "busy") == 0)
            measure(scene, count, busy);
        else if (strcmp(scene, "pending") == 0)
            pending(count);
        else
            quiet();
    }
}

static void answer(const char *scene, int count)
{
    uint64_t now = 0;
    if (strcmp(scene, "pending") == 0) {
        send_to_all(count);
    } else if (strcmp(scene, "quiet") == 0) {
        wait_for_go();
        sleep((unsigned)count);
        MPI_Send(&now, 1, MPI_UINT64_T, 0, STAMP, MPI_COMM_WORLD);
    } else {
        send_stamps(count, strcmp(scene, "busy") == 0 ? TASK_US * TASKS / 2 : 100);
    }
}

int main(int argc, char **argv)
{
    int level, rank;
    MPI_Init_thread(&argc, &argv, argc == 4 ? atoi(argv[3]) : 0, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) {
        fputs("usage: trigger SCENE COUNT LEVEL\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0)
        receive(argv[1], atoi(argv[2]));
    else
        answer(argv[1], atoi(argv[2]));
    MPI_Finalize();
    return 0;
}
