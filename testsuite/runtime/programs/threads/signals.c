/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signals are the program's: a handler runs in the thread that it was sent to, also when that one
 * is an implicit task's; a fault in an implicit task is handled there, in whichever thread that
 * runs; waits go on when a handler interrupts them, or when the whole process is stopped and
 * continued; and a process that does not handle SIGINT dies of it in the middle of a region.
 */
#include "../check.h"
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { MANY = 12 };

/* No thread-local data here: it would bind implicit tasks to threads. */
static atomic_int ticks, caught_by;
static char *page;

static void on_usr1(int number)
{
    (void)number;
    atomic_store(&caught_by, kernel_thread());
}

static void on_alarm(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    CHECK(info->si_addr == page, "another fault, at %p", info->si_addr);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(number, &action, NULL) == 0, "sigaction");
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void region(void)
{
    int sum = 0;
#pragma omp parallel num_threads(5)
    {
#pragma omp barrier
#pragma omp for schedule(dynamic) ordered
        for (int i = 0; i < 20; i++) {
#pragma omp ordered
            sum += i;
        }
#pragma omp single
        for (int i = 0; i < 10; i++) {
#pragma omp task
            {
#pragma omp atomic
                sum++;
            }
        }
    }
    CHECK(sum == 200, "sum %d", sum);
}

/* All implicit tasks wait for each other in a loop of their own, so that each has a thread. */
static void to_each_thread(void)
{
    atomic_int arrived = 0;
    handle(SIGUSR1, on_usr1);
#pragma omp parallel num_threads(MANY)
    {
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < MANY)
            ;
#pragma omp critical
        {
            CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0, "pthread_kill");
            CHECK(atomic_load(&caught_by) == kernel_thread(), "implicit task %d: no signal",
                  omp_get_thread_num());
        }
    }
}

static void fault_in_each_thread(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    atomic_int arrived = 0;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "mmap");
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
#pragma omp parallel num_threads(MANY)
    {
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < MANY)
            ;
#pragma omp critical
        {
            CHECK(mprotect(page, 4096, PROT_NONE) == 0, "mprotect");
            *(volatile char *)page = 1;
        }
    }
    signal(SIGSEGV, SIG_DFL);
}

static void interrupted_waits(void)
{
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    handle(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 200 || atomic_load(&ticks) < 20; i++)
        region();
    setitimer(ITIMER_REAL, &never, NULL);
}

static pid_t endless_child(void)
{
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0)
        for (;;)
            region();
    pause_ns(20000000);
    return child;
}

static void killed(void)
{
    int status;
    pid_t child = endless_child();
    CHECK(kill(child, SIGINT) == 0, "kill");
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "wait status %#x", (unsigned)status);
}

/* A child stops its parent in the middle of regions and lets it go on. */
static void stopped(void)
{
    int status = 0;
    pid_t parent = getpid(), child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        for (int i = 0; i < 10; i++) {
            kill(parent, SIGSTOP);
            pause_ns(5000000);
            kill(parent, SIGCONT);
            pause_ns(5000000);
        }
        _exit(0);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        region();
    CHECK(status == 0, "wait status %#x", (unsigned)status);
}

int main(void)
{
    signal(SIGINT, SIG_DFL); /* a shell that started us in the background has it ignored */
    killed(); /* before the first region, so that stock libgomp's children can have some */
    for (int round = 0; round < 3; round++) {
        to_each_thread();
        fault_in_each_thread();
    }
    interrupted_waits();
    stopped();
    return check_ok();
}
