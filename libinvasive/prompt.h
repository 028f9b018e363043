/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * prompt.h - a thread that sleeps for a core of its own wakes beside whoever computes there.
 *
 * The kernel lets a thread that has computed finish its time slice, 3 ms and more, before one that
 * wakes on its core runs, unless that one's slice is shorter (Linux 6.12).  So an owner asks for a
 * short slice while it waits, and for exact timers.  It has what it had before when it computes.
 */
#ifndef INV_PROMPT_H
#define INV_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

/* As the kernel's struct sched_attr, of which there is no public declaration in libc. */
struct inv_sched_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

struct inv_prompt {
    bool changed;
    struct inv_sched_attr before;
    int slack_ns;
};

/* The calling thread; a second call does nothing.  What the kernel refuses stays as it is. */
void inv_prompt_begin(struct inv_prompt *prompt);
void inv_prompt_end(struct inv_prompt *prompt);

#endif
