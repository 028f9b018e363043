/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * setup.c - MPI_Init and MPI_Finalize: the set-up phase of invasive computing.
 *
 * After MPI has started, each rank joins the domain of its node; when all are known to have
 * (roll.c), they invade without blocking until
 * every rank of MPI_COMM_WORLD holds a core, as they tell each other (council.c).  When one cannot
 * be managed, or the time limit passes, all of them go on unmanaged: wrappers must be in
 * force in all ranks or in none, since they use collectives that have to match.
 * (papers/invasive-compute-balancing.txt, section 5.)
 */
#define _GNU_SOURCE
#include "shim.h"
#include "hash.h"
#include "invasive.h"
#include "launch.h"

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
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 0)
            return atoi(text);
    }
    return -1;
}

/* The table's memory object, as the kernel names it: device and inode of our mapping, and
 * the machine.  The same socket name may mean two tables in two containers. */
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

/* Number the ranks of my domain in rank order.  The first one is its leader. */
static void number_members(const struct shim_whereabouts *all, uint64_t domain)
{
    struct inv_table *t = inv_process.table;
    shim_world.members = 0;
    for (int r = 0; r < shim_world.size; r++) {
        shim_world.member_of[r] = SHIM_MEMBER_NONE;
        if (all[r].domain != domain || !inv_slot_valid(t, all[r].slot) ||
            shim_world.members == INV_MAX_SLOTS)
            continue;
        if (r == shim_world.rank)
            shim_world.me = shim_world.members;
        shim_world.member[shim_world.members].slot = (unsigned)all[r].slot;
        shim_world.member_of[r] = shim_world.members++;
    }
}

static int leader_of(const struct shim_whereabouts *all, uint64_t domain)
{
    int r = 0;
    while (all[r].domain != domain)
        r++;
    return r;
}

/* Who shares my domain, and the board on which its members say that they sleep.  Every
 * rank calls tell_all twice, whatever happens. */
static bool meet_members(void)
{
    struct shim_whereabouts *all = calloc((size_t)shim_world.size, sizeof *all);
    shim_world.member_of = calloc((size_t)shim_world.size, sizeof *shim_world.member_of);
    if (!all || !shim_world.member_of)
        abort(); /* the others wait for us */
    struct shim_whereabouts mine = {domain_identity(), (int32_t)inv_process.slot, -1,
                                    shim_recorded(), inv_report_is_here()};
    bool good = shim_tell_all(&mine, all, sizeof mine);
    number_members(all, mine.domain);
    int leader = leader_of(all, mine.domain);
    if (leader == shim_world.rank)
        mine.mail_first = inv_board_alloc(inv_process.table, (unsigned)shim_world.members);
    good = shim_tell_all(&mine, all, sizeof mine) && good;
    int first = all[leader].mail_first;
    good = good && first >= 0 && first <= INV_BOARD_LINES - shim_world.members;
    shim_world.mail_first = first;
    for (int i = 0; good && i < shim_world.members; i++)
        shim_world.member[i].mail = inv_board_at(inv_process.table, (unsigned)(first + i));
    if (good)
        shim_gather_plan(all);
    free(all);
    return good;
}

static bool holds_core(void)
{
    struct inv_claim claim;
    return inv_managed() && inv_invade(NULL, INV_NONBLOCKING, &claim) == 0 &&
           (inv_seat != INV_SEAT_NONE || claim.held_cores > 0);
}

/* True when every rank holds a core.  All ranks leave in the same round. */
static bool all_invade(void)
{
    uint64_t limit = inv_now_ns() + SETUP_LIMIT_NS;
    for (;;) {
        int now[3] = {inv_managed(), holds_core(), inv_now_ns() < limit};
        if (!shim_agree(now, 3) || !now[0])
            return false;
        if (now[1])
            return true;
        if (!now[2]) {
            if (shim_world.rank == 0)
                inv_leave("not every MPI rank got a core in time");
            return false;
        }
        usleep(RETRY_US);
    }
}

/* The same in all ranks of this job that share our domain, and in no other process: the first
 * one's process and its line on the board. */
static uint64_t job_number(void)
{
    int32_t pid = inv_slot_at(inv_process.table, shim_world.member[0].slot)->pid;
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)(shim_world.mail_first + 1);
}

static unsigned polls_seen;
static void count_poll(unsigned polls, bool library_yields)
{
    (void)library_yields;
    polls_seen += polls;
}

/* Does the library call us while it waits?  Found out with a message to ourselves, which we
 * send when we have waited for it a while. */
static bool hook_works(void)
{
    int sent = 0, received = 0, flag = 0;
    MPI_Request receive, send;
    shim_hook_set(count_poll, 1);
    int result = shim_pmpi.Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &receive);
    if (result != MPI_SUCCESS)
        return false;
    for (int i = 0; i < 100 && polls_seen == 0; i++)
        shim_pmpi.Test(&receive, &flag, MPI_STATUS_IGNORE);
    shim_complete(shim_pmpi.Isend(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &send), &send);
    shim_complete(MPI_SUCCESS, &receive);
    /* With a core for each, less often: it costs each poll some nanoseconds. */
    shim_hook_set(shim_polled, inv_process.anonymous ? 1 : 8);
    return polls_seen > 0;
}

/* Watched where the library calls us.  MPI_Comm_idup would make it look for non-blocking
 * collectives ever after (council.c). */
static int duplicate_world(MPI_Comm *own)
{
    MPI_Request request;
    if (shim_hooked)
        return SHIM_WATCH(NULL, SHIM_MEMBER_ALL, SHIM_MEMBER_NONE,
                          shim_pmpi.Comm_create_group(MPI_COMM_WORLD, shim_world.group,
                                                      SHIM_TAG_NOBODY, own));
    int result = shim_pmpi.Comm_idup(MPI_COMM_WORLD, own, &request);
    return shim_complete(result, &request);
}

/* For what the shim itself has to say to the others. */
static void make_own_communicator(void)
{
    int *tag_ub, flag = 0;
    if (duplicate_world(&shim_world.own) != MPI_SUCCESS)
        abort(); /* the others go on with theirs */
    shim_pmpi.Comm_set_errhandler(shim_world.own, MPI_ERRORS_RETURN);
    shim_pmpi.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    shim_world.tag_ub = flag ? *tag_ub : 32767;
}

/* Also after MPI_Init: the user may have told the library a level (MPIR_CVAR_DEFAULT_THREAD_LEVEL,
 * OMPI_MPI_THREAD_LEVEL). */
static bool threads_call_at_once(void)
{
    int level = MPI_THREAD_MULTIPLE;
    shim_pmpi.Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

static void set_up(void)
{
    shim_pmpi.Comm_rank(MPI_COMM_WORLD, &shim_world.rank);
    shim_pmpi.Comm_size(MPI_COMM_WORLD, &shim_world.size);
    bool joined = inv_wanted() && inv_join(shim_world.rank, shim_world.size, local_size());
    const char *why = shim_roll_call(joined);
    if (why) {
        inv_leave(*why ? why : NULL);
        return;
    }
    if (!all_invade()) {
        inv_leave(NULL);
        return;
    }
    shim_tasks_start();
    /* One rank alone does not wait for others, and its messages to itself make no polls. */
    int good[2] = {meet_members(), (hook_works() || shim_world.size == 1) && !shim_tasks_wanted &&
                                       !threads_call_at_once()};
    if (!shim_agree(good, 2) || !good[0]) {
        shim_hook_set(NULL, 1);
        inv_leave(shim_world.rank == 0 ? "the core table has no room for this MPI job" : NULL);
        return;
    }
    shim_pmpi.Comm_group(MPI_COMM_WORLD, &shim_world.group);
    shim_watch_set_up(good[1]);
    make_own_communicator();
    shim_clock_measure();
    shim_account_start(job_number());
    shim_entries_wrap(true);
    shim_workload_start();
}

int shim_Init(int *argc, char ***argv)
{
    shim_clock_start();
    int result = shim_pmpi.Init(argc, argv);
    if (result == MPI_SUCCESS && inv_asked())
        set_up();
    return result;
}

int shim_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    shim_clock_start();
    int result = shim_pmpi.Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS && inv_asked())
        set_up();
    return result;
}

/* The last member to come frees the mail board; nobody rings any more after that. */
static void leave_members(void)
{
    struct inv_board_line *first = shim_world.member[0].mail;
    /* acq_rel: what any member did to its line comes before the lines are freed */
    if (atomic_fetch_add_explicit(&first->epoch, 1, memory_order_acq_rel) + 1 ==
        (uint64_t)shim_world.members)
        inv_board_free(inv_process.table, shim_world.mail_first, (unsigned)shim_world.members);
}

/* MPI_Finalize waits for all ranks, spinning; so they meet here first. */
int shim_Finalize(void)
{
    int initialised = inv_managed();
    if (initialised) {
        shim_Barrier(MPI_COMM_WORLD);
        shim_workload_stop();
        shim_entries_wrap(false);
        shim_hook_set(NULL, 1);
        shim_comm_drop_all();
        shim_gather();
        leave_members();
        shim_pmpi.Group_free(&shim_world.group);
        shim_pmpi.Comm_free(&shim_world.own);
    }
    return shim_pmpi.Finalize();
}
