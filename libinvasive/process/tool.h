/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tool.h - where events are told to a tool, if there is one (include/invasive-tool.h).
 *
 * One line at the place of the event.  Without a tool it is a load and a branch; the arguments are
 * only computed with one.  Called by the OpenMP runtime and, for the cores, by hold.c, wait.c and
 * parked.c.
 */
#ifndef INV_TOOL_H
#define INV_TOOL_H

#include "include/invasive-tool.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/table/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What a tool has been told of a core. */
struct inv_told_core {
    _Atomic bool locked;         /* acquire/release; guards the others */
    const struct inv_tool *tool; /* that has been told: another tool starts at 0 */
    unsigned held;               /* arrivals less departures; a core: 0 or 1 */
};

/* Others than tool.c use inv_tool_get only. */
extern struct inv_tools {
    /* The registered tool with no function missing, or NULL.  Never freed.  Written by
     * inv_tool_register (release; partner: the acquire here, for what it points to).  seq_cst: a
     * thread changes a core's word and then looks here; partner is the fence of tell_holdings. */
    _Atomic(const struct inv_tool *) now;
    struct inv_told_core cores[INV_MAX_CORES + 1]; /* the last one is for the anonymous tokens */
    pthread_once_t at_fork;                        /* writer: inv_tool_register */
} inv_tools;

static inline const struct inv_tool *inv_tool_get(void)
{
    return atomic_load(&inv_tools.now);
}

/* Calls CALL, a function of the tool with its arguments, if there is a tool.  The caller may hold
 * locks and the function may come to a cancellation point, so the thread cannot be cancelled
 * meanwhile. */
#define INV_TELL(CALL)                                    \
    do {                                                  \
        const struct inv_tool *tool_now = inv_tool_get(); \
        if (__builtin_expect(tool_now != NULL, 0)) {      \
            INV_UNCANCELLED;                              \
            tool_now->CALL;                               \
        }                                                 \
    } while (0)

/* For the functions below only.  They report the changes of one core in their order (tool.c). */
void inv_tool_report_arrival(int hold);
void inv_tool_report_departure(int hold);
void inv_tool_report_loss(int hold);

/* This process has got `hold`.  Call it after the core's word says so. */
static inline void inv_tool_arrived(int hold)
{
    if (__builtin_expect(inv_tool_get() != NULL, 0))
        inv_tool_report_arrival(hold);
}

/* This process is about to give `hold` up.  Call it while the core's word still names this
 * process. */
static inline void inv_tool_leaves(int hold)
{
    if (__builtin_expect(inv_tool_get() != NULL, 0))
        inv_tool_report_departure(hold);
}

/* A thread has found that the core it held is not this process's any more. */
static inline void inv_tool_lost(int hold)
{
    if (__builtin_expect(inv_tool_get() != NULL, 0))
        inv_tool_report_loss(hold);
}

/* This process leaves its domain, with all that it holds. */
void inv_tool_left_domain(void);

#endif
