/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* sched_latency.c - see sched_latency.h. */
#define _GNU_SOURCE
#include "libinvasive/hold/sched_latency.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_SLICE_NS = 100000 /* the least that there is */ };

/* Only under the default policy: with a real-time policy the latency is low already. */
static bool shorten(struct inv_sched_attr *before)
{
    if (syscall(SYS_sched_getattr, 0, before, sizeof *before, 0) || before->policy != SCHED_OTHER ||
        before->runtime_ns == SHORT_SLICE_NS) /* rmd has done that, and takes it back (rmd/host/enforce.h) */
        return false;
    struct inv_sched_attr shorter = *before;
    shorter.runtime_ns = SHORT_SLICE_NS;
    return syscall(SYS_sched_setattr, 0, &shorter, 0) == 0;
}

void inv_sched_latency_lower(struct inv_sched_latency *latency)
{
    if (latency->changed)
        return;
    int saved = errno;
    latency->changed = true;
    if (!shorten(&latency->before))
        latency->before.size = 0;
    latency->slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    errno = saved;
}

void inv_sched_latency_restore(struct inv_sched_latency *latency)
{
    if (!latency->changed)
        return;
    int saved = errno;
    if (latency->before.size)
        syscall(SYS_sched_setattr, 0, &latency->before, 0);
    if (latency->slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)latency->slack_ns);
    latency->changed = false;
    errno = saved;
}
