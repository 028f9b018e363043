/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An alternate signal stack belongs to a kernel thread.  Implicit tasks give one to the thread that runs them, wait
 * in a barrier, a taskwait or for a lock, and get a signal: its handler runs on the stack that the kernel thread was
 * given which then runs the implicit task.  No signal is lost, and neither is what the implicit task has on its stack.
 * @changing
 */
#include "../check.h"
#include <omp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { THREADS = 24, ROUNDS = 40, STACK_BYTES = 65536, MOST = 1024 };

/* A stack is given once, and never taken away: the thread id is stored after the stack (release), and handlers, which
 * look for their own thread only, load it (acquire). */
static struct {
    _Atomic int thread;
    char *stack;
} given[MOST];
static atomic_int givens, handled, on_given;

static char *stack_of(int thread)
{
    int count = atomic_load(&givens);
    for (int i = 0; i < count; i++)
        if (atomic_load(&given[i].thread) == thread)
            return given[i].stack;
    return NULL;
}

/* A function of its own: the compiler may keep nothing of the kernel thread across a wait. */
static __attribute__((noinline)) void give_a_stack(void)
{
    int me = kernel_thread();
    if (stack_of(me))
        return;
    stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    CHECK(stack.ss_sp && sigaltstack(&stack, NULL) == 0, "sigaltstack");
    int place = atomic_fetch_add(&givens, 1);
    CHECK(place < MOST, "more than %d kernel threads", MOST);
    given[place].stack = stack.ss_sp;
    atomic_store(&given[place].thread, me);
}

static bool lies_on(const void *address, const char *stack)
{
    return (const char *)address >= stack && (const char *)address < stack + STACK_BYTES;
}

static void handler(int number, siginfo_t *info, void *unused)
{
    (void)number;
    (void)unused;
    volatile char here = 0;
    stack_t now;
    char *stack = stack_of(kernel_thread());
    CHECK(info->si_code == SI_TKILL, "code %d", info->si_code);
    CHECK(sigaltstack(NULL, &now) == 0, "sigaltstack");
    if (stack) {
        CHECK(lies_on((const void *)&here, stack), "not on the stack of the kernel thread");
        CHECK(now.ss_sp == stack && now.ss_flags == SS_ONSTACK, "the stack has been changed");
        atomic_fetch_add(&on_given, 1);
    }
    atomic_fetch_add(&handled, 1);
}

static __attribute__((noinline)) void get_a_signal(void)
{
    CHECK(syscall(SYS_tgkill, getpid(), kernel_thread(), SIGUSR1) == 0, "tgkill");
}

static void wait_and_get_a_signal(int way)
{
    if (way == 0) {
#pragma omp barrier
        get_a_signal();
    } else if (way == 1) {
#pragma omp task
        get_a_signal();
#pragma omp taskwait
        get_a_signal();
    } else {
#pragma omp critical
        get_a_signal();
#pragma omp barrier
    }
}

int main(void)
{
    enum { WAYS = 3, SIGNALS = 4 }; /* of a round */
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    for (int round = 0; round < ROUNDS; round++) {
        int first = kernel_thread();
#pragma omp parallel num_threads(THREADS)
        for (int way = 0; way < WAYS; way++) {
            int me = omp_get_thread_num();
            volatile char kept[500];
            memset((char *)kept, me, sizeof kept);
            give_a_stack();
            wait_and_get_a_signal(way);
            for (size_t i = 0; i < sizeof kept; i++)
                CHECK(kept[i] == (char)me, "byte %zu of %d", i, me);
            CHECK(me > 0 || kernel_thread() == first, "thread 0 has moved");
        }
        int wanted = (round + 1) * THREADS * SIGNALS;
        CHECK(atomic_load(&handled) == wanted, "%d signals of %d", atomic_load(&handled), wanted);
    }
    CHECK(atomic_load(&on_given) > 0, "no handler has run on a given stack");
    bool ours = getenv("INVASIVE_SOCKET") || getenv("LD_LIBRARY_PATH");
    if (ours && omp_get_num_procs() < THREADS / 4)
        CHECK(kernel_threads() < THREADS, "%d kernel threads for %d", kernel_threads(), THREADS);
    return check_ok();
}
