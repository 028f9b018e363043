/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * tool.c - registering a tool, loading the one that INVASIVE_TOOL names, and telling it of cores
 * (include/invasive-tool.h).
 *
 * A core changes hands by a single atomic operation on its word, and the tool is called a moment
 * before or after that.  So two threads could report changes of one core in the wrong order.
 * Therefore each core has a lock, taken only if there is a tool, and a mark that the tool has been
 * told of the core's arrival.  Under the lock the word is read again, and an eviction that no
 * thread has noticed yet is reported before the core's next arrival.
 */
#define _GNU_SOURCE
#include "libinvasive/process/tool.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/process/holdings.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct inv_tools inv_tools = {.at_fork = PTHREAD_ONCE_INIT};

/* --- what a tool has left out */

static void no_region_begin(const void *region, void (*function)(void *), unsigned threads,
                            unsigned level)
{
    (void)region, (void)function, (void)threads, (void)level;
}

static void no_region_end(const void *region)
{
    (void)region;
}

static void no_task(const void *region, unsigned number)
{
    (void)region, (void)number;
}

static void no_idle(void)
{
}

static void no_arrival(int core, enum inv_tool_arrival how)
{
    (void)core, (void)how;
}

static void no_departure(int core, enum inv_tool_departure how)
{
    (void)core, (void)how;
}

#define OR(FUNCTION, NONE) ((FUNCTION) ? (FUNCTION) : (NONE))

static struct inv_tool without_gaps(const struct inv_tool *tool)
{
    return (struct inv_tool){.region_begin = OR(tool->region_begin, no_region_begin),
                             .region_end = OR(tool->region_end, no_region_end),
                             .task_begin = OR(tool->task_begin, no_task),
                             .task_end = OR(tool->task_end, no_task),
                             .idle_begin = OR(tool->idle_begin, no_idle),
                             .idle_end = OR(tool->idle_end, no_idle),
                             .core_arrived = OR(tool->core_arrived, no_arrival),
                             .core_left = OR(tool->core_left, no_departure)};
}

/* --- cores */

static struct inv_told_core *lock_core(int hold)
{
    if (hold != INV_HOLD_TOKEN && (hold < 0 || hold >= INV_MAX_CORES))
        return NULL;
    struct inv_told_core *h = &inv_tools.cores[hold == INV_HOLD_TOKEN ? INV_MAX_CORES : hold];
    while (atomic_exchange_explicit(&h->locked, true, memory_order_acquire))
        sched_yield(); /* a function of the tool's is running under it */
    return h;
}

static void unlock_core(struct inv_told_core *h)
{
    inv_assert(atomic_load_explicit(&h->locked, memory_order_relaxed));
    atomic_store_explicit(&h->locked, false, memory_order_release);
}

static bool is_owned(int hold)
{
    return hold == INV_HOLD_TOKEN || inv_word_owner(inv_core_word(hold)) == inv_own_name();
}

static int number_of(int hold)
{
    return hold == INV_HOLD_TOKEN ? INV_TOOL_ANY_CORE : hold;
}

/* Why does the process give the hold up? */
static enum inv_tool_departure departure_reason(int hold)
{
    if (is_owned(hold))
        return INV_TOOL_LENT;
    return inv_word_reclaim(inv_core_word(hold)) ? INV_TOOL_RECLAIMED : INV_TOOL_RETURNED;
}

/* The tool to tell, or NULL; *h becomes what that tool has been told.  The caller of this function
 * and of the report_ functions below has the lock.  A process without a manager has no claim, so
 * none of its cores is told. */
static const struct inv_tool *update_tool(struct inv_told_core *h)
{
    const struct inv_tool *tool = inv_process.standalone ? NULL : inv_tool_get();
    if (h->tool != tool)
        h->held = 0;
    h->tool = tool;
    return tool;
}

static void report_arrival(struct inv_told_core *h, int hold)
{
    const struct inv_tool *tool = update_tool(h);
    if (!tool)
        return;
    if (h->held > 0 && hold != INV_HOLD_TOKEN) {
        tool->core_left(hold, INV_TOOL_EVICTED);
        h->held--;
    }
    h->held++;
    inv_assert(hold == INV_HOLD_TOKEN || h->held == 1);
    tool->core_arrived(number_of(hold), is_owned(hold) ? INV_TOOL_OWN : INV_TOOL_BORROWED);
}

static void report_departure(struct inv_told_core *h, int hold, enum inv_tool_departure how)
{
    const struct inv_tool *tool = update_tool(h);
    if (!tool || h->held == 0)
        return;
    inv_assert(hold == INV_HOLD_TOKEN || h->held == 1);
    h->held--;
    tool->core_left(number_of(hold), how);
}

void inv_tool_report_arrival(int hold)
{
    INV_UNCANCELLED;
    struct inv_told_core *h = lock_core(hold);
    if (!h)
        return;
    report_arrival(h, hold);
    unlock_core(h);
}

void inv_tool_report_departure(int hold)
{
    INV_UNCANCELLED;
    struct inv_told_core *h = lock_core(hold);
    if (!h)
        return;
    report_departure(h, hold, departure_reason(hold));
    unlock_core(h);
}

/* Another thread of this process may have got the core again meanwhile: its arrival then reports
 * the loss, too. */
void inv_tool_report_loss(int hold)
{
    if (hold < 0)
        return;
    INV_UNCANCELLED;
    struct inv_told_core *h = lock_core(hold);
    if (h && inv_word_holder(inv_core_word(hold)) != inv_own_name())
        report_departure(h, hold, INV_TOOL_EVICTED);
    if (h)
        unlock_core(h);
}

void inv_tool_left_domain(void)
{
    if (!inv_tool_get())
        return;
    INV_UNCANCELLED;
    for (int hold = 0; hold < (int)inv_process.ncores; hold++)
        inv_tool_report_departure(hold);
    struct inv_told_core *h = lock_core(INV_HOLD_TOKEN);
    while (update_tool(h) && h->held > 0)
        report_departure(h, INV_HOLD_TOKEN, INV_TOOL_LENT);
    unlock_core(h);
}

/* Tells a tool that is registered late what the process holds. */
static void report_holdings(void)
{
    if (!inv_managed())
        return;
    INV_UNCANCELLED;
    /* The tool is registered, now look at the words: partner is a thread that takes a core and then
     * looks whether there is a tool (tool.h).  One of the two tells of the core. */
    atomic_thread_fence(memory_order_seq_cst);
    for (int tokens = inv_tokens_held(); tokens > 0; tokens--)
        inv_tool_report_arrival(INV_HOLD_TOKEN);
    for (int core = 0; !inv_process.anonymous && core < (int)inv_process.ncores; core++) {
        struct inv_told_core *h = lock_core(core);
        inv_word w = inv_core_word(core);
        bool held = inv_word_holder(w) == inv_own_name() && !inv_word_handed(w);
        if (held && update_tool(h) && h->held == 0)
            report_arrival(h, core);
        unlock_core(h);
    }
}

/* --- registering */

/* The child of a fork holds no core, and a thread that held a lock is not there. */
static void after_fork_in_child(void)
{
    for (int i = 0; i <= INV_MAX_CORES; i++) {
        atomic_store_explicit(&inv_tools.cores[i].locked, false, memory_order_relaxed);
        inv_tools.cores[i].held = 0; /* both: the parent's thread that changed them is not here */
    }
}

static void forget_at_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

int inv_tool_register(const struct inv_tool *tool, unsigned version)
{
    if (!tool || version == 0 || version > INV_TOOL_VERSION) {
        errno = EINVAL;
        return -1;
    }
    /* Not freed when the tool goes: threads may be about to look into it. */
    struct inv_tool *copy = malloc(sizeof *copy);
    if (!copy)
        return -1;
    *copy = without_gaps(tool);
    pthread_once(&inv_tools.at_fork, forget_at_fork);
    const struct inv_tool *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(&inv_tools.now, &none, copy, memory_order_release,
                                                 memory_order_relaxed)) {
        free(copy);
        errno = EBUSY;
        return -1;
    }
    report_holdings();
    return 0;
}

void inv_tool_unregister(void)
{
    atomic_store_explicit(&inv_tools.now, NULL, memory_order_relaxed);
}

/* --- INVASIVE_TOOL */

static void complain_of_tool(const char *path, const char *what)
{
    char line[512];
    int n = snprintf(line, sizeof line, "invasive: INVASIVE_TOOL=%.300s: %.100s. "
                     "Going on without it.\n", path, what);
    inv_write_stderr(line, (size_t)n);
}

static void __attribute__((constructor)) load_tool(void)
{
    const char *path = inv_getenv("INVASIVE_TOOL");
    if (!path || !*path)
        return;
    INV_UNCANCELLED;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!object) {
        complain_of_tool(path, dlerror());
        return;
    }
    int (*start)(void) = (int (*)(void))dlsym(object, "inv_tool_start");
    if (!start) {
        complain_of_tool(path, "it defines no function inv_tool_start");
        return;
    }
    int result = start();
    char what[64];
    snprintf(what, sizeof what, "its inv_tool_start returned %d", result);
    if (result != 0)
        complain_of_tool(path, what);
}
