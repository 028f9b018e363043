/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* slice.c - see slice.h. */
#define _GNU_SOURCE
#include "libinvasive/base/slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel's struct sched_attr, of which there is no public declaration in libc. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

uint64_t inv_slice_set(int tid, uint64_t slice_ns)
{
    struct attributes now;
    if (syscall(SYS_sched_getattr, tid, &now, sizeof now, 0) || (now.policy != SCHED_OTHER && now.policy != SCHED_IDLE))
        return 0;
    uint64_t before = now.runtime_ns;
    now.runtime_ns = slice_ns;
    return syscall(SYS_sched_setattr, tid, &now, 0) ? 0 : before;
}
