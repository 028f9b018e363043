/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* prompt.c - see prompt.h. */
#define _GNU_SOURCE
#include "prompt.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_SLICE_NS = 100000 /* the least that there is */ };

/* Only where it computes as others do: with a real-time policy it is prompt already. */
static bool shorten(struct inv_sched_attr *before)
{
    if (syscall(SYS_sched_getattr, 0, before, sizeof *before, 0) || before->policy != SCHED_OTHER)
        return false;
    struct inv_sched_attr prompt = *before;
    prompt.runtime_ns = SHORT_SLICE_NS;
    return syscall(SYS_sched_setattr, 0, &prompt, 0) == 0;
}

void inv_prompt_begin(struct inv_prompt *prompt)
{
    if (prompt->changed)
        return;
    int saved = errno;
    prompt->changed = true;
    if (!shorten(&prompt->before))
        prompt->before.size = 0;
    prompt->slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    errno = saved;
}

void inv_prompt_end(struct inv_prompt *prompt)
{
    if (!prompt->changed)
        return;
    int saved = errno;
    if (prompt->before.size)
        syscall(SYS_sched_setattr, 0, &prompt->before, 0);
    if (prompt->slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)prompt->slack_ns);
    prompt->changed = false;
    errno = saved;
}
