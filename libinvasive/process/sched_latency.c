/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* sched_latency.c - see sched_latency.h. */
#define _GNU_SOURCE
#include "libinvasive/process/sched_latency.h"
#include "libinvasive/base/slice.h"

#include <errno.h>
#include <sys/prctl.h>

void inv_sched_latency_lower(struct inv_sched_latency *latency)
{
    if (latency->changed)
        return;
    int saved = errno;
    latency->changed = true;
    latency->slice_ns = inv_slice_set(0, INV_SHORT_SLICE_NS);
    if (latency->slice_ns == INV_SHORT_SLICE_NS)
        latency->slice_ns = 0; /* rmd has done that, and takes it back (rmd/domain/watch/blocked.c) */
    latency->slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    errno = saved;
}

void inv_sched_latency_restore(struct inv_sched_latency *latency)
{
    if (!latency->changed)
        return;
    int saved = errno;
    if (latency->slice_ns)
        inv_slice_set(0, latency->slice_ns);
    if (latency->slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)latency->slack_ns);
    latency->changed = false;
    errno = saved;
}
