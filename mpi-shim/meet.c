/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * meet.c - collectives that no rank leaves before all have come: barrier, allreduce, ...
 *
 * Each rank writes on the communicator's arrival board how many it has come to, so that
 * the last one to come knows that it is the one to wake those who sleep.
 *
 * Where the library calls us while it polls, its own blocking function is called at once and
 * watched (watch.c).  Elsewhere, with a core for each rank, who finds all others on the board
 * calls it, which is then short; who does not waits looking at the board, which costs 1 ns a
 * look, and lends its core if that takes long.  In between, whoever is awake waits until
 * nobody sleeps any more, and gives a core back that a sleeper asks for: the blocking function
 * would spin on the very core that the last rank needs to come back.  With more processes than
 * cores it would spin through a whole time slice, so all ranks use the non-blocking one and
 * yield.  Which of the two is used depends only on what all ranks have in common; the two do
 * not match each other.
 */
#include "shim.h"

enum { LOOKS_PER_PROGRESS = 64, SOON_US = 1000 };

static bool arrived(struct shim_meeting *m)
{
    struct shim_comm *c = m->comm;
    /* acquire: partner is the release store in shim_meet.  Only the number matters. */
    while (m->next < c->size &&
           (int64_t)(atomic_load_explicit(&c->line[m->next].epoch, memory_order_acquire) -
                     c->epoch) >= 0)
        m->next++;
    return m->next == c->size;
}

static bool arrival_done(struct shim_wait *w)
{
    struct shim_meeting *m = w->arg;
    if (arrived(m))
        return true;
    /* Others may need us to send the rest of a message, or to answer a lock, before they can
     * come: at every look of one who sleeps in between. */
    if (inv_hold == INV_HOLD_NONE || ++m->looks % LOOKS_PER_PROGRESS == 0)
        shim_progress();
    return false;
}

static void await_arrivals(struct shim_meeting *m)
{
    if (!arrived(m)) {
        struct shim_wait wait = {.done = arrival_done, .arg = m, .comm = m->comm, .meeting = true};
        shim_wait(&wait, m->call_site);
        m->waited = true;
    }
    shim_ring_sleepers(m->comm, true);
}

/* Has everybody who slept until all had come his core again?  A rank that is at the next
 * meeting already has (nothing was to be exchanged in this one), and the sleepers that we
 * see may be there too. */
static bool all_awake(struct shim_wait *w)
{
    struct shim_comm *c = ((struct shim_meeting *)w->arg)->comm;
    /* acquire: partner is count_sleeper in wait.c; only the number matters */
    if (atomic_load_explicit(&c->header->sleeping, memory_order_acquire) == 0)
        return true;
    for (int r = 0; r < c->size; r++)
        if ((int64_t)(atomic_load_explicit(&c->line[r].epoch, memory_order_acquire) - c->epoch) > 0)
            return true;
    return false;
}

static void await_awakening(struct shim_meeting *m)
{
    struct shim_wait wait = {.done = all_awake, .arg = m};
    if (!all_awake(&wait)) {
        shim_wait(&wait, (const void *)await_awakening);
        m->waited = true;
    } else if (m->waited)
        shim_ring_comm(m->comm); /* the last one awake: some may have lent theirs meanwhile */
}

/* Threads of this process that are in meetings, where several may be and each rank has a core. */
static _Atomic int threads_met;

/* Several threads that wait at boards take the core from each other, and from those that are in the
 * library already.  So who comes while another one is there calls the blocking function at once, in
 * which threads take turns; but only where waits have been short, since it lends no core. */
static bool soon(const void *call_site)
{
    uint64_t expects = shim_site_expects(shim_site(call_site));
    return expects != 0 && expects < SOON_US * shim_us;
}

bool shim_meet(struct shim_meeting *m, struct shim_comm *c, const void *call_site)
{
    m->comm = shim_alone(c) ? NULL : c;
    if (!m->comm)
        return true;
    shim_comm_board(c);
    /* release: partner is the acquire load in arrived() */
    if (c->line)
        atomic_store_explicit(&c->line[c->rank].epoch, ++c->epoch, memory_order_release);
    if (shim_hooked) {
        /* With a core for each they wake up while we send.  Else they may do so on our core, before
         * we have sent anything: they are rung at our first poll. */
        if (c->line && !inv_process.anonymous)
            shim_ring_sleepers(c, true);
        shim_watch_begin(c, true, SHIM_MEMBER_NONE, SHIM_MEMBER_NONE);
        return true;
    }
    if (c->line) /* else shim_wait_collective does */
        shim_workload_call(call_site);
    m->call_site = call_site;
    m->waited = false;
    m->counted = false;
    m->next = 0;
    m->looks = 0;
    m->start = shim_ticks();
    if (!c->line || inv_process.anonymous)
        return false;
    m->counted = shim_threads_may_call();
    /* relaxed: a hint */
    if (m->counted && atomic_fetch_add_explicit(&threads_met, 1, memory_order_relaxed) > 0 &&
        soon(call_site)) {
        shim_ring_sleepers(c, true);
        return true;
    }
    await_arrivals(m);
    await_awakening(m);
    return true;
}

void shim_meet_arrivals(struct shim_meeting *m)
{
    if (m->comm && m->comm->line)
        await_arrivals(m);
}

int shim_meet_request(struct shim_meeting *m, MPI_Request *request)
{
    /* The last to come wakes those who sleep, and so does whoever is through: the others
     * may need what it has sent on the way. */
    struct shim_comm *c = m->comm;
    if (!c->line)
        return shim_wait_collective(request, c, m->call_site);
    shim_ring_sleepers(c, true);
    int result = shim_wait_request(request, MPI_STATUS_IGNORE, c, true, m->call_site);
    shim_ring_sleepers(c, true);
    return result;
}

void shim_part(struct shim_meeting *m)
{
    if (!m->comm)
        return;
    if (shim_hooked) {
        shim_watch_end();
        return;
    }
    if (m->counted)
        atomic_fetch_sub_explicit(&threads_met, 1, memory_order_relaxed);
    uint64_t end = shim_ticks();
    if (!m->waited)
        shim_workload_waited(m->start, end, false);
    shim_site_learn(shim_site(m->call_site), m->start, end);
}
