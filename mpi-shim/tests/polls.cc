/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * polls.cc - a thread tests for its message under a lock that the other threads of the rank need to
 * send theirs.  Two ranks; each thread of one exchanges a message with its twin in each step.
 *
 *   polls LOCK TEST LEVEL THREADS STEPS
 *
 * LOCK: omp, critical, pthread, spin or sleepy (its waiters sleep and look), in a parallel region;
 * std, a std::mutex of std::threads.  TEST: the function of MPI.  LEVEL: serialized or multiple.
 * Rank 0 prints the steps and the time that they took.
 *
 *   polls between
 *
 * A rank works a little between its tests.  Rank 0 prints how many steps it has done.
 *
 *   polls once
 *
 * One rank, which tests once and goes on: until when does the runtime take its thread for one that
 * waits in a loop of tests, and so gives its core away with a lock?  Prints what is not as it should
 * be; needs the runtime.
 */
#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Body = std::function<void()>;
using Locked = void (*)(const Body &);

omp_lock_t omp_lock;
pthread_mutex_t pthread_lock = PTHREAD_MUTEX_INITIALIZER;
std::atomic_flag spin_lock = ATOMIC_FLAG_INIT;
std::mutex std_lock;
int other;

void with_omp(const Body &body)
{
    omp_set_lock(&omp_lock);
    body();
    omp_unset_lock(&omp_lock);
}

void with_critical(const Body &body)
{
#pragma omp critical
    body();
}

void with_pthread(const Body &body)
{
    pthread_mutex_lock(&pthread_lock);
    body();
    pthread_mutex_unlock(&pthread_lock);
}

void with_spin(const Body &body)
{
    while (spin_lock.test_and_set(std::memory_order_acquire))
        ;
    body();
    spin_lock.clear(std::memory_order_release);
}

void with_sleepy(const Body &body)
{
    while (spin_lock.test_and_set(std::memory_order_acquire))
        usleep(100);
    body();
    spin_lock.clear(std::memory_order_release);
}

void with_std(const Body &body)
{
    const std::lock_guard<std::mutex> guard(std_lock);
    body();
}

void work(double us)
{
    const double end = MPI_Wtime() + us * 1e-6;
    while (MPI_Wtime() < end)
        ;
}

/* One look for the message with the tag: true when it is there. */
bool arrived(const std::string &test, MPI_Request *request, int tag)
{
    int flag = 0, index = 0;
    MPI_Status status;
    if (test == "Test")
        MPI_Test(request, &flag, &status);
    else if (test == "Testall")
        MPI_Testall(1, request, &flag, &status);
    else if (test == "Testany")
        MPI_Testany(1, request, &index, &flag, &status);
    else if (test == "Testsome")
        MPI_Testsome(1, request, &flag, &index, &status);
    else if (test == "Request_get_status")
        MPI_Request_get_status(*request, &flag, &status);
    else
        MPI_Iprobe(other, tag, MPI_COMM_WORLD, &flag, &status);
    return flag != 0;
}

void exchange(Locked locked, const std::string &test, int me, int step)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const bool probes = test == "Iprobe";
    double in = -1, out = 1000.0 * step + me;
    if (!probes)
        locked([&] { MPI_Irecv(&in, 1, MPI_DOUBLE, other, me, MPI_COMM_WORLD, &request); });
    work(50);
    locked([&] { MPI_Send(&out, 1, MPI_DOUBLE, other, me, MPI_COMM_WORLD); });
    for (bool done = false; !done;)
        locked([&] { done = arrived(test, &request, me); });
    if (probes)
        locked([&] {
            MPI_Recv(&in, 1, MPI_DOUBLE, other, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
    else if (request != MPI_REQUEST_NULL)
        locked([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    if (in != out) {
        std::printf("wrong message\n");
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

Locked lock_of(const std::string &name)
{
    return name == "omp"        ? with_omp
           : name == "critical" ? with_critical
           : name == "pthread"  ? with_pthread
           : name == "spin"     ? with_spin
           : name == "sleepy"   ? with_sleepy
                                : with_std;
}

/* In a process that has the runtime. */
bool polls()
{
    static const auto inv_polls = reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, "inv_polls"));
    if (!inv_polls)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return inv_polls();
}

/* A test that fails, after which the thread polls.  The time that it does for is short, and the
 * machine may be busy: it is seen sooner or later. */
bool seen_to_poll(const std::string &test, MPI_Request *request)
{
    const double limit = MPI_Wtime() + 20;
    bool seen = false;
    while (!seen && MPI_Wtime() < limit) {
        arrived(test, request, 1);
        seen = polls();
    }
    return seen;
}

void expect(bool what, const char *text)
{
    if (!what)
        std::printf("not so: %s\n", text);
}

int once(int rank)
{
    MPI_Request request;
    int in = 0, out = 0;
    std::atomic<int> in_region{0}, entered{0};
    other = rank;
    MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    for (const char *test : {"Test", "Iprobe", "Request_get_status"}) {
        expect(seen_to_poll(test, &request), "a thread polls after a test that failed");
#pragma omp parallel num_threads(4)
#pragma omp critical
        {
            entered++;
            in_region += polls();
        }
        expect(entered == 4 && in_region == 0, "a thread in a region after its test does not poll");
        entered = 0;
        expect(seen_to_poll(test, &request), "a thread polls when it tests again");
        usleep(20000);
        expect(!polls(), "a thread that has not tested for long does not poll");
    }
    expect(seen_to_poll("Test", &request), "a thread polls before the message");
    MPI_Send(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    while (!arrived("Test", &request, 1))
        ;
    expect(!polls(), "a thread does not poll after a test that succeeded");
    std::printf("looked\n");
    MPI_Finalize();
    return 0;
}

/* A step of work, some 100 ns, after each test: the other rank sends when it has done all steps, and so has
 * this one. */
int between(int rank)
{
    enum { STEPS = 200000, WORK = 50 };
    MPI_Request request;
    int came = 0, got = 0;
    volatile int work = 0;
    MPI_Irecv(&got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < STEPS; i++) {
        if (!came)
            MPI_Test(&request, &came, MPI_STATUS_IGNORE);
        for (int k = 0; k < WORK; k++)
            work = work + 1;
    }
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
        std::printf("%d steps of work\n", STEPS);
    MPI_Finalize();
    return got == 1 - rank ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2) {
        int rank = 0;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return std::strcmp(argv[1], "once") == 0 ? once(rank) : between(rank);
    }
    if (argc != 6)
        return 2;
    const std::string lock = argv[1], test = argv[2];
    const int threads = std::atoi(argv[4]), steps = std::atoi(argv[5]);
    const bool multiple = std::strcmp(argv[3], "multiple") == 0;
    int got = 0, rank = 0;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    omp_init_lock(&omp_lock);
    const Locked locked = lock_of(lock);
    const auto sweep = [&](int me) {
        for (int step = 0; step < steps; step++)
            exchange(locked, test, me, step);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (lock == "std") {
        std::vector<std::thread> team;
        for (int me = 0; me < threads; me++)
            team.emplace_back(sweep, me);
        for (std::thread &thread : team)
            thread.join();
    } else {
#pragma omp parallel num_threads(threads)
        sweep(omp_get_thread_num());
    }
    const double took = MPI_Wtime() - start;
    if (rank == 0)
        std::printf("%d steps: %.3f s\n", steps, took);
    MPI_Finalize();
    return 0;
}
