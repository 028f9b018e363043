/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * lends.c - a process that lends its core by inv_lend and stays awake, beside one that computes.
 *
 *   lends computes WAKE END   dynamic loops of OpenMP until END
 *   lends HOW WAKE END        "blocks" on stdout when it has lent, awake until a line comes through
 *                             WAKE, ends the lend, "woken", awake until END, a region, "good"
 *   with MPI                  the last rank does the former, all others the latter
 *   lends alone               what the functions say in a process that runs by itself
 *
 * A thread that is awake is not one whose core rmd lends by itself.  WAKE and END are FIFOs, as of
 * blocks.cpp.  HOW: end_lend() has the ways to end it; `tasks` lends in implicit tasks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <invasive.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#define CHECK(condition)                                                                     \
    do                                                                                       \
        if (!(condition)) {                                                                  \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                   \
            fflush(stdout);                                                                  \
            abort();                                                                         \
        }                                                                                    \
    while (0)

static int wake_fd, end_fd;

static bool readable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    return poll(&asked, 1, 0) > 0;
}

static void stay_awake(int fd)
{
    while (!readable(fd))
        sched_yield();
}

static void hear(void)
{
    char line[2];
    stay_awake(wake_fd);
    CHECK(read(wake_fd, line, sizeof line) == sizeof line);
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

static void region(void)
{
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 10) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
    CHECK(sum == 499500);
}

static void compute_in_loops(void)
{
    while (!readable(end_fd)) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 400; i++)
            for (volatile int x = 0; x < 30000; x++)
                ;
    }
}

/* In a process whose only lender ends its lend: is it over? */
static void check_over(void)
{
    CHECK(inv_claim_now().held_cores > 0);
    CHECK(!inv_reclaim());
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* After a call that would wait: a lend ends by a wait, and not where the others were there already. */
static void check_over_if_waited_since(double start)
{
    if (now_s() - start < 0.2)
        inv_reclaim();
    check_over();
}

static void lend_before_barrier(void)
{
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 1)
            usleep(500000);
#pragma omp master
        CHECK(inv_lend());
        double start = now_s();
#pragma omp barrier
#pragma omp master
        check_over_if_waited_since(start);
    }
}

/* In which no other thread of the process can have a core. */
static void region_of_one(void)
{
#pragma omp parallel num_threads(1)
    check_over();
}

static void check_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(!inv_lend() && !inv_reclaim());
        region();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *in_thread(void *unused)
{
    CHECK(!inv_lend() && !inv_reclaim()); /* holds no core */
    return unused;
}

static void check_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Lends in a region, by each of its threads, reclaimed or not. */
static void lend_in_tasks(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int sum = 0;
#pragma omp parallel num_threads(8) reduction(+ : sum)
        {
            int me = omp_get_thread_num();
            if (me % 2 == round % 2)
                inv_lend();
            if (me % 3 == 0)
                usleep(100);
            if (me % 4 < 2)
                inv_reclaim();
            if (round % 3 == 0) {
#pragma omp barrier
            }
            if (round % 5 == 0 && me == 1) {
#pragma omp task shared(sum)
                inv_lend();
            }
#pragma omp for schedule(dynamic, 1)
            for (int i = 0; i < 100; i++)
                sum += i;
        }
        CHECK(sum == 4950);
    }
}

static void end_lend(const char *how)
{
    if (!strcmp(how, "reclaim")) {
        CHECK(inv_reclaim());
    } else if (!strcmp(how, "region")) {
        region_of_one();
    } else if (!strcmp(how, "exit")) {
        exit(0);
    } else if (!strcmp(how, "thread_exit")) {
        pthread_exit(NULL);
#ifdef WITH_MPI
    } else if (!strcmp(how, "mpi")) {
        say("waits");
        double start = now_s();
        MPI_Barrier(MPI_COMM_WORLD); /* the other rank is there after END */
        check_over_if_waited_since(start);
#endif
    } else {
        CHECK(!"a way to end it");
    }
    check_over();
}

static void lend(const char *how)
{
    CHECK(inv_lend());
    CHECK(!inv_lend()); /* calls do not nest */
    check_child();
    check_thread();
    say("blocks");
    hear();
    end_lend(how);
    say("woken");
    stay_awake(end_fd);
    region();
    say("good");
}

static void compute_or_lend(const char *how)
{
    region();
    if (!strcmp(how, "computes"))
        compute_in_loops();
    else if (!strcmp(how, "tasks")) {
        lend_in_tasks(200);
        say("blocks");
    } else
        lend(how);
}

/* On how many CPUs the kernel may place the thread. */
static int cpus_now(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof cpus, &cpus) > 0);
    return CPU_COUNT(&cpus);
}

/* The time slices that the thread has asked for; 0: the kernel's. */
static uint64_t slice_ns(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } now;
    CHECK(syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) == 0);
    return now.runtime;
}

/* Managed by itself, or not at all: which is said. */
static int be_alone(void)
{
    int cpus = cpus_now();
    CHECK(!inv_lend() && !inv_reclaim()); /* no member yet */
    region();
    uint64_t slice = slice_ns();
    bool managed = inv_claim_now().managed, lent = inv_lend();
    CHECK(lent == managed && cpus_now() == cpus);
    CHECK(system("true") == 0 && cpus_now() == cpus);
    CHECK(!managed || inv_claim_now().held_cores < inv_claim_now().owned_cores);
    CHECK(inv_reclaim() == managed && !inv_reclaim());
    CHECK(inv_claim_now().held_cores > 0 && slice_ns() == slice);
    for (int i = 0; i < 1000; i++) {
        CHECK(inv_lend() == managed);
        CHECK(inv_reclaim() == managed);
    }
    inv_lend();
    region_of_one();
    CHECK(slice_ns() == slice);
    inv_lend();
    region();
    CHECK(!inv_reclaim());
    if (managed)
        lend_before_barrier();
    lend_in_tasks(100);
    inv_lend();
    say(managed ? "managed" : "unmanaged");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "alone"))
        return be_alone();
    if (argc != 4 || (wake_fd = open(argv[2], O_RDWR)) < 0 || (end_fd = open(argv[3], O_RDWR)) < 0)
        return 2;
    const char *how = argv[1];
#ifdef WITH_MPI
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool twice = !strcmp(how, "mpi");
    if (rank == size - 1)
        how = "computes";
    compute_or_lend(how);
    if (twice && rank == size - 1)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#else
    compute_or_lend(how);
#endif
    return 0;
}
