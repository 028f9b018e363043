/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An implicit task that waits inside a region goes on with what it had: errno, the rounding mode, its
 * stack, what alloca has taken there, and what setjmp has saved on it; thread 0 stays on its kernel thread.
 * No kernel thread is needed for each implicit task that waits, and no memory for stacks that are not used.
 * @managed counts kernel threads
 * @changing
 * @env OMP_NUM_THREADS=48
 * @env OMP_STACKSIZE=4M
 */
#include "../check.h"
#include <alloca.h>
#include <errno.h>
#include <execinfo.h>
#include <fenv.h>
#include <omp.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

enum { N = 48, ROUNDS = 20, DEPTH = 200, FRAME_BYTES = 8192 };

/* Functions of their own: a compiler may keep the address of errno. */
static __attribute__((noinline)) void set_errno(int value)
{
    errno = value;
}

static __attribute__((noinline)) int get_errno(void)
{
    return errno;
}

static __attribute__((noinline)) int deep(int depth, int me)
{
    volatile char frame[FRAME_BYTES];
    memset((char *)frame, me, sizeof frame);
    if (depth == 0) {
#pragma omp barrier
    } else if (deep(depth - 1, me) != me)
        return -1;
    for (unsigned i = 0; i < sizeof frame; i += 1000)
        if (frame[i] != (char)me)
            return -1;
    return me;
}

static void state_is_kept(void)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int thread = kernel_thread();
#pragma omp parallel num_threads(N)
    {
        int me = omp_get_thread_num(), mode = modes[me % 4];
        fesetround(mode);
        for (int round = 0; round < ROUNDS; round++) {
            set_errno(me + round);
#pragma omp barrier
            CHECK(get_errno() == me + round, "errno of %d is %d", me, get_errno());
            CHECK(fegetround() == mode, "rounding mode of %d", me);
            CHECK(omp_get_thread_num() == me, "thread %d is %d", me, omp_get_thread_num());
            CHECK(me > 0 || kernel_thread() == thread, "thread 0 has moved");
#pragma omp critical
            set_errno(-1);
        }
        fesetround(FE_TONEAREST);
        CHECK(deep(DEPTH, me) == me, "the stack of %d", me);
    }
}

/* Memory of alloca and of an array whose length is known at run time only lies on the context's stack. */
static void alloca_is_kept(void)
{
#pragma omp parallel num_threads(N)
    {
        int me = omp_get_thread_num();
        size_t bytes = 1000 + 100 * (size_t)me;
        volatile char *taken = alloca(bytes), array[bytes];
        memset((char *)taken, me, bytes);
        memset((char *)array, ~me, bytes);
#pragma omp barrier
        for (size_t i = 0; i < bytes; i++)
            CHECK(taken[i] == (char)me && array[i] == (char)~me, "byte %zu of %d", i, me);
    }
}

static void jump_in_a_task(int *jumped)
{
    jmp_buf place;
    if (setjmp(place) == 0) {
#pragma omp taskyield
        longjmp(place, 1);
    }
#pragma omp atomic
    ++*jumped;
}

static void jumps_in_tasks(void)
{
    int jumped = 0;
#pragma omp parallel num_threads(N)
    for (int i = 0; i < ROUNDS; i++) {
#pragma omp task
        jump_in_a_task(&jumped);
#pragma omp taskwait
#pragma omp barrier
    }
    CHECK(jumped == N * ROUNDS, "%d tasks have jumped", jumped);
}

static void jumps_stay_on_their_stack(void)
{
    int jumped = 0;
#pragma omp parallel num_threads(N) reduction(+ : jumped)
    {
        jmp_buf place;
        if (setjmp(place) == 0) {
#pragma omp barrier
            longjmp(place, 1);
        }
        jumped++;
#pragma omp barrier
    }
    CHECK(jumped == N, "%d have jumped", jumped);
}

/* What walks up a stack, as an exception does, comes to an end. */
static void stacks_end(void)
{
#pragma omp parallel num_threads(N)
    {
        void *frames[DEPTH];
#pragma omp barrier
        int count = backtrace(frames, DEPTH);
        CHECK(count > 1 && count < DEPTH, "%d frames of %d", count, omp_get_thread_num());
    }
}

/* All forms of waiting, by more threads than there are cores. */
static void waits(void)
{
    int turn = 0, sum = 0, locked = 0, tasks = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(N) reduction(+ : sum)
    for (int round = 0; round < ROUNDS; round++) {
        int copy = 0;
#pragma omp single copyprivate(copy)
        copy = round + 1;
        sum += copy;
#pragma omp for ordered schedule(static, 1)
        for (int i = 0; i < N; i++) {
#pragma omp ordered
            turn = turn == i ? (i + 1) % N : -1;
        }
        omp_set_lock(&lock);
        locked++;
#pragma omp taskyield
        omp_unset_lock(&lock);
#pragma omp taskgroup
        {
#pragma omp task shared(tasks)
            {
#pragma omp atomic
                tasks++;
            }
        }
#pragma omp taskwait
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 2 * N; i++)
            sum++;
    }
    omp_destroy_lock(&lock);
    CHECK(turn == 0, "turns were mixed up");
    CHECK(locked == N * ROUNDS && tasks == N * ROUNDS, "%d under the lock, %d tasks", locked, tasks);
    CHECK(sum == N * ROUNDS * (ROUNDS + 1) / 2 + 2 * N * ROUNDS, "sum %d", sum);
}

/* Most memory that the process has had so far, KiB. */
static long peak_kib(void)
{
    struct rusage use;
    CHECK(getrusage(RUSAGE_SELF, &use) == 0, "getrusage");
    return use.ru_maxrss;
}

/* N stacks of 4 MiB, of which a wait uses some pages; the kernel may give a kernel thread's stack a page of 2 MiB. */
static void stacks_are_not_touched(void)
{
#pragma omp parallel num_threads(N)
    {
#pragma omp barrier
    }
    CHECK(peak_kib() < N * 2048L + 16384, "%ld KiB", peak_kib());
}

int main(void)
{
    omp_set_dynamic(0);
    stacks_are_not_touched();
    state_is_kept();
    alloca_is_kept();
    jumps_stay_on_their_stack();
    jumps_in_tasks();
    bool ours = getenv("INVASIVE_SOCKET") || getenv("LD_LIBRARY_PATH");
    if (ours && omp_get_num_procs() < N / 4) {
        int here = kernel_threads();
        CHECK(here < N, "%d kernel threads for %d that wait", here, N);
    }
    waits();
    stacks_end();
    return check_ok();
}
