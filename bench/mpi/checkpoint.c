/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * checkpoint.c - a solver whose rank 0 writes a checkpoint every tenth step, beside another program.
 *
 *   checkpoint rate                              steps_per_ms of one thread
 *   checkpoint beside KIND DIRECTORY COMMAND...  runs the command, the reader, and of KIND program the other
 *                                                program beside it
 *   checkpoint solver DIRECTORY HOW WAY STEPS    the command, on MPI ranks; of KIND rank the last of
 *                                                them is the other program
 *
 * The other program computes in dynamic loops until the solver ends.
 * HOW: file, written and brought to storage by fsync; slow, by a pipe to a reader that takes so many
 * bytes a second.  WAY: plain; lend, rank 0 calls inv_lend before a checkpoint and inv_reclaim after it.
 * A time step of all ranks is STEP_MS of work for each core, at STEPS a millisecond, and a sum.  All ranks
 * go on when the checkpoint is written: a rank that began the next step meanwhile would not be idle.
 *
 * Rank 0 prints "part", the core time that the other program had during the checkpoints, of what was
 * idle: all cores, less what rank 0 and the reader used themselves; a rank that waits for rank 0 is idle.
 * And "write_ms", the mean time of a checkpoint, and "seconds", that of all steps.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "checkpoint"
#include "steps.h"

enum { TIME_STEPS = 60, EVERY = 10, STEP_MS = 5, PIECES = 40 };
enum { BYTES = 16 << 20, BLOCK = 1 << 16, BYTES_PER_MS = 100000 };

/* `invade` brings them. */
extern bool inv_lend(void) __attribute__((weak));
extern bool inv_reclaim(void) __attribute__((weak));

static const char *directory;

static const char *path_of(const char *name)
{
    static char path[4][4096];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", directory, name);
    return p;
}

static long long clock_ns(clockid_t clock)
{
    struct timespec t;
    need(!clock_gettime(clock, &t), "clock_gettime");
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* --- work */

static void compute(int pieces, long steps)
{
    double sum = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum)
    for (int i = 0; i < pieces; i++)
        sum += spin(steps);
    sink += sum;
}

/* --- the programs beside the solver */

/* The reader's storage is a buffer of its own.  It answers each whole checkpoint with a byte. */
static void be_reader(void)
{
    static char block[BLOCK];
    int in = open(path_of("data"), O_RDWR), out = open(path_of("stored"), O_RDWR);
    long long ready = 0, had = 0;
    need(in >= 0 && out >= 0, "open a pipe");
    for (;;) {
        ssize_t n = read(in, block, sizeof block);
        need(n > 0, "read");
        long long now = now_ns();
        ready = (ready > now ? ready : now) + n * 1000000 / BYTES_PER_MS;
        sleep_until(ready);
        if ((had += n) % BYTES == 0)
            need(write(out, "x", 1) == 1, "write");
    }
}

static pid_t start(void (*be)(void))
{
    pid_t parent = getpid(), child = fork();
    need(child >= 0, "fork");
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        be();
    _exit(1);
}

static void be_other(void)
{
    execl("/proc/self/exe", "checkpoint", "other", (char *)NULL);
}

static int be_beside(bool program, char **command)
{
    char pid[2][16];
    int status;
    need(!mkfifo(path_of("data"), 0600) && !mkfifo(path_of("stored"), 0600), "mkfifo");
    pid_t beside[2] = {start(be_reader), program ? start(be_other) : 0}, solver;
    for (int i = 0; i < 2; i++)
        snprintf(pid[i], sizeof pid[i], "%d", (int)beside[i]);
    setenv("CHECKPOINT_READER", pid[0], 1);
    setenv("CHECKPOINT_OTHER", pid[1], 1);
    need((solver = fork()) >= 0, "fork");
    if (!solver) {
        execvp(command[0], command);
        need(false, command[0]);
    }
    need(waitpid(solver, &status, 0) == solver, "waitpid");
    for (int i = 0; i < 1 + program; i++) {
        kill(beside[i], SIGKILL);
        waitpid(beside[i], NULL, 0);
    }
    return status != 0;
}

/* --- the solver */

static int data_fd = -1, stored_fd = -1;

static void write_all(int fd)
{
    static char field[BYTES];
    for (size_t done = 0; done < sizeof field;) {
        ssize_t n = write(fd, field + done, sizeof field - done);
        need(n > 0, "write");
        done += (size_t)n;
    }
}

static void write_slowly(void)
{
    char byte;
    if (data_fd < 0) {
        data_fd = open(path_of("data"), O_RDWR);
        stored_fd = open(path_of("stored"), O_RDWR);
        need(data_fd >= 0 && stored_fd >= 0, "open a pipe");
        fcntl(data_fd, F_SETPIPE_SZ, 1 << 20);
    }
    write_all(data_fd);
    need(read(stored_fd, &byte, 1) == 1, "read");
}

static void write_file(void)
{
    int fd = open(path_of("checkpoint"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0, "open the checkpoint");
    write_all(fd);
    need(!fsync(fd) && !close(fd), "fsync");
}

static int pid_in(const char *variable)
{
    const char *pid = getenv(variable);
    need(pid != NULL, variable);
    return atoi(pid);
}

static clockid_t clock_of(int pid)
{
    clockid_t clock;
    errno = clock_getcpuclockid(pid, &clock);
    need(!errno, "clock_getcpuclockid");
    return clock;
}

struct usage {
    long long wall, other, own; /* ns; own: of rank 0 and the reader */
};

static struct usage usage_now(clockid_t other, clockid_t reader)
{
    return (struct usage){now_ns(), clock_ns(other),
                          clock_ns(CLOCK_PROCESS_CPUTIME_ID) + clock_ns(reader)};
}

static void add_since(struct usage *sum, const struct usage *before, const struct usage *after)
{
    sum->wall += after->wall - before->wall;
    sum->other += after->other - before->other;
    sum->own += after->own - before->own;
}

/* Returns when rank 0 sends. */
static void be_other_rank(void)
{
    int pid = getpid(), end = 0;
    MPI_Request request;
    MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Irecv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    while (!end) {
        compute(400, 20000);
        MPI_Test(&request, &end, MPI_STATUS_IGNORE);
    }
}

static void solve(MPI_Comm comm, const char *how, bool lends, long steps_per_ms, int other_pid)
{
    int rank, size, cores = omp_get_num_procs();
    struct usage sum = {0, 0, 0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    clockid_t other = rank == 0 ? clock_of(other_pid) : 0;
    clockid_t reader = rank == 0 ? clock_of(pid_in("CHECKPOINT_READER")) : 0;
    bool slow = !strcmp(how, "slow");
    long long begin = now_ns();
    for (int step = 1; step <= TIME_STEPS; step++) {
        double part = 1, all;
        compute(PIECES, STEP_MS * steps_per_ms * cores / (PIECES * size));
        MPI_Allreduce(&part, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
        if (step % EVERY)
            continue;
        if (rank == 0) {
            struct usage before = usage_now(other, reader);
            if (lends)
                inv_lend();
            slow ? write_slowly() : write_file();
            if (lends)
                inv_reclaim();
            struct usage after = usage_now(other, reader);
            add_since(&sum, &before, &after);
        }
        MPI_Barrier(comm);
    }
    double seconds = (double)(now_ns() - begin) * 1e-9;
    if (rank == 0)
        printf("part %.6f\nwrite_ms %.3f\nseconds %.6f\n",
               (double)sum.other / (double)(sum.wall * cores - sum.own),
               (double)sum.wall * 1e-6 / (TIME_STEPS / EVERY), seconds);
}

static int be_rank(const char *how, const char *way, long steps_per_ms)
{
    int rank, size, other = pid_in("CHECKPOINT_OTHER");
    bool among_ranks = !other, lends = !strcmp(way, "lend") && inv_lend && inv_reclaim;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool is_other = among_ranks && rank == size - 1;
    if (among_ranks)
        MPI_Comm_split(MPI_COMM_WORLD, is_other, rank, &comm);
    if (is_other)
        be_other_rank();
    else {
        if (among_ranks && rank == 0)
            MPI_Recv(&other, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        solve(comm, how, lends, steps_per_ms, other);
        if (among_ranks && rank == 0)
            MPI_Send(NULL, 0, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}

static void compute_for_ever(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        compute(400, 20000);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (argc == 2 && !strcmp(mode, "rate"))
        return print_rate();
    if (argc == 2 && !strcmp(mode, "other"))
        compute_for_ever();
    if (argc > 4 && !strcmp(mode, "beside")) {
        directory = argv[3];
        return be_beside(!strcmp(argv[2], "program"), argv + 4);
    }
    if (argc == 6 && !strcmp(mode, "solver")) {
        directory = argv[2];
        return be_rank(argv[3], argv[4], atol(argv[5]));
    }
    fprintf(stderr, "usage: checkpoint beside program|rank DIRECTORY COMMAND... | "
                    "solver DIRECTORY HOW WAY STEPS\n");
    return 2;
}
