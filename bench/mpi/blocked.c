/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blocked.c - one process blocks in the kernel, another one computes in a dynamic loop of OpenMP.
 *
 *   blocked rate                       steps_per_ms of one thread
 *   blocked ranks HOW MS TIMES STEPS   with MPI: rank 0 blocks, rank 1 computes
 *   blocked programs HOW MS TIMES STEPS   two programs without MPI, which this one starts
 *   blocked ranks|programs HOW MS TIMES seen   when does the other one use the core of the one that blocks?
 *
 * Each of TIMES rounds begins together.  The one blocks for MS milliseconds; the other has work for
 * two cores for 60 % of that, at STEPS a millisecond.  Prints "seconds", the time of all loops, and
 * "delay_ms", the median of how long the blocked thread did not run after the end of its block: after
 * its timer, or after what wakes it has read the clock and is about to do so.
 *
 * With `seen` both compute in each round until the end, but for the block.  Prints for each round N "seen_N", the
 * milliseconds from the block until the other process computes on that core (all of the block, if it never does), and
 * "twice_N", from when the blocked thread runs again until the other one computes there for the last time.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "blocked"
#include "steps.h"

enum {
    MOST_TIMES = 1000, PIECES_PER_MS = 10, PAGE = 1 << 16,
    BEFORE_MS = 12, AFTER_MS = 20, SEEN_PIECE_NS = 50000 /* of rounds that tell which thread computes where */
};

static const char *self;
static long long *stamp; /* when what wakes the thread did so; shared with children */
static long long deadline;
static long steps; /* of one piece of work; 0: tell which thread computes where */

/* --- ways to block; each returns when the block was over */

static int channel[2];
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool woken;
static _Atomic int word;
static int faults; /* userfaultfd: pages come from another thread, as from slow storage */
static char *page;

static long wake_futex(void)
{
    atomic_store(&word, 1);
    return syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *waker(void *how)
{
    sleep_until(deadline);
    *stamp = now_ns();
    if (!strcmp(how, "condition")) {
        pthread_mutex_lock(&mutex);
        woken = true;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    } else if (!strcmp(how, "semaphore")) {
        sem_post(&semaphore);
    } else if (!strcmp(how, "futex")) {
        wake_futex();
    } else if (!strcmp(how, "fault")) {
        struct uffdio_zeropage empty = {.range = {(uintptr_t)page, PAGE}};
        need(!ioctl(faults, UFFDIO_ZEROPAGE, &empty), "UFFDIO_ZEROPAGE");
    } else if (strcmp(how, "join")) {
        need(write(channel[1], "x", 1) == 1, "write");
    }
    return NULL;
}

static void wait_for_page(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    if (!page) {
        page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct uffdio_register all = {{(uintptr_t)page, PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
        faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
        need(page != MAP_FAILED && faults >= 0 && !ioctl(faults, UFFDIO_API, &api) &&
                 !ioctl(faults, UFFDIO_REGISTER, &all), "userfaultfd");
    }
    madvise(page, PAGE, MADV_DONTNEED);
    sink += *(volatile char *)page;
}

static void wait_for(const char *how)
{
    char byte;
    if (!strcmp(how, "condition")) {
        pthread_mutex_lock(&mutex);
        while (!woken)
            pthread_cond_wait(&condition, &mutex);
        woken = false;
        pthread_mutex_unlock(&mutex);
    } else if (!strcmp(how, "semaphore")) {
        while (sem_wait(&semaphore))
            ;
    } else if (!strcmp(how, "futex")) {
        while (!atomic_load(&word))
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        atomic_store(&word, 0);
    } else if (!strcmp(how, "fault")) {
        wait_for_page();
    } else if (!strcmp(how, "read")) {
        need(read(channel[0], &byte, 1) == 1, "read");
    } else if (!strcmp(how, "epoll")) {
        static int fd;
        struct epoll_event event = {.events = EPOLLIN};
        if (!fd)
            need((fd = epoll_create1(EPOLL_CLOEXEC)) > 0 &&
                     !epoll_ctl(fd, EPOLL_CTL_ADD, channel[0], &event), "epoll");
        need(epoll_wait(fd, &event, 1, -1) == 1, "epoll_wait");
    }
}

static void block_for_thread(const char *how)
{
    pthread_t thread;
    char byte;
    need(!pthread_create(&thread, NULL, waker, (void *)how), "pthread_create");
    wait_for(how); /* join: at once */
    if (!strcmp(how, "join")) {
        pthread_join(thread, NULL);
        return;
    }
    long long over = now_ns();
    pthread_join(thread, NULL);
    if (!strcmp(how, "epoll"))
        need(read(channel[0], &byte, 1) == 1, "read");
    *stamp += now_ns() - over; /* what follows is no delay */
}

static void block_for_child(void)
{
    pid_t child = fork();
    need(child >= 0, "fork");
    if (!child) {
        sleep_until(deadline);
        *stamp = now_ns();
        _exit(0);
    }
    need(waitpid(child, NULL, 0) == child, "waitpid");
}

/* The command cannot write to our memory: it writes when it ended to a pipe. */
static void block_for_command(void)
{
    char command[512];
    snprintf(command, sizeof command, "exec %s command %lld %d", self, deadline, channel[1]);
    need(system(command) == 0, "system");
    long long over = now_ns();
    need(read(channel[0], stamp, sizeof *stamp) == sizeof *stamp, "read");
    *stamp += now_ns() - over;
}

/* Returns the delay. */
static long long block(const char *how, int ms)
{
    deadline = now_ns() + ms * 1000000LL;
    if (!strcmp(how, "sleep")) {
        sleep_until(deadline);
        *stamp = deadline;
    } else if (!strcmp(how, "poll")) {
        poll(NULL, 0, ms);
        *stamp = deadline;
    } else if (!strcmp(how, "waitpid")) {
        block_for_child();
    } else if (!strcmp(how, "system")) {
        block_for_command();
    } else {
        block_for_thread(how);
    }
    return now_ns() - *stamp;
}

/* --- work */

static double compute(int ms)
{
    int pieces = (int)(2 * 0.6 * ms * PIECES_PER_MS);
    double sum = 0;
    long long start = now_ns();
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : sum)
    for (int i = 0; i < pieces; i++)
        sum += spin(steps);
    sink += sum;
    return (double)(now_ns() - start) * 1e-9;
}

/* --- rounds.  The two meet in MPI_Barrier, or by bytes in pipes. */

static int meet_read, meet_write;
static bool ranks;

static void meet(void)
{
    char byte = 'x';
    if (ranks)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        need(write(meet_write, &byte, 1) == 1 && read(meet_read, &byte, 1) == 1, "meet");
}

/* --- which thread computes where */

struct absence {
    long long blocks_ns, runs_ns, ends_ns; /* the thread computes on `cpu` until the first, and between the others */
    int cpu;
};

/* Of a thread of the other process: it computed on `cpu` from begin to end. */
struct piece {
    long long begin_ns, end_ns;
    int cpu;
};

static void spin_until(long long ns)
{
    while (now_ns() < ns)
        sink += spin(1000);
}

/* Blocks at another moment after the begin in each round, since rmd looks at fixed ones. */
static void block_once(const char *how, int ms, int round)
{
    long long start = now_ns();
    struct absence absence;
    spin_until(start + (2 + round * 7 % 10) * 1000000LL);
    absence.cpu = sched_getcpu();
    absence.blocks_ns = now_ns();
    block(how, ms);
    absence.runs_ns = now_ns();
    spin_until(start + (BEFORE_MS + ms + AFTER_MS) * 1000000LL);
    absence.ends_ns = now_ns();
    if (ranks)
        MPI_Send(&absence, sizeof absence, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
        need(write(meet_write, &absence, sizeof absence) == sizeof absence, "write");
}

/* Until the thread is on another CPU, or for the length of a piece. */
static struct piece compute_here(void)
{
    struct piece piece = {.begin_ns = now_ns(), .cpu = sched_getcpu()};
    long long now = piece.begin_ns;
    do {
        piece.end_ns = now;
        spin(1000);
        now = now_ns();
    } while (sched_getcpu() == piece.cpu && now < piece.begin_ns + SEEN_PIECE_NS);
    return piece;
}

static void print_seen(const struct absence *a, const struct piece *piece, int pieces, int ms, int round)
{
    double seen = ms, twice = 0;
    for (int i = 0; i < pieces; i++) {
        const struct piece *p = &piece[i];
        long long begin = p->begin_ns > a->blocks_ns ? p->begin_ns : a->blocks_ns,
                  end = p->end_ns < a->ends_ns ? p->end_ns : a->ends_ns;
        if (p->cpu != a->cpu || p->begin_ns > a->ends_ns || p->end_ns < a->blocks_ns)
            continue;
        if ((double)(begin - a->blocks_ns) * 1e-6 < seen)
            seen = (double)(begin - a->blocks_ns) * 1e-6;
        if ((double)(end - a->runs_ns) * 1e-6 > twice)
            twice = (double)(end - a->runs_ns) * 1e-6;
    }
    printf("seen_%d %.6f\ntwice_%d %.6f\n", round, seen, round, twice);
}

static void compute_and_see(int ms, int round)
{
    int all_ms = BEFORE_MS + ms + AFTER_MS, pieces = 2 * all_ms * (1000000 / SEEN_PIECE_NS);
    struct piece *piece = calloc((size_t)pieces, sizeof *piece);
    struct absence absence;
    long long end = now_ns() + all_ms * 1000000LL;
    need(piece, "calloc");
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < pieces; i++)
        if (now_ns() < end)
            piece[i] = compute_here();
        else
            piece[i].cpu = -1;
    if (ranks)
        MPI_Recv(&absence, sizeof absence, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        need(read(meet_read, &absence, sizeof absence) == sizeof absence, "read");
    print_seen(&absence, piece, pieces, ms, round);
    free(piece);
}

/* Returns the median delay in ms of the one that blocks, seconds of loops of the other. */
static double rounds(bool blocks, const char *how, int ms, int times)
{
    static double delay[MOST_TIMES];
    double seconds = 0;
    need(times > 0 && times <= MOST_TIMES, "times");
    compute(1); /* a region, by which the process joins */
    for (int i = 0; i < times; i++) {
        meet();
        if (!steps)
            blocks ? block_once(how, ms, i) : compute_and_see(ms, i);
        else if (blocks)
            delay[i] = (double)block(how, ms);
        else
            seconds += compute(ms);
    }
    meet();
    return blocks ? two_quantile(delay, (unsigned)times, 0.5) * 1e-6 : seconds;
}

static void print_both(double delay_ms, double seconds)
{
    if (steps)
        printf("delay_ms %.6f\nseconds %.6f\n", delay_ms, seconds);
}

static int run_ranks(char **argv)
{
    int rank;
    double seconds = 0;
    ranks = true;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double result = rounds(rank == 0, argv[2], atoi(argv[3]), atoi(argv[4]));
    if (rank == 1)
        MPI_Send(&result, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    else {
        MPI_Recv(&seconds, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        print_both(result, seconds);
    }
    MPI_Finalize();
    return 0;
}

/* blocked blocks|computes HOW MS TIMES STEPS READ WRITE RESULT */
static int run_one(char **argv)
{
    meet_read = atoi(argv[6]);
    meet_write = atoi(argv[7]);
    double result = rounds(!strcmp(argv[1], "blocks"), argv[2], atoi(argv[3]), atoi(argv[4]));
    need(write(atoi(argv[8]), &result, sizeof result) == sizeof result, "write");
    return 0;
}

static int run_programs(char **argv)
{
    extern char **environ;
    int ends[4][2], bad = 0;
    char number[4][2][12];
    double result[2];
    pid_t child[2];
    for (int i = 0; i < 4; i++) {
        need(!pipe(ends[i]), "pipe");
        for (int end = 0; end < 2; end++)
            snprintf(number[i][end], sizeof number[i][end], "%d", ends[i][end]);
    }
    for (int i = 0; i < 2; i++) {
        char *words[] = {(char *)self, i ? "computes" : "blocks", argv[2], argv[3], argv[4], argv[5],
                         number[i][0], number[!i][1], number[2 + i][1], NULL};
        need(!posix_spawn(&child[i], self, NULL, NULL, words, environ), "posix_spawn");
    }
    for (int i = 0; i < 2; i++) {
        int status;
        need(waitpid(child[i], &status, 0) == child[i], "waitpid");
        bad |= status;
    }
    for (int i = 0; i < 2 && !bad; i++)
        need(read(ends[2 + i][0], &result[i], sizeof result[i]) == sizeof result[i], "read");
    if (!bad)
        print_both(result[0], result[1]);
    return bad != 0;
}

static int end_command(const char *when, int fd)
{
    sleep_until(atoll(when));
    long long ns = now_ns();
    return write(fd, &ns, sizeof ns) != sizeof ns;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    self = argv[0];
    if (argc == 2 && !strcmp(mode, "rate"))
        return print_rate();
    if (argc == 4 && !strcmp(mode, "command"))
        return end_command(argv[2], atoi(argv[3]));
    if (argc != 6 && argc != 9) {
        fprintf(stderr, "usage: blocked ranks|programs HOW MS TIMES STEPS|seen\n");
        return 2;
    }
    steps = atol(argv[5]) / PIECES_PER_MS;
    if (!strcmp(mode, "programs"))
        return run_programs(argv);
    stamp = mmap(NULL, sizeof *stamp, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(stamp != MAP_FAILED && !pipe(channel) && !sem_init(&semaphore, 0, 0), "set-up");
    return argc == 9 ? run_one(argv) : run_ranks(argv);
}
