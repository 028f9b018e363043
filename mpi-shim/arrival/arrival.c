/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * arrival.c - arrival barrier: for collectives that no rank leaves before all ranks have arrived,
 * such as MPI_Barrier and MPI_Allreduce.
 *
 * Each rank writes on the communicator's arrival board how many such collectives it has come to.
 * So the last rank to arrive knows that it has to wake the sleeping ones.
 *
 * Where the library calls the shim while it polls, the library's blocking function is called at
 * once and watched (watch.c).  Elsewhere, with a core for each rank, a rank reads the board, which
 * costs 1 ns a time, and lends its core if that takes long.  When the board shows all ranks, it
 * calls the blocking function, which is then short.  Before that, it waits until every sleeper is
 * awake and gives back a core that a sleeper asks for: the blocking function would spin on the very
 * core that the sleeper needs.  With more processes than cores the blocking function would spin
 * through a whole time slice, so all ranks call the non-blocking form and yield.  The two forms do
 * not match each other, so the choice follows only from what all ranks have in common.
 */
#include "mpi-shim/arrival/arrival.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/arrival/board.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/site.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/wait/check.h"
#include "mpi-shim/wait/ring.h"
#include "mpi-shim/wait/watch.h"
#include "libinvasive/process.h"

enum { CHECKS_PER_PROGRESS = 64, SOON_US = 1000 };

static bool all_arrived(struct shim_arrival *a)
{
    struct shim_comm *c = a->comm;
    /* acquire: partner is the release store in shim_arrival_begin; orders only the count itself */
    while (a->next < c->size &&
           (int64_t)(atomic_load_explicit(&c->line[a->next].count, memory_order_acquire) -
                     c->arrivals) >= 0)
        a->next++;
    inv_assert(a->next <= c->size);
    return a->next == c->size;
}

static bool check_arrivals(struct shim_wait *w)
{
    struct shim_arrival *a = w->arg;
    if (all_arrived(a))
        return true;
    /* Other ranks may need progress of this one before they can arrive: the rest of a message, the
     * answer to a lock.  A sleeping rank makes it at every check. */
    if (inv_hold == INV_HOLD_NONE || ++a->checks % CHECKS_PER_PROGRESS == 0)
        shim_progress();
    return false;
}

static void await_arrivals(struct shim_arrival *a)
{
    if (!all_arrived(a)) {
        struct shim_wait wait = {
            .done = check_arrivals, .arg = a, .comm = a->comm, .at_arrival = true};
        shim_wait(&wait, a->call_site);
        a->waited = true;
    }
    shim_ring_sleepers(a->comm, true);
}

/* Has every rank that slept at this barrier its core again?  If a rank is at the next barrier
 * already (this collective moved no data), all have, and the sleepers that the header counts may
 * sleep there. */
static bool check_all_awake(struct shim_wait *w)
{
    struct shim_comm *c = ((struct shim_arrival *)w->arg)->comm;
    /* acquire: partner is count_sleeper in wait.c; only the number matters */
    if (atomic_load_explicit(&c->header->sleeping, memory_order_acquire) == 0)
        return true;
    for (int r = 0; r < c->size; r++)
        if ((int64_t)(atomic_load_explicit(&c->line[r].count, memory_order_acquire) - c->arrivals) >
            0)
            return true;
    return false;
}

static void await_awakening(struct shim_arrival *a)
{
    struct shim_wait wait = {.done = check_all_awake, .arg = a};
    if (!check_all_awake(&wait)) {
        shim_wait(&wait, (const void *)await_awakening);
        a->waited = true;
    } else if (a->waited)
        shim_ring_comm(a->comm); /* the last one awake: others may have lent theirs meanwhile */
}

static struct {
    /* Of this process, in an arrival barrier.  Counted only with MPI_THREAD_MULTIPLE and a core for
     * each rank, by shim_arrival_begin and shim_arrival_end. */
    _Atomic int threads;
    _Atomic int next_tag; /* written by shim_arrival_barrier_tag */
} arrivals;

/* Threads that wait at boards take the core from each other, and from threads in the library.  So a
 * thread that arrives while another one waits calls the blocking function at once, in which threads
 * take turns.  That lends no core, so it is done only where waits have been shorter than
 * SOON_US. */
static bool expects_short_wait(const void *call_site)
{
    uint64_t expects = shim_site_expects(shim_site(call_site));
    return expects != 0 && expects < SOON_US * shim_clock.us;
}

bool shim_arrival_begin(struct shim_arrival *a, struct shim_comm *c, const void *call_site)
{
    a->comm = shim_alone(c) ? NULL : c;
    if (!a->comm)
        return true;
    shim_comm_board(c);
    inv_assert(c->rank >= 0 && c->rank < c->size);
    inv_assert((c->line == NULL) == (c->header == NULL));
    /* release: partner is the acquire load in all_arrived() */
    if (c->line)
        atomic_store_explicit(&c->line[c->rank].count, ++c->arrivals, memory_order_release);
    if (shim_hooked()) {
        /* With a core for each rank, sleepers wake up while this rank sends.  Else they might wake
         * up on its core before it has sent anything, so they are rung at its first poll. */
        if (c->line && !inv_process.anonymous)
            shim_ring_sleepers(c, true);
        shim_watch_begin(c, true, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE);
        return true;
    }
    if (c->line) /* else shim_wait_collective notes it */
        shim_workload_call(call_site);
    a->call_site = call_site;
    a->waited = false;
    a->counted = false;
    a->next = 0;
    a->checks = 0;
    a->start = shim_ticks();
    if (!c->line || inv_process.anonymous)
        return false;
    a->counted = shim_world.threads_may_call;
    /* relaxed: a hint */
    if (a->counted && atomic_fetch_add_explicit(&arrivals.threads, 1, memory_order_relaxed) > 0 &&
        expects_short_wait(call_site)) {
        shim_ring_sleepers(c, true);
        return true;
    }
    await_arrivals(a);
    await_awakening(a);
    return true;
}

int shim_arrival_wait_request(struct shim_arrival *a, MPI_Request *request)
{
    /* The last rank to arrive wakes the sleepers.  So does each rank that has completed the
     * collective: the sleepers may need what it has sent meanwhile. */
    struct shim_comm *c = a->comm;
    if (!c->line)
        return shim_wait_collective(request, c, a->call_site);
    shim_ring_sleepers(c, true);
    int result = shim_wait_request(request, MPI_STATUS_IGNORE, c, true, a->call_site);
    shim_ring_sleepers(c, true);
    return result;
}

void shim_arrival_end(struct shim_arrival *a)
{
    if (!a->comm)
        return;
    if (shim_hooked()) {
        shim_watch_end();
        return;
    }
    if (a->counted) {
        int before = atomic_fetch_sub_explicit(&arrivals.threads, 1, memory_order_relaxed);
        inv_assert(before > 0);
    }
    uint64_t end = shim_ticks();
    if (!a->waited)
        shim_workload_waited(a->start, end, false);
    shim_site_learn(shim_site(a->call_site), a->start, end);
}

/* --- before a function that cannot be split */

void shim_arrival_barrier(struct shim_arrival *a, struct shim_comm *c, const void *call_site)
{
    if (shim_arrival_begin(a, c, call_site))
        return;
    MPI_Request request;
    if (c->line)
        await_arrivals(a);
    else if (shim_pmpi.Ibarrier(c->handle, &request) == MPI_SUCCESS)
        shim_wait_collective(&request, c, call_site);
}

int shim_arrival_barrier_tag(struct shim_comm *c, const void *call_site)
{
    int mine = atomic_fetch_add_explicit(&arrivals.next_tag, 1, memory_order_relaxed);
    int highest = mine;
    MPI_Request request;
    if (shim_alone(c))
        return mine;
    if (shim_hooked())
        (void)SHIM_WATCH(c, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE,
                         shim_pmpi.Allreduce(&mine, &highest, 1, MPI_INT, MPI_MAX, c->handle));
    else if (shim_pmpi.Iallreduce(&mine, &highest, 1, MPI_INT, MPI_MAX, c->handle, &request) ==
             MPI_SUCCESS)
        shim_wait_collective(&request, c, call_site);
    /* relaxed: two threads may take the same number (opened_group.c) */
    if (highest > mine)
        atomic_store_explicit(&arrivals.next_tag, highest + 1, memory_order_relaxed);
    return highest;
}
