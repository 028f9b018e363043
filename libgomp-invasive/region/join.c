/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * join.c - see join.h.
 */
#define _GNU_SOURCE
#include "libgomp.h"
#include "join.h"
#include "context.h"
#include "hold.h"
#include "objects.h"
#include "parallel.h"
#include "process.h"
#include "work_source.h"
#include "thread_limits.h"
#include "tickets.h"
#include "tls.h"
#include <libinvasive/process/tool.h>
#include <limits.h>
#include <sys/resource.h>

/* Is a process without a manager, whose threads are more than the processors, better off in a
 * domain of its own?  If they can be contexts there, which take turns on the processors: kernel
 * threads wait for each other's time slices.  Not if the user or the program says on which
 * processors threads run, or address space is limited. */
static bool is_better_standalone (void)
{
    struct rlimit space;
    return !inv_asked() && !inv_managed() && !gomp_places_list && !inv_tool_get() &&
           getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY &&
           !gomp_strict_threads() && gomp_movable_threads() && gomp_contexts_usable() &&
           !gomp_program_binds_threads();
}

static unsigned processors_now (void)
{
    struct inv_cpus cpus;
    return inv_cpus_get(0, &cpus) == 0 ? (unsigned)inv_cpus_count(&cpus) : 0;
}

/* Written by threads that begin regions.  relaxed where no data goes with it. */
static struct {
    _Atomic bool begun;  /* a first region has; stays so */
    _Atomic bool looked; /* whether a large team is better off standalone; likewise */
    _Atomic bool joined; /* or tried to; stays so, but for a fork.  Stored with release; partner: the acquire load of
                            join_first */
    /* This is the child of a fork; of a process in which another thread may have been asking the dynamic linker
     * then, which must not be asked in the child.  Written before the child can have further threads. */
    bool forked, beside_linker;
    /* The most threads that the teams of a nested region and of the region around it have had
     * together.  relaxed: a top-level region that does not see the value leaves it to the next
     * one. */
    _Atomic unsigned most_nested;
} first;

void gomp_record_nested (unsigned nthreads)
{
    const struct gomp_team *around = gomp_thread()->ts.team;
    uint64_t all = (uint64_t)nthreads * around->nthreads;
    if (all > atomic_load_explicit(&first.most_nested, memory_order_relaxed) && all <= UINT_MAX)
        atomic_store_explicit(&first.most_nested, (unsigned)all, memory_order_relaxed);
}

/* Makes the process standalone if that is better.  Decided once: at its first region with more
 * threads than processors, or after nested regions with more.  Not if other threads of the program
 * use OpenMP, which may be in the middle of a region. */
static void join_standalone (unsigned nthreads)
{
    unsigned here = atomic_load_explicit(&first.looked, memory_order_relaxed) ? 0 : processors_now();
    if (here == 0 || nthreads <= here || atomic_exchange(&first.looked, true))
        return;
    if (is_better_standalone() && !gomp_use_has_further_threads())
        inv_join_standalone(here);
}

/* A child of a fork has the team size of its parent, since its data may be divided by that.  Threads that wait for
 * each other in loops of their own need a core each, and a child beside its siblings has fewer: the kernel is to
 * run them. */
static bool is_better_unmanaged (void)
{
    return first.beside_linker || (first.forked && inv_wanted() && gomp_program_busy_waits());
}

static void join_first (unsigned nthreads)
{
    if (atomic_load_explicit(&first.joined, memory_order_acquire))
        return;
    atomic_store_explicit(&first.begun, true, memory_order_relaxed);
    if (is_better_unmanaged())
        inv_join_never(NULL);
    inv_pin_threads();
    if (inv_wanted() && !inv_managed() && !gomp_team_is_default(nthreads) &&
        !gomp_space_to_join(nthreads))
        inv_join_never("the limit on address space (ulimit -v) leaves no room for the core table "
                       "beside the program's threads");
    inv_join(-1, -1, -1); /* a second thread waits for the first */
    inv_set_work_probe(gomp_leaves_work);
    inv_set_give_way(&gomp_give_way);
    atomic_store_explicit(&first.joined, true, memory_order_release);
}

void gomp_sched_join (unsigned nthreads)
{
    join_first(nthreads);
    if (inv_managed() || nthreads > GOMP_TICKETS_MOST || gomp_thread()->ts.level > 0)
        return;
    unsigned nested = atomic_load_explicit(&first.most_nested, memory_order_relaxed);
    unsigned all = nthreads > nested ? nthreads : nested;
    if (__builtin_expect(all > gomp_available_cpus, 0))
        join_standalone(all);
}

/* Threads that begin regions ask the dynamic linker, in tls.c. */
void gomp_join_forget (void)
{
    bool begun = atomic_load_explicit(&first.begun, memory_order_relaxed);
    first.forked = true;
    first.beside_linker |= begun && (!gomp_thread_icv || gomp_use_has_further_threads());
    atomic_store_explicit(&first.joined, false, memory_order_relaxed);
    if (begun)
        atomic_store_explicit(&first.looked, true, memory_order_relaxed);
}
