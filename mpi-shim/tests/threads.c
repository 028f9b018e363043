/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * threads.c - ranks of several threads, of which some wait in MPI and some compute; the first
 * argument says how.  Two ranks.  Each prints what it found, which is the same with and without us;
 * a scene that goes wrong says so, or hangs.  "SCENE init" calls MPI_Init: the user sets the level.
 *
 *   level N     MPI_Init_thread of that level; "level init" is MPI_Init
 *   funneled    thread 0 of a team exchanges messages, the others compute meanwhile
 *   serialized  whichever thread comes first exchanges messages, the others compute meanwhile
 *   answer      thread 0 waits for the answer to what its team sends after it has begun to wait
 *   task        the same, and it is a task that waits for what its siblings send
 *   two         threads of a rank wait in different calls at once, and are woken in turns
 *   helper      a thread waits in MPI_Recv all the time, and the main thread computes in regions
 *   starter     the thread that waits all the time is the one that has called MPI_Init_thread
 *   background  a thread computes while the main one waits; what cores the rank holds meanwhile
 *   idle        the same, but the thread sleeps
 *   abort       a thread calls MPI_Abort while the main one waits
 *   children    programs are started between MPI calls
 *   replaced    a rank becomes another program without MPI_Finalize
 *   spawn       MPI_Comm_spawn, and what comes of it
 */
#define _GNU_SOURCE
#include "burn.h"

#include <dlfcn.h>
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20, END = -1 };

static int rank, other;
static atomic_bool stop;

static void say(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%d: %s\n", rank, text);
    fflush(stdout);
}

static void require(bool good, const char *what)
{
    if (good)
        return;
    say("%s", what);
    _exit(9); /* other threads may be anywhere */
}

static int receive(int tag)
{
    int got = -2;
    MPI_Recv(&got, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}

static void send(int value, int tag) { MPI_Send(&value, 1, MPI_INT, other, tag, MPI_COMM_WORLD); }

/* --- levels */

static void *is_main(void *answer)
{
    MPI_Is_thread_main(answer);
    return NULL;
}

static void scene_level(const char *which)
{
    int provided = -1, query = -1, mine = -1, others = -1, size = 0;
    pthread_t thread;
    if (strcmp(which, "init") == 0)
        MPI_Init(NULL, NULL);
    else
        MPI_Init_thread(NULL, NULL, atoi(which), &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Query_thread(&query);
    MPI_Is_thread_main(&mine);
    pthread_create(&thread, NULL, is_main, &others);
    pthread_join(thread, NULL);
    other = 1 - rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* waits of both kinds: this level's way to wait works */
    for (int i = 0; i < 3 && size > 1; i++) {
        if (rank == 0)
            usleep(20000);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            usleep(20000);
        if (rank == 0)
            require(receive(i) == i, "wrong message");
        else
            send(i, i);
    }
    say("provided %d query %d main %d other thread %d", provided, query, mine, others);
    MPI_Finalize();
}

/* --- teams of which a thread waits */

static void exchange(int round, bool late)
{
    int got = -1, mine = 100 * round + rank;
    if (late)
        usleep(5000);
    MPI_Sendrecv(&mine, 1, MPI_INT, other, round, &got, 1, MPI_INT, other, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    require(got == 100 * round + other, "wrong message in a team");
}

static void scene_funneled(void)
{
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++)
#pragma omp parallel num_threads(THREADS) reduction(+ : sum)
    {
#pragma omp master
        exchange(round, round % 2 == rank);
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 2 * THREADS; i++) {
            burn_ms(0.5);
            sum += i;
        }
    }
    say("sum %g", sum);
}

static void scene_serialized(void)
{
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++)
#pragma omp parallel num_threads(THREADS) reduction(+ : sum)
    {
#pragma omp single nowait
        exchange(2 * round, round % 2 == rank);
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 2 * THREADS; i++) {
            burn_ms(0.5);
            sum += i;
        }
#pragma omp single
        exchange(2 * round + 1, round % 2 != rank);
    }
    say("sum %g", sum);
}

/* Rank 1's part: what thread 0 of rank 0 waits for, when all others have been heard. */
static void answer_team(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int sum = 0;
        for (int i = 1; i < THREADS; i++)
            sum += receive(i);
        send(sum, 0);
    }
}

static void scene_answer(void)
{
    if (rank == 1) {
        answer_team(ROUNDS);
        return;
    }
    long all = 0;
    for (int round = 0; round < ROUNDS; round++)
#pragma omp parallel num_threads(THREADS) reduction(+ : all)
    {
        int me = omp_get_thread_num();
        if (me == 0)
            all += receive(0);
        else {
            burn_ms(0.2);
            send(round * me, me);
        }
    }
    say("answers %ld", all);
}

static void scene_task(void)
{
    if (rank == 1) {
        answer_team(ROUNDS);
        return;
    }
    long all = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(THREADS)
#pragma omp single
        {
#pragma omp task shared(all)
            all += receive(0);
            for (int i = 1; i < THREADS; i++)
#pragma omp task firstprivate(i)
            {
                burn_ms(0.2);
                send(round * i, i);
            }
        }
    }
    say("answers %ld", all);
}

/* --- two waits at once.  Rank 1 comes to the barrier first and sends then, or the other way
 * round, so that each of the two threads of rank 0 is woken while the other one waits on. */

static MPI_Comm second_comm;

static void *barriers(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        usleep(2000);
        MPI_Barrier(second_comm);
    }
    return unused;
}

static void scene_two(void)
{
    pthread_t thread;
    int sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &second_comm);
    if (rank == 0) {
        pthread_create(&thread, NULL, barriers, NULL);
        for (int i = 0; i < ROUNDS; i++)
            sum += receive(i);
        pthread_join(thread, NULL);
    } else
        for (int i = 0; i < ROUNDS; i++) {
            if (i % 2)
                MPI_Barrier(second_comm);
            usleep(1000);
            send(i, i);
            usleep(1000);
            if (i % 2 == 0)
                MPI_Barrier(second_comm);
        }
    MPI_Comm_free(&second_comm);
    say("sum %d", sum);
}

/* --- a thread that waits all the time */

enum { TO_HELPER = 1, TO_MAIN = 2 };
static double helper_cpu_s;

/* Answers the other rank's main thread until that says it has come to its end. */
static void *help(void *unused)
{
    double before = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    for (int got; (got = receive(TO_HELPER)) != END;)
        send(2 * got, TO_MAIN);
    helper_cpu_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - before;
    return unused;
}

static double regions(void)
{
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for num_threads(2 * THREADS) reduction(+ : sum) schedule(static, 1)
        for (int i = 0; i < 2 * THREADS; i++) {
            burn_ms(rank == 0 ? 2 : 1);
            sum += i;
        }
        if (round % 5 == 0) {
            send(round, TO_HELPER);
            require(receive(TO_MAIN) == 2 * round, "wrong answer from a helper");
        }
    }
    send(END, TO_HELPER);
    return sum;
}

static void scene_helper(void)
{
    pthread_t helper;
    pthread_create(&helper, NULL, help, NULL);
    double sum = regions();
    pthread_join(helper, NULL);
    fprintf(stderr, "helper used %.0f%%\n", 100 * helper_cpu_s / cpu_s(CLOCK_PROCESS_CPUTIME_ID));
    MPI_Barrier(MPI_COMM_WORLD);
    say("sum %g", sum);
}

static atomic_bool started;

static void *start_and_help(void *unused)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    atomic_store(&started, true);
    help(unused);
    while (!atomic_load(&stop))
        usleep(1000);
    MPI_Finalize();
    return unused;
}

static void scene_starter(void)
{
    pthread_t helper;
    pthread_create(&helper, NULL, start_and_help, NULL);
    while (!atomic_load(&started))
        usleep(1000);
    say("sum %g", regions());
    atomic_store(&stop, true);
    pthread_join(helper, NULL);
}

/* --- a thread beside the one that waits.  It looks how many cores the process holds, if it is
 * managed: what is lent is not held. */

struct claim { /* as in invasive.h */
    unsigned owned_cores, held_cores;
    bool managed;
};
static struct claim (*claim_now)(void);
static unsigned samples, held;
static double ran_s, sampled_s;

static void *sample(void *idle)
{
    double begin = MPI_Wtime(), end = begin + 0.1; /* the wait has been noticed by then */
    while (!atomic_load(&stop)) {
        if (idle)
            usleep(1000);
        else
            burn_ms(0.2);
        if (claim_now && MPI_Wtime() > end) {
            samples++;
            held += claim_now().held_cores > 0;
        }
    }
    sampled_s = MPI_Wtime() - begin;
    ran_s = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void scene_beside(bool idle)
{
    pthread_t thread;
    *(void **)&claim_now = dlsym(RTLD_DEFAULT, "inv_claim_now");
    if (rank == 0) {
        pthread_create(&thread, NULL, sample, idle ? &stop : NULL);
        receive(0);
        atomic_store(&stop, true);
        pthread_join(thread, NULL);
        fprintf(stderr, "held %u of %u, ran %.0f%%\n", held, samples, 100 * ran_s / sampled_s);
    } else {
        double end = MPI_Wtime() + 0.6;
        while (MPI_Wtime() < end)
#pragma omp parallel for num_threads(2 * THREADS) schedule(static, 1)
            for (int i = 0; i < 2 * THREADS; i++)
                burn_ms(1);
        send(0, 0);
    }
    say("through");
}

/* --- ends */

static void *abort_job(void *unused)
{
    usleep(100000);
    MPI_Abort(MPI_COMM_WORLD, 19);
    return unused;
}

static void scene_abort(void)
{
    pthread_t thread;
    if (rank == 1)
        pthread_create(&thread, NULL, abort_job, NULL);
    receive(0); /* never sent */
}

static void show_output(const char *command)
{
    char line[256] = "";
    FILE *f = popen(command, "r");
    require(f != NULL, "popen");
    while (fgets(line, sizeof line, f))
        say("%.*s", (int)strcspn(line, "\n"), line);
    say("pclose %d", pclose(f));
}

static void scene_children(void)
{
    for (int i = 0; i < 3; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        say("system %d", system("exit 3"));
        show_output("grep Cpus_allowed_list /proc/self/status");
        MPI_Barrier(MPI_COMM_WORLD);
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
            _exit(1);
        }
        waitpid(child, &status, 0);
        say("child %d", status);
    }
}

/* Rank 0 has nothing to say, since it may be killed when the other one has ended. */
static void scene_replaced(void)
{
    if (rank == 1) {
        send((int)getpid(), 0);
        execl("/bin/sh", "sh", "-c", "echo 1: replaced; grep Cpus_allowed_list /proc/self/status",
              (char *)NULL);
    }
    int pid = receive(0);
    while (kill(pid, 0) == 0)
        usleep(10000);
    _exit(0);
}

static char *program; /* argv[0] */

static void scene_spawn(void)
{
    char text[MPI_MAX_ERROR_STRING] = "", *arguments[] = {"child", NULL};
    int class = -1, length = 0, got = 0;
    MPI_Comm children;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                               MPI_ERRCODES_IGNORE);
    MPI_Error_class(error, &class);
    MPI_Error_string(error, text, &length);
    if (error == MPI_SUCCESS && rank == 0)
        MPI_Recv(&got, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS)
        MPI_Comm_disconnect(&children);
    say("spawn %d %s %d", class, strtok(text, "\n"), got);
}

static void be_child(void)
{
    MPI_Comm parent;
    int value = 42;
    MPI_Comm_get_parent(&parent);
    MPI_Send(&value, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

/* --- */

static void scene_background(void) { scene_beside(false); }
static void scene_idle(void) { scene_beside(true); }

static const struct scene {
    const char *name;
    int level;
    void (*play)(void);
} scenes[] = {{"funneled", MPI_THREAD_FUNNELED, scene_funneled},
              {"serialized", MPI_THREAD_SERIALIZED, scene_serialized},
              {"answer", MPI_THREAD_MULTIPLE, scene_answer},
              {"task", MPI_THREAD_MULTIPLE, scene_task},
              {"two", MPI_THREAD_MULTIPLE, scene_two},
              {"helper", MPI_THREAD_MULTIPLE, scene_helper},
              {"background", MPI_THREAD_FUNNELED, scene_background},
              {"idle", MPI_THREAD_FUNNELED, scene_idle},
              {"abort", MPI_THREAD_MULTIPLE, scene_abort},
              {"children", MPI_THREAD_SINGLE, scene_children},
              {"replaced", MPI_THREAD_SINGLE, scene_replaced},
              {"spawn", MPI_THREAD_SINGLE, scene_spawn},
              {"child", MPI_THREAD_SINGLE, be_child}};

static void play(const struct scene *scene, bool plain_init)
{
    int provided;
    if (plain_init)
        MPI_Init(NULL, NULL);
    else
        MPI_Init_thread(NULL, NULL, scene->level, &provided);
    MPI_Query_thread(&provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    require(provided >= scene->level, "no such thread level");
    scene->play();
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    program = argv[0];
    if (strcmp(name, "starter") == 0)
        scene_starter();
    else if (strcmp(name, "level") == 0)
        scene_level(argc > 2 ? argv[2] : "init");
    else
        for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++)
            if (strcmp(name, scenes[i].name) == 0)
                play(&scenes[i], argc > 2);
    return 0;
}
