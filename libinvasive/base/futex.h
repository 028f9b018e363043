/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* futex.h - the two futex operations by which all our threads sleep and wake, and what a loop calls
 * between two reads of a word.  Words that other processes access need the shared form. */
#ifndef INV_FUTEX_H
#define INV_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == expected, for timeout_ns at most (< 0: for ever).  Returns 0 when woken or
 * when the word had changed, -ETIMEDOUT, or -EINTR.  Keeps errno. */
static inline int inv_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns,
                                 bool shared)
{
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int saved = errno;
    long r = syscall(SYS_futex, word, FUTEX_WAIT | (shared ? 0 : FUTEX_PRIVATE_FLAG), expected,
                     timeout_ns < 0 ? NULL : &ts, NULL, 0);
    int result = r == 0 || errno == EAGAIN ? 0 : -errno;
    errno = saved;
    return result;
}

/* Wakes at most `count` threads that sleep on the word.  Returns how many, or -1.  Keeps errno. */
static inline int inv_futex_wake(_Atomic uint32_t *word, int count, bool shared)
{
    int saved = errno;
    long r = syscall(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), count, NULL,
                     NULL, 0);
    errno = saved;
    return (int)r;
}

/* Lets another thread run on this processor.  For our own loops, since yield.c replaces
 * sched_yield. */
static inline int inv_kernel_yield(void)
{
    return (int)syscall(SYS_sched_yield);
}

/* The processor's hint that a loop spins. */
static inline void inv_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

#endif
