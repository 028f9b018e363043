/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * setup.c - the set-up phase of invasive computing, and its end.
 *
 * After MPI has started, each rank joins the domain of its node.  When all ranks have (presence.c),
 * they invade without blocking until they agree that each holds a core (agreement.c).  If one rank
 * cannot be managed, or the time limit passes, all of them go on unmanaged.  Wrappers must be in
 * force in all ranks or in none, since they use collectives that have to match.
 * (Schreiber et al., section 5)
 *
 * All ranks of MPI_COMM_WORLD do so in MPI_Init (init.c).  The ranks of a communicator that was
 * made from a session do the same (session.c), and are a managed group then (managed_group.c).
 */
#define _GNU_SOURCE
#include "mpi-shim/setup/setup.h"
#include "libinvasive/table/arrival_board.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/hash.h"
#include "invasive.h"
#include "libinvasive/launch/launch.h"
#include "mpi-shim/calls/reduce.h"
#include "libinvasive/record/record.h"
#include "mpi-shim/dispatch/variant.h"
#include "mpi-shim/gen/shim-pmpi.h"
#include "mpi-shim/measure/clock.h"
#include "mpi-shim/measure/site_stats.h"
#include "mpi-shim/measure/workload.h"
#include "mpi-shim/ranks/comm.h"
#include "mpi-shim/ranks/managed_group.h"
#include "mpi-shim/ranks/world.h"
#include "mpi-shim/setup/agreement.h"
#include "mpi-shim/setup/presence.h"
#include "mpi-shim/setup/report_gather.h"
#include "mpi-shim/wait/tasks.h"
#include "mpi-shim/wait/watch.h"
#include "libinvasive/process.h"
#include "libinvasive/base/uncancelled.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SETUP_LIMIT_NS = 2000000000, RETRY_US = 1000 };

static int local_size(void)
{
    const char *names[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"};
    for (int i = 0; i < 2; i++) {
        const char *text = inv_getenv(names[i]);
        if (text && atoi(text) > 0)
            return atoi(text);
    }
    return -1;
}

/* Identifies the core table by the kernel's names: the device and inode of its mapping, and the
 * machine.  A socket name does not identify it, since two containers may use the same one. */
static uint64_t domain_identity(void)
{
    char line[512];
    uint64_t hash = inv_boot_hash();
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to, inode;
        unsigned major, minor;
        if (sscanf(line, "%lx-%lx %*s %*x %x:%x %lu", &from, &to, &major, &minor, &inode) == 5 &&
            (uintptr_t)inv_process.table >= from && (uintptr_t)inv_process.table < to) {
            hash = inv_hash(hash, &major, sizeof major);
            hash = inv_hash(hash, &minor, sizeof minor);
            hash = inv_hash(hash, &inode, sizeof inode);
            break;
        }
    }
    if (f)
        fclose(f);
    return hash;
}

/* Written in set-up and in the last finalize, by this file; the plan by report_gather.c. */
static struct {
    /* Threads may make the first communicators of two sessions at once.  Held only for local work,
     * never across messages: other ranks may make the two in another order. */
    pthread_mutex_t lock;
    /* The lines for the sleep flags of this node's ranks.  Of the ranks that have no line yet, the
     * first reserves lines for all; the last of them to end frees these. */
    struct {
        int first, lines, mine; /* mine: -1 none */
    } sleep_flags;
    unsigned polls_seen; /* by count_poll, while hook_works tests the hook */
    struct shim_report_plan report_plan;
} setup = {.lock = PTHREAD_MUTEX_INITIALIZER, .sleep_flags.mine = -1};

void shim_threads_call(void)
{
    shim_world.threads_may_call = true;
    if (shim_world.in_force && shim_hooked())
        shim_watch_no_more();
}

void shim_join(MPI_Group world)
{
    shim_pmpi.Group_rank(world, &shim_world.rank);
    shim_pmpi.Group_size(world, &shim_world.size);
    shim_world.group = world;
    shim_world.domain_ranks = 0;
    shim_world.me = 0;
    shim_world.domain_rank_of = malloc((size_t)shim_world.size * sizeof *shim_world.domain_rank_of);
    if (!shim_world.domain_rank_of)
        abort(); /* the other ranks wait for this one */
    for (int r = 0; r < shim_world.size; r++)
        shim_world.domain_rank_of[r] = SHIM_DOMAIN_RANK_NONE;
    shim_world.joined = true;
    if (inv_wanted())
        inv_join(shim_world.rank, shim_world.size, local_size());
}

static struct shim_agreement agreement_of(MPI_Comm comm, int number)
{
    struct shim_agreement a = {.comm = comm, .number = number};
    shim_pmpi.Comm_rank(comm, &a.rank);
    shim_pmpi.Comm_size(comm, &a.size);
    if (!shim_world.joined)
        return a;
    MPI_Group group;
    shim_pmpi.Comm_group(comm, &group);
    a.world_rank = shim_world_ranks(group, a.size);
    if (!a.world_rank)
        abort(); /* the other ranks wait for this one */
    shim_pmpi.Group_free(&group);
    return a;
}

static bool is_newcomer(const struct shim_location *rank, uint64_t domain)
{
    return rank->domain == domain && rank->flag_line < 0;
}

/* The first rank of the domain that has no line yet; -1: none. */
static int leader_of(const struct shim_agreement *a, const struct shim_location *all,
                     uint64_t domain)
{
    int r = 0;
    while (r < a->size && !is_newcomer(&all[r], domain))
        r++;
    return r < a->size ? r : -1;
}

/* The last rank to leave frees the lines; no rank rings after that. */
static void leave_lines(int first, int lines)
{
    struct inv_arrival_line *line = inv_arrival_line_at(inv_process.table, (unsigned)first);
    /* acq_rel: what any rank did to its line comes before the lines are freed */
    if (atomic_fetch_add_explicit(&line->count, 1, memory_order_acq_rel) + 1 == (uint64_t)lines)
        inv_arrival_board_free(inv_process.table, first, (unsigned)lines);
}

/* Takes line `mine`, unless another thread of this process has taken a line meanwhile. */
static void take_line(int first, int lines, int mine)
{
    inv_assert(first >= 0 && mine >= first && mine < first + lines);
    pthread_mutex_lock(&setup.lock);
    bool need = setup.sleep_flags.mine < 0;
    if (need) {
        setup.sleep_flags.first = first;
        setup.sleep_flags.lines = lines;
        setup.sleep_flags.mine = mine;
    }
    pthread_mutex_unlock(&setup.lock);
    if (!need)
        leave_lines(first, lines);
}

/* Assigns lines to the ranks of this domain that have none, in order of rank. */
static void give_lines(const struct shim_agreement *a, struct shim_location *all,
                       uint64_t domain, int first)
{
    int lines = 0, mine = -1;
    for (int r = 0; r < a->size; r++)
        if (is_newcomer(&all[r], domain)) {
            all[r].flag_line = first + lines++;
            if (r == a->rank)
                mine = all[r].flag_line;
        }
    if (mine >= 0)
        take_line(first, lines, mine);
}

/* Numbers the ranks of this domain in the order of MPI_COMM_WORLD: their domain ranks. */
static void number_domain_ranks(const struct shim_agreement *a, const struct shim_location *all,
                                uint64_t domain)
{
    pthread_mutex_lock(&setup.lock);
    for (int r = 0; r < a->size; r++) {
        int world_rank = a->world_rank[r], n = shim_world.domain_ranks;
        if (all[r].domain != domain || !inv_slot_valid(inv_process.table, all[r].slot) ||
            shim_world.domain_rank_of[world_rank] != SHIM_DOMAIN_RANK_NONE || n == INV_MAX_SLOTS)
            continue;
        if (r == a->rank)
            shim_world.me = n;
        inv_assert(n >= 0 && n < INV_MAX_SLOTS && world_rank >= 0 && world_rank < shim_world.size);
        shim_world.domain_rank[n].slot = (unsigned)all[r].slot;
        shim_world.domain_rank[n].sleep_flag =
            inv_arrival_line_at(inv_process.table, (unsigned)all[r].flag_line);
        shim_world.domain_rank_of[world_rank] = n;
        shim_world.domain_ranks = n + 1;
    }
    pthread_mutex_unlock(&setup.lock);
}

/* Finds the domain ranks and the lines of their sleep flags.  Every rank calls
 * shim_agreement_allgather equally often, whatever happens: twice, and once more where some ranks
 * have threads that call at once.  There the line that was assigned to a rank may not be the line
 * that it has taken. */
static bool exchange_locations(const struct shim_agreement *a)
{
    struct shim_location *all = calloc((size_t)a->size, sizeof *all);
    if (!all)
        abort(); /* the other ranks wait for this one */
    struct shim_location mine = {domain_identity(),      (int32_t)inv_process.slot,
                                 setup.sleep_flags.mine, inv_is_recorded(),
                                 inv_report_is_here(),   shim_world.threads_may_call};
    bool good = shim_agreement_allgather(a, &mine, all, sizeof mine);
    int leader = leader_of(a, all, mine.domain), lines = 0, first = -1;
    bool again = false;
    for (int r = 0; r < a->size; r++) {
        lines += is_newcomer(&all[r], mine.domain);
        again = again || all[r].threads;
    }
    if (leader == a->rank)
        first = inv_arrival_board_alloc(inv_process.table, (unsigned)lines);
    int *firsts = calloc((size_t)a->size, sizeof *firsts);
    if (!firsts)
        abort();
    good = shim_agreement_allgather(a, &first, firsts, sizeof first) && good;
    if (leader >= 0) {
        first = firsts[leader];
        good = good && first >= 0 && first <= INV_ARRIVAL_LINES - lines;
        if (good)
            give_lines(a, all, mine.domain, first);
    }
    mine.flag_line = setup.sleep_flags.mine;
    if (again)
        good = shim_agreement_allgather(a, &mine, all, sizeof mine) && good;
    if (good)
        number_domain_ranks(a, all, mine.domain);
    if (good && a->size == shim_world.size)
        shim_report_gather_plan(&setup.report_plan, all);
    free(firsts);
    free(all);
    return good;
}

static bool holds_core(void)
{
    struct inv_claim claim;
    return inv_managed() && inv_invade(NULL, INV_NONBLOCKING, &claim) == 0 &&
           (inv_hold != INV_HOLD_NONE || claim.held_cores > 0);
}

/* Invades until every rank holds a core (true), or the time limit has passed.  All ranks leave in
 * the same round. */
static bool all_invade(const struct shim_agreement *a)
{
    uint64_t limit = inv_now_ns() + SETUP_LIMIT_NS;
    for (;;) {
        int now[3] = {inv_managed(), holds_core(), inv_now_ns() < limit};
        if (!shim_agreement_min(a, now, 3) || !now[0])
            return false;
        if (now[1])
            return true;
        if (!now[2]) {
            if (a->rank == 0 && !shim_world.in_force)
                inv_leave("not every MPI rank got a core in time");
            return false;
        }
        usleep(RETRY_US);
    }
}

/* A number that is the same in all ranks of this job in this domain, and in no other process: the
 * first domain rank's process and the line of its sleep flag. */
static uint64_t job_number(void)
{
    const struct shim_domain_rank *first = &shim_world.domain_rank[0];
    int32_t pid = inv_slot_at(inv_process.table, first->slot)->pid;
    uint32_t line = (uint32_t)(first->sleep_flag - inv_arrival_line_at(inv_process.table, 0));
    return (uint64_t)(uint32_t)pid << 32 | (line + 1);
}

static unsigned count_poll(unsigned polls, unsigned how)
{
    (void)how;
    setup.polls_seen += polls;
    return 0;
}

/* Does the library call the hook while it waits?  Tested with a message from this rank to itself,
 * which is sent only after the rank has polled for it. */
static bool hook_works(const struct shim_agreement *a)
{
    int sent = 0, received = 0, flag = 0;
    MPI_Request receive, send;
    setup.polls_seen = 0;
    shim_hook_set(count_poll, 1);
    int result = shim_pmpi.Irecv(&received, 1, MPI_INT, a->rank, 0, a->comm, &receive);
    if (result != MPI_SUCCESS)
        return false;
    for (int i = 0; i < 100 && setup.polls_seen == 0; i++)
        shim_pmpi.Test(&receive, &flag, MPI_STATUS_IGNORE);
    shim_complete(shim_pmpi.Isend(&sent, 1, MPI_INT, a->rank, 0, a->comm, &send), &send);
    shim_complete(MPI_SUCCESS, &receive);
    return setup.polls_seen > 0;
}

/* Can this rank use the hook?  A rank alone can: its messages to itself make no polls, and it waits
 * for no other rank. */
static bool may_be_hooked(const struct shim_agreement *a)
{
    if (shim_world.in_force)
        return shim_hooked();
    shim_tasks_start();
    if (shim_world.threads_may_call)
        return false;
    bool works = hook_works(a) || a->size == 1;
    /* With a core for each rank, only every eighth poll: the hook costs some nanoseconds. */
    shim_hook_set(shim_polled, inv_process.anonymous ? 1 : 8);
    return works && !shim_world.tasks_wanted;
}

/* The ranks agree whether they use the hook.  A rank that is managed already goes on with the hook,
 * or without.  False: some ranks use it already and some do not, or the table is full.  Then no
 * rank becomes managed. */
static bool agree_on_ways(const struct shim_agreement *a, bool good, bool *hooked, int *age)
{
    int ways[4] = {good, may_be_hooked(a), !shim_world.in_force || !shim_hooked(),
                   -shim_managed_group_latest_age()};
    if (!shim_agreement_min(a, ways, 4) || !ways[0] || !(ways[1] || ways[2])) {
        if (!shim_world.in_force)
            shim_hook_set(NULL, 1);
        return false;
    }
    *hooked = ways[1];
    *age = 1 - ways[3];
    return true;
}

static bool is_in_mpi(void)
{
    return shim_thread.frame != 0;
}

static void begin_management(const struct shim_agreement *a)
{
    int *tag_ub, flag = 0;
    shim_pmpi.Comm_get_attr(a->comm, MPI_TAG_UB, &tag_ub, &flag);
    pthread_mutex_lock(&setup.lock);
    if (!shim_world.in_force) {
        shim_world.tag_ub = flag ? *tag_ub : 32767;
        shim_clock_measure();
        shim_site_stats_start(job_number());
        atomic_store_explicit(&inv_triggers.in_mpi, is_in_mpi, memory_order_relaxed);
        shim_entries_wrap(true);
        shim_workload_start();
        shim_world.in_force = true;
    }
    pthread_mutex_unlock(&setup.lock);
}

/* The process goes on unmanaged, unless management has begun with another communicator. */
static void refuse_management(const char *why)
{
    if (!shim_world.in_force)
        inv_leave(why && *why ? why : NULL);
}

/* Are all ranks of the agreement in MPI_COMM_WORLD?  Those of a spawned job are not. */
static bool is_of_world(const struct shim_agreement *a)
{
    int r = 0;
    while (a->world_rank && r < a->size && (unsigned)a->world_rank[r] < (unsigned)shim_world.size)
        r++;
    return r == a->size;
}

static void set_up_ranks(const struct shim_agreement *a, shim_make_own *make_own)
{
    int least = !inv_managed() || !is_of_world(a)               ? SHIM_PRESENCE_REFUSED
                : shim_managed_group_of(a->world_rank, a->size) ? SHIM_PRESENCE_GROUP
                                                                : SHIM_PRESENCE_MANAGED;
    char text[SHIM_PRESENCE_BYTES];
    const char *why = shim_presence_check(a, &least, text);
    if (!why && least == SHIM_PRESENCE_GROUP)
        return;
    if (why || !all_invade(a)) {
        refuse_management(why);
        return;
    }
    bool good = exchange_locations(a), hooked;
    int age;
    if (!agree_on_ways(a, good, &hooked, &age)) {
        refuse_management(a->rank == 0 ? "the core table has no room for this MPI job" : NULL);
        return;
    }
    if (!shim_world.in_force)
        shim_watch_set_up(hooked);
    MPI_Comm own;
    if (make_own(a, &own) != MPI_SUCCESS)
        abort(); /* the other ranks have the communicator and use it */
    shim_pmpi.Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    shim_managed_group_add(a->world_rank, a->size, a->number, own, age);
    shim_comms_recheck();
    begin_management(a);
}

void shim_set_up(MPI_Comm comm, int number, shim_make_own *make_own)
{
    INV_UNCANCELLED; /* the other ranks wait for this one */
    struct shim_agreement a = agreement_of(comm, number);
    /* A session's rank alone waits for no other rank, and MPICH 4.0 crashes when it polls. */
    if (a.size > 1 || number == 0)
        set_up_ranks(&a, make_own);
    free(a.world_rank);
}

void shim_tear_down(bool synchronised)
{
    INV_UNCANCELLED;
    struct shim_managed_group *all = shim_managed_group_of_all();
    if (shim_world.in_force) {
        shim_workload_stop();
        shim_entries_wrap(false);
        shim_hook_set(NULL, 1);
        shim_comm_drop_all();
        shim_reduce_end();
        if (synchronised && all)
            shim_report_gather(&setup.report_plan, all->own);
        leave_lines(setup.sleep_flags.first, setup.sleep_flags.lines);
        setup.sleep_flags.mine = -1;
        shim_managed_groups_end();
        shim_world.in_force = false;
    }
    if (shim_world.joined)
        shim_pmpi.Group_free(&shim_world.group);
    free(shim_world.domain_rank_of);
    shim_world.domain_rank_of = NULL;
    shim_world.joined = shim_world.threads_may_call = false;
}
