/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * cpus.h - a set of Linux CPU numbers as large as any kernel's.
 *
 * cpu_set_t ends at CPU 1,023, and the kernel refuses to fill a set that is smaller than its own,
 * which has a bit for each possible CPU, present or not.  No architecture's kernel can be
 * configured for more than 8,192.
 */
#ifndef INV_CPUS_H
#define INV_CPUS_H

#include "libinvasive/base/assertion.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    INV_MAX_CPUS = 8192,
    INV_CPUS_WORD = 8 * sizeof(unsigned long), /* CPUs */
};

/* Bits in the order of the kernel's sets and of cpu_set_t. */
struct inv_cpus {
    unsigned long word[INV_MAX_CPUS / INV_CPUS_WORD];
};

static inline void inv_cpus_clear(struct inv_cpus *set) { memset(set, 0, sizeof *set); }

/* A number beyond the set is not in it. */
static inline bool inv_cpus_has(const struct inv_cpus *set, size_t cpu)
{
    return cpu < INV_MAX_CPUS && set->word[cpu / INV_CPUS_WORD] >> cpu % INV_CPUS_WORD & 1;
}

/* A number beyond the set is ignored. */
static inline void inv_cpus_add(struct inv_cpus *set, size_t cpu)
{
    if (cpu < INV_MAX_CPUS)
        set->word[cpu / INV_CPUS_WORD] |= 1ul << cpu % INV_CPUS_WORD;
}

static inline void inv_cpus_remove(struct inv_cpus *set, size_t cpu)
{
    if (cpu < INV_MAX_CPUS)
        set->word[cpu / INV_CPUS_WORD] &= ~(1ul << cpu % INV_CPUS_WORD);
}

static inline int inv_cpus_count(const struct inv_cpus *set)
{
    int n = 0;
    for (size_t i = 0; i < sizeof set->word / sizeof *set->word; i++)
        n += __builtin_popcountl(set->word[i]);
    return n;
}

/* The highest CPU of the set; -1: the set is empty. */
static inline int inv_cpus_last(const struct inv_cpus *set)
{
    int cpu = INV_MAX_CPUS - 1;
    while (cpu >= 0 && !inv_cpus_has(set, (size_t)cpu))
        cpu--;
    return cpu;
}

static inline bool inv_cpus_equal(const struct inv_cpus *a, const struct inv_cpus *b)
{
    return !memcmp(a, b, sizeof *a);
}

static inline void inv_cpus_and(struct inv_cpus *to, const struct inv_cpus *a,
                                const struct inv_cpus *b)
{
    for (size_t i = 0; i < sizeof to->word / sizeof *to->word; i++)
        to->word[i] = a->word[i] & b->word[i];
}

static inline void inv_cpus_or(struct inv_cpus *to, const struct inv_cpus *a,
                               const struct inv_cpus *b)
{
    for (size_t i = 0; i < sizeof to->word / sizeof *to->word; i++)
        to->word[i] = a->word[i] | b->word[i];
}

static inline void inv_cpus_xor(struct inv_cpus *to, const struct inv_cpus *a,
                                const struct inv_cpus *b)
{
    for (size_t i = 0; i < sizeof to->word / sizeof *to->word; i++)
        to->word[i] = a->word[i] ^ b->word[i];
}

#ifdef _GNU_SOURCE

/* Reads the affinity of thread `tid` (0: the caller).  Returns 0, or -1 with errno; EOVERFLOW: the
 * kernel's set is larger than INV_MAX_CPUS. */
static inline int inv_cpus_get(pid_t tid, struct inv_cpus *set)
{
    int failed = sched_getaffinity(tid, sizeof *set, (cpu_set_t *)set);
    if (failed && errno == EINVAL)
        errno = EOVERFLOW;
    return failed;
}

/* Sets the affinity of thread `tid` (0: the caller) to the first `bytes` bytes of the set, a
 * multiple of a word.  A system call, since affinity.c replaces sched_setaffinity in a managed
 * program and leaves pinned threads where they are.  Returns 0, or -1 with errno. */
static inline int inv_cpus_write(pid_t tid, size_t bytes, const struct inv_cpus *set)
{
    return (int)syscall(SYS_sched_setaffinity, tid, bytes, set);
}

/* The same with the whole set. */
static inline int inv_cpus_set(pid_t tid, const struct inv_cpus *set)
{
    return inv_cpus_write(tid, sizeof *set, set);
}

/* Sets the affinity to one CPU, less than INV_MAX_CPUS.  Threads are pinned often, so only the
 * words up to that CPU's are written.  Returns 0, or -1 with errno. */
static inline int inv_cpus_set_one(pid_t tid, size_t cpu)
{
    struct inv_cpus one;
    inv_assert(cpu < INV_MAX_CPUS);
    size_t bytes = (cpu / INV_CPUS_WORD + 1) * sizeof *one.word;
    memset(&one, 0, bytes);
    one.word[cpu / INV_CPUS_WORD] = 1ul << cpu % INV_CPUS_WORD;
    return inv_cpus_write(tid, bytes, &one);
}

#endif

#endif
