/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * shim.h - the parts of the MPI shim, as its wrappers see them.
 *
 *   resolve.c   the dispatcher: finds the MPI library, and the variant for it (entry.h)
 *   variant.c   what the dispatcher sees of the variant, which is all the other files
 *   init.c      MPI_Init, MPI_Finalize
 *   setup.c     joining the domain, agreed by all ranks
 *   session.c   the same for sessions, which begin without a communicator
 *   managed_group.c   which ranks have agreed to be managed together
 *   presence.c  whether all ranks run this library and are managed, before any agreement
 *   agreement.c what they agree on in set-up
 *   comm.c      which ranks of a communicator are members
 *   board.c     the arrival board of a communicator
 *   wait.c      the wait engine: check, spin, lend and sleep
 *   check.c     how wrappers wait: for a check, or for requests
 *   watch.c     the same from inside the library's own blocking functions
 *   arrival.c   arrival barrier: collectives that no rank leaves before all have come
 *   calls.c     point-to-point wrappers, completion calls
 *   tasks.c     OpenMP tasks that run in waits, on request
 *   poll.c      a run of failed tests is a wait too
 *   opened_group.c   the ranks of a window or file, which come together without a communicator
 *   construct.c, onesided.c, files.c, partitioned.c   wrappers that are written by hand
 *   workload.c  useful time and waiting time by iteration, and the workload and scalability
 *               that follow from them
 *   phase.c     where iterations end; pure
 *   measure.c   from measurements to a graph, and what has changed for good; pure
 *   site_stats.c   call-site statistics: where the program calls MPI, and how long it waits there
 *   reduce.c    the operation for an MPI_Ireduce
 *   ring.c      waking members that sleep
 *   handler.c   which error handler is called for an error in a wait
 *   library.h   what differs between MPI libraries
 *
 * Wrappers are in force only in a managed process, from the moment when all ranks of
 * MPI_COMM_WORLD, or of a communicator that was made from a session, have agreed to be managed,
 * until the last MPI_Finalize or MPI_Session_finalize.
 *
 * All but the dispatcher is compiled once for each binary interface, with its mpi.h.
 * Handles may be integers or pointers, and constants of MPI need not be constants of C:
 * no case labels, no static initialisers with them.
 */
#ifndef SHIM_H
#define SHIM_H

#include "assertion.h"
#include "arrival_board.h"
#include "mpi-shim/dispatch/library.h"
#include "mpi-shim/ranks/world.h"
#include "process.h"
#include "mpi-shim/gen/shim-pmpi.h"

#include "mpi-shim/measure/clock.h"
#include "mpi-shim/dispatch/entry.h"
#include "mpi-shim/measure/phase.h"
#include "mpi-shim/measure/site.h"
#include "mpi-shim/measure/site_stats.h"

/* All users are in one library, so no access goes through the global offset table. */
#pragma GCC visibility push(hidden)
/* On the fast path (below). */
#define SHIM_INLINE static inline __attribute__((always_inline))

/* --- inside a wrapper or not (variant.c)
 *
 * MPI libraries call PMPI functions themselves: input and output does, and some components of Open
 * MPI.  They also call functions of the program: operations, attribute functions, error handlers.
 * An MPI call from inside either of them passes straight through.  So every entry goes through a
 * guard, which generate.py makes.  It notes its frame while the wrapper is at work, and a call
 * whose frame is below that on the stack is inside.  The guard keeps an address, not a flag, since
 * an error handler that leaves by longjmp would not clear a flag.
 *
 * Code that runs other work of the program inside a wait (tasks.c) clears shim_thread.frame for
 * that time and restores it afterwards. */

struct shim_comm;
struct shim_managed_group;
struct shim_thread {
    uintptr_t frame;  /* of the guard at work; 0 none */
    const void *site; /* the program's return address */
    /* the communicator that this thread used last; valid while no communicator is dropped */
    struct shim_comm *comm;
    MPI_Comm comm_handle;
    unsigned comm_drops;
    unsigned fast_path_drops; /* the same, or 0: this communicator has no fast path (below) */
    bool measured; /* it called MPI_Init: the thread that workload.c measures */
    bool testing;  /* it is in a test, which must not delay other threads of the program */
};
extern __thread struct shim_thread shim_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* In a Fortran program the return address is in MPI's library; the program's is in the
 * dispatcher's shim_caller then (fortran.c). */
extern ptrdiff_t shim_caller_offset;
static inline const void *shim_program_site(const void *return_address)
{
#ifdef SHIM_FORTRAN
    const void **caller = (void *)((char *)__builtin_thread_pointer() + shim_caller_offset);
    if (__builtin_expect(*caller != NULL, 0)) {
        return_address = *caller;
        *caller = NULL;
    }
#endif
    return return_address;
}

#define SHIM_FRAME ((uintptr_t)__builtin_frame_address(0))
#define SHIM_INSIDE() (__builtin_expect(SHIM_FRAME < shim_thread.frame, 0))
#define SHIM_ENTER() \
    (shim_thread.frame = SHIM_FRAME,                                                               \
     shim_thread.site = shim_program_site(__builtin_return_address(0)))
#define SHIM_LEAVE() (shim_thread.frame = 0)
/* The place in the program of the call that this thread is in. */
#define SHIM_SITE (shim_thread.site)

/* From now on the entries lead to the wrappers, or to the library's own functions. */
void shim_entries_wrap(bool wrap);
/* From now on polled() is called whenever the library polls; NULL: no more (hook.h). */
void shim_hook_set(hook_polled *polled, unsigned every_polls);
/* Does the library call the hook while it waits?  The same in all ranks; set once, in set-up, by
 * shim_watch_set_up. */
extern bool shim_hooked;

/* --- set-up (setup.c) */

/* The ranks of a communicator that agree whether they are managed. */
struct shim_agreement {
    MPI_Comm comm; /* no intercommunicator */
    int rank, size;
    int *world_rank; /* of each; NULL in a process that is not managed */
    int number;      /* of the text that the communicator was made with; 0 in MPI_Init */
};
/* Makes a communicator of the same ranks for the shim's messages; returns MPI's code. */
typedef int shim_make_own(const struct shim_agreement *a, MPI_Comm *own);

/* The process joins its domain.  `world` has all ranks; shim_tear_down frees it. */
void shim_join(MPI_Group world);
/* All ranks of the communicator agree whether they are managed. */
void shim_set_up(MPI_Comm comm, int number, shim_make_own *make_own);
/* Ends management.  synchronised: all ranks have just passed a barrier, to end it together. */
void shim_tear_down(bool synchronised);
/* From now on several threads may call MPI at once. */
void shim_threads_call(void);

/* --- sessions (session.c) */

/* MPI_Init has ended; MPI_Finalize begins. */
void shim_world_opens(void);
/* How many sessions the process has open. */
int shim_world_closes(void);
/* MPI_COMM_WORLD ends, and sessions of this process go on.  all_go_on: each rank has such
 * sessions. */
void shim_sessions_keep(struct shim_managed_group *all, bool all_go_on);

/* --- managed groups (managed_group.c) */

struct shim_managed_group {
    MPI_Comm own;    /* for the shim's messages; MPI_COMM_NULL: ended with MPI_Finalize */
    int size;        /* ranks */
    int *rank_of;    /* world rank -> rank in own, or -1 */
    int age, number; /* all its ranks identify it by both; number 0: MPI_COMM_WORLD's */
    struct shim_managed_group *_Atomic next;
};
/* The oldest managed group that has all these ranks of MPI_COMM_WORLD; NULL: none. */
struct shim_managed_group *shim_managed_group_of(const int *world_rank, int count);
/* One that has every rank of MPI_COMM_WORLD. */
struct shim_managed_group *shim_managed_group_of_all(void);
bool shim_managed_group_any(void);
int shim_managed_group_latest_age(void); /* age */
/* Its ranks, `size` of them, by their rank in MPI_COMM_WORLD. */
void shim_managed_group_add(const int *world_rank, int size, int number, MPI_Comm own, int age);
void shim_managed_groups_end(void);

/* --- presence check (presence.c)
 *
 * All ranks call it.  *least is the state of this rank (below), then the least state of all.
 * Returns NULL if all ranks are managed; else why none is, or "" where another rank reports the
 * reason. */
enum {
    SHIM_PRESENCE_REFUSED, /* not managed */
    SHIM_PRESENCE_MANAGED,
    SHIM_PRESENCE_GROUP /* one managed group has all of these ranks already */
};
const char *shim_presence_check(const struct shim_agreement *a, int *least);

/* --- gathering reports of ranks on other nodes, for invade --report (report_gather.c) */

/* Where a rank runs: exchanged in set-up. */
struct shim_location {
    uint64_t domain; /* the same in processes that share a core table */
    int32_t slot, flag_line; /* line of its sleep flag; -1: none yet */
    int32_t recorded, reporter_here; /* booleans: it keeps a record; the `invade` that wants it runs
                                        on its node */
    int32_t threads; /* boolean: several of its threads may call MPI at once */
};
/* Which rank sends its report, and to which.  Called in set-up by all ranks of MPI_COMM_WORLD;
 * `all` is in order of their rank there. */
void shim_report_gather_plan(const struct shim_location *all);
/* Called in the last finalize, after a barrier, with the record stopped.  Its time limits are in
 * report_gather.c.  The communicator has all ranks, numbered as in MPI_COMM_WORLD. */
void shim_report_gather(MPI_Comm comm);

/* --- agreement of the ranks of a communicator in set-up (agreement.c).  All of them call each
 * function.  False: MPI has refused a message. */

enum { SHIM_AGREEMENT_MOST = 4 };
/* Allreduce: each of `count` numbers, at most SHIM_AGREEMENT_MOST, becomes the minimum of all
 * ranks. */
bool shim_agreement_min(const struct shim_agreement *a, int *minima, int count);
/* Allgather: `bytes` from each rank, in order of rank. */
bool shim_agreement_allgather(const struct shim_agreement *a, const void *mine, void *all,
                              size_t bytes);
/* Wait for what has been started with this result.  Not MPI's own wait: with more ranks than cores
 * that one spins through time slices. */
int shim_complete(int result, MPI_Request *request);
/* True when all requests completed within so many nanoseconds; false also when one failed. */
bool shim_complete_all(int count, MPI_Request *requests, uint64_t within_ns);

/* --- communicators (comm.c) */

struct shim_comm {
    MPI_Comm handle;
    int rank, size; /* of the local group */
    int peers;      /* ranks that messages can go to: size, or the remote size */
    bool inter;
    bool topology; /* has neighbours */
    bool repeated_neighbour; /* in one dimension of a grid both neighbours are the same rank */
    bool unmanaged; /* no managed group has all its ranks */
    bool all_here; /* an intracommunicator whose ranks are all members */
    bool handler_differs;   /* handler.c */
    unsigned handlers_seen; /* when that was found out */
    bool board_tried;
    int board_first; /* line number, -1 none */
    /* header->epoch: ranks that have dropped the board.  header->sleeping: ranks that sleep in an
     * arrival barrier.  line[r].epoch: collectives at which rank r has arrived */
    struct inv_arrival_line *header, *line;
    uint64_t epoch; /* of this rank's line */
    int *member_of; /* peer rank -> member number or SHIM_MEMBER_NONE */
    struct shim_comm *next;
};

/* The communicator's record; NULL for an invalid handle, which MPI's own function will report. */
struct shim_comm *shim_comm_find(MPI_Comm comm);
extern _Atomic unsigned shim_comm_drops; /* how many have been dropped */
static inline struct shim_comm *shim_comm(MPI_Comm comm)
{
    /* acquire: partner is the increment in drop_record, before which nothing was freed */
    unsigned drops = atomic_load_explicit(&shim_comm_drops, memory_order_acquire);
    if (__builtin_expect(shim_thread.comm_handle == comm && shim_thread.comm_drops == drops, 1))
        return shim_thread.comm;
    return shim_comm_find(comm);
}
/* Before the handle becomes invalid. */
void shim_comm_drop(MPI_Comm comm);
static inline void shim_forget_comm(const MPI_Comm *comm)
{
    if (comm)
        shim_comm_drop(*comm);
}
void shim_comm_drop_all(void);
/* There is a new managed group. */
void shim_comms_recheck(void);

SHIM_INLINE int shim_member(const struct shim_comm *c, int peer)
{
    return c && (unsigned)peer < (unsigned)c->peers ? c->member_of[peer]
           : peer == MPI_ANY_SOURCE                 ? SHIM_MEMBER_ALL
                                                    : SHIM_MEMBER_NONE;
}
/* Do all its ranks take the same path in a wrapper?  If not, each calls the blocking function. */
static inline bool shim_managed(const struct shim_comm *c) { return c && !c->unmanaged; }
static inline bool shim_alone(const struct shim_comm *c) { return c->size == 1 && !c->inter; }
static inline bool shim_root_valid(const struct shim_comm *c, int root)
{
    return c->inter || (unsigned)root < (unsigned)c->size;
}
/* Arguments with errors are left to the blocking function, so that the message has its name. */
bool shim_null_buffer_valid(MPI_Datatype datatype);
static inline bool shim_data_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int tag)
{
    return c && count >= 0 && datatype != MPI_DATATYPE_NULL && tag >= 0 &&
           tag <= shim_world.tag_ub && (buf || count == 0 || shim_null_buffer_valid(datatype));
}
static inline bool shim_send_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int dest, int tag)
{
    return shim_data_valid(c, buf, count, datatype, tag) && (unsigned)dest < (unsigned)c->peers;
}
static inline bool shim_recv_valid(const struct shim_comm *c, const void *buf, MPI_Count count,
                                   MPI_Datatype datatype, int source, int tag)
{
    return shim_data_valid(c, buf, count, datatype, tag == MPI_ANY_TAG ? 0 : tag) &&
           ((unsigned)source < (unsigned)c->peers || source == MPI_ANY_SOURCE);
}
static inline bool shim_matched_valid(const MPI_Message *message, MPI_Count count,
                                      MPI_Datatype datatype)
{
    return message && *message != MPI_MESSAGE_NULL && *message != MPI_MESSAGE_NO_PROC &&
           count >= 0 && datatype != MPI_DATATYPE_NULL;
}

/* --- ringing (ring.c): without effect, and without a shared write, if the member does not sleep */

void shim_ring_all_members(void);
void shim_ring_line(struct inv_arrival_line *line, unsigned slot);
SHIM_INLINE void shim_ring_member(int member) /* or SHIM_MEMBER_NONE, SHIM_MEMBER_ALL */
{
    inv_assert(member >= SHIM_MEMBER_ALL && member < shim_world.members);
    if (member >= 0) {
        const struct shim_member *m = &shim_world.member[member];
        /* acquire: partner is the sleeper's store in wait.c; a hint, see ring.c */
        _Atomic uint32_t *sleeping = &m->sleep_flag->sleeping;
        if (__builtin_expect(atomic_load_explicit(sleeping, memory_order_acquire), 0))
            shim_ring_line(m->sleep_flag, m->slot);
    } else if (member == SHIM_MEMBER_ALL)
        shim_ring_all_members();
}
void shim_ring_comm(const struct shim_comm *c);
/* Ring the ranks that sleep in a collective of c.  at_arrival: only if all ranks have arrived. */
void shim_ring_all_asleep(const struct shim_comm *c, bool at_arrival);
SHIM_INLINE void shim_ring_sleepers(const struct shim_comm *c, bool at_arrival)
{
    /* acquire: partner is count_sleeper in wait.c */
    if (!c->header)
        shim_ring_comm(c);
    else if (__builtin_expect(
                 atomic_load_explicit(&c->header->sleeping, memory_order_acquire) != 0, 0))
        shim_ring_all_asleep(c, at_arrival);
}
static inline void shim_ring_rank(const struct shim_comm *c, int peer)
{
    shim_ring_member(shim_member(c, peer));
}

/* The member that may wait for a request's completion.  The table is fixed and forgets on
 * collision: a lost ring costs that member a timer period. */
void shim_request_note(MPI_Request request, int member);
int shim_request_member(MPI_Request request);

/* A set of members, for calls on many requests. */
struct shim_ring_set {
    uint64_t bits[INV_SLOT_WORDS];
    bool all;
};
void shim_ring_set_collect(struct shim_ring_set *set, int count, const MPI_Request *requests);
void shim_ring_set_ring(const struct shim_ring_set *set);

/* --- the wait engine (wait.c) */

struct shim_wait {
    bool (*done)(struct shim_wait *); /* the check: is it over?  Also lets MPI make progress */
    void *arg;
    struct shim_comm *comm; /* the thread sleeps at this one's board; NULL: at none */
    bool at_arrival;        /* and the board counts it as a sleeper until it is awake */
    int result;             /* MPI's code, set by done() */
};
/* Wait until done(), without running tasks meanwhile.  Must be called by the thread that would have
 * blocked. */
void shim_wait_idle(struct shim_wait *w, const void *call_site);
/* In a wait since `start`, sleeps with the core lent until done(), for at most limit_ticks.
 * until_rung: until a ring, too.  True: done. */
bool shim_wait_slices(struct shim_wait *w, uint64_t start, uint64_t limit_ticks, bool until_rung);
/* Is it still better to spin than to lend, in a wait since `start` in which nothing has arrived
 * since `idle`?  If the core's owner asks for it, the thread may move to another core. */
bool shim_spin_on(const struct shim_site *site, uint64_t start, uint64_t idle);

/* Tells the idle threads of the process until when cores are held in short waits (short_waits.h). */
void shim_short_waits_refresh(void);

/* With more processes than cores: the wait will be long, another process wants a core, and would
 * get this one.  A yield comes back only when the other threads here have computed, and the caller
 * would have held its core all that time. */
bool shim_lends_at_once(const struct shim_site *site);

/* With more processes than cores: how long to yield to other threads before the sleep. */
uint64_t shim_yield_ticks(const struct shim_site *site);
/* Yields the CPU, in a wait in which no other thread has run here since `*alone` (ticks; moved on
 * when one does).  True: that has been for so long that a sleep is better. */
bool shim_yield_alone(uint64_t *alone);

/* A thread that sleeps slice by slice: begin, then in turn a check and a slice, end. */
struct shim_sleep {
    struct shim_comm *comm; /* whose board's sleepers to be among; NULL none */
    bool counted;           /* and the board counts it as a sleeper */
    uint32_t seen;          /* the bell before the latest check */
    int64_t slice;          /* ns */
    bool steep;             /* the slice after the first is as long as any */
    uint64_t start;         /* of the wait, ticks */
    uint64_t check_until;   /* ticks: no sleep before; the thread was just rung, or preempted */
    uint64_t alone;         /* ticks: while checking, no other thread has run here since then */
    uint64_t rang;          /* ticks: when this thread last rang for something that arrived */
};
/* While this thread sleeps in the wait engine: has something arrived? */
extern __thread struct shim_listening {
    bool on, heard;
} shim_listening __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* How many ranks share a core. */
uint64_t shim_sharing(void);
void shim_sleep_begin(struct shim_sleep *s, struct shim_comm *comm, bool counted, uint64_t start);
bool shim_sleep_slice(struct shim_sleep *s); /* true: rung */
void shim_sleep_end(struct shim_sleep *s);
/* Something has arrived at a sleeper's check: keep checking.  The library may answer what has come,
 * and the other side may sleep until the answer comes: MPICH moves the data of MPI_Put and MPI_Get
 * by messages back and forth.  True: it is time to ring the other side. */
bool shim_sleep_arrived(struct shim_sleep *s);

/* Let MPI make progress on whatever is under way (managed_group.c).  No rank sends with
 * SHIM_TAG_UNUSED.  report_gather.c sends with SHIM_TAG_REPORT, opened_group.c with lower tags. */
enum { SHIM_TAG_UNUSED = 32767, SHIM_TAG_REPORT = 32766 };
void shim_progress(void);

/* The calling thread is at a call that may wait for other ranks, or at a test that succeeds.
 * Iterations are found in the sequence of such calls.  Called before the wait. */
extern struct shim_phase shim_workload_phase;
void shim_workload_note(const void *call_site);
/* Twice the number of iterations begun.  A site's `noted` is this number when the site was passed
 * in this iteration already, plus 1 at the site where iterations begin.  Most calls need no
 * more. */
extern uint32_t shim_workload_iteration;
/* True: nothing is left to do for this call. */
SHIM_INLINE bool shim_workload_noted(struct shim_site *site, const void *call_site)
{
    if (!shim_thread.measured)
        return true;
    uint32_t noted = site->noted ^ shim_workload_iteration;
    if (site->where != call_site || noted > 1)
        return false;
    return !noted || shim_phase_pass(&shim_workload_phase);
}
static inline void shim_workload_call(const void *call_site)
{
    if (__builtin_expect(!shim_workload_noted(shim_site(call_site), call_site), 0))
        shim_workload_note(call_site);
}
/* A wait has begun at `start`: an iteration that ends with the call before ended no later. */
void shim_workload_settle(uint64_t start);

/* --- watched calls (watch.c)
 *
 * Where the library calls the shim from its progress engine (hook.c), its own blocking functions
 * are called.  A short call then costs two stores, and a long one is noticed from inside. */

void shim_watch_set_up(bool hooked);
/* From now on several threads may call MPI at once, so none sleeps in the hook any more. */
void shim_watch_no_more(void);
struct shim_watch {
    struct shim_site *site; /* NULL: this thread is in no watched call */
    uintptr_t frame;        /* shim_thread.frame when the call began */
    struct shim_comm *comm; /* a collective's, else NULL */
    int peer[2];            /* members that may wait for what this call does */
    bool at_arrival;        /* no rank leaves the collective before all have arrived */
    bool asleep;
    bool slept;     /* is or was asleep in this call; valid if start is not 0 */
    unsigned rings; /* how often a sleeper may still ring the others */
    unsigned polls; /* of the library, since the call began */
    unsigned awake; /* waits in a row that did not sleep, with more processes than cores */
    uint64_t start; /* ticks: the first reading of the clock, a moment after the beginning */
    uint64_t idle;  /* ticks: nothing has arrived since then */
    uint64_t alone; /* ticks: no other thread has run here in a yield since then */
    /* ticks: the first arrival of a message since the last slice of sleep; 0: none */
    uint64_t arrivals_since;
    struct shim_sleep sleep;
};
extern __thread struct shim_watch shim_watch
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* After so many polls a call has become a wait. */
enum { SHIM_WATCH_POLLS = 16 };
void shim_watch_abandoned(void);
void shim_watch_waited(void);

SHIM_INLINE void shim_watch_start(struct shim_site *site, struct shim_comm *comm, bool at_arrival,
                                  int peer, int other)
{
    shim_watch.site = site;
    shim_watch.frame = shim_thread.frame;
    shim_watch.comm = comm;
    shim_watch.peer[0] = peer;
    shim_watch.peer[1] = other;
    shim_watch.at_arrival = at_arrival;
    shim_watch.polls = 0;
    shim_watch.start = 0;
}

/* The members, or SHIM_MEMBER_NONE, are rung when the call turns out to be long, and at its end. */
static inline void shim_watch_begin(struct shim_comm *comm, bool at_arrival, int peer, int other)
{
    if (__builtin_expect(shim_watch.site != NULL, 0))
        shim_watch_abandoned();
    shim_watch_start(shim_site(SHIM_SITE), comm, at_arrival, peer, other);
    shim_workload_call(SHIM_SITE);
}

SHIM_INLINE void shim_watch_over(void)
{
    if (__builtin_expect(shim_watch.start != 0, 0)) {
        shim_watch_waited();
    } else {
        uint32_t quick = atomic_load_explicit(&shim_watch.site->quick, memory_order_relaxed);
        if (__builtin_expect(quick < 64, 0))
            atomic_store_explicit(&shim_watch.site->quick, quick + 1, memory_order_relaxed);
    }
    shim_watch.site = NULL;
}

static inline void shim_watch_end(void)
{
    shim_ring_member(shim_watch.peer[0]);
    if (shim_watch.peer[1] != shim_watch.peer[0])
        shim_ring_member(shim_watch.peer[1]);
    if (shim_watch.comm)
        shim_ring_sleepers(shim_watch.comm, shim_watch.at_arrival);
    shim_watch_over();
}
/* What shim_hook_set is given. */
unsigned shim_polled(unsigned polls, unsigned how);

/* Calls a blocking function of the library, watched. */
#define SHIM_WATCH(comm, peer, other, call)                                                        \
    __extension__({                                                                                \
        shim_watch_begin(comm, false, peer, other);                                                \
        int result_ = (call);                                                                      \
        shim_watch_end();                                                                          \
        result_;                                                                                   \
    })
/* The same if the library calls the shim while it polls; else calls the function unwatched. */
#define SHIM_WATCH_OR_CALL(peer, call)                                                             \
    (shim_hooked ? SHIM_WATCH(NULL, peer, SHIM_MEMBER_NONE, call) : (call))
/* A collective of an unmanaged communicator, watched.  With ranks of other jobs it may be long, and
 * spawned ranks may need the core of this one meanwhile. */
#define SHIM_WATCH_UNMANAGED(c, call)                                                              \
    (shim_hooked && (c) && (c)->unmanaged                                                          \
         ? SHIM_WATCH(c, SHIM_MEMBER_NONE, SHIM_MEMBER_NONE, call)                                 \
         : (call))

/* --- the fast path
 *
 * The guards of the most frequent functions (generate.py) have a fast path: only MPI's blocking
 * function is called.  It is taken if the thread's latest communicator is used again, the library
 * calls the shim while it polls, and there is no report.  All other calls take the slow path.
 * Arguments that MPI will refuse need no test, since the blocking function gets them. */

/* Does nothing but the arguments of the call prevent the fast path? */
SHIM_INLINE bool shim_fast_path(MPI_Comm comm)
{
    /* acquire: as in shim_comm */
    unsigned drops = atomic_load_explicit(&shim_comm_drops, memory_order_acquire);
    return shim_thread.comm_handle == comm && shim_thread.fast_path_drops == drops &&
           !shim_watch.site;
}
SHIM_INLINE bool shim_fast_path_peer(const struct shim_comm *c, int peer)
{
    return (unsigned)peer < (unsigned)c->peers;
}
/* As shim_arrival_begin, for a communicator that has its board. */
SHIM_INLINE void shim_fast_path_arrival(struct shim_site *site, struct shim_comm *c)
{
    /* release: partner is the acquire load in all_arrived(), arrival.c */
    atomic_store_explicit(&c->line[c->rank].epoch, ++c->epoch, memory_order_release);
    if (!inv_process.anonymous)
        shim_ring_sleepers(c, true);
    shim_watch_start(site, c, true, SHIM_MEMBER_NONE, SHIM_MEMBER_NONE);
}

/* A receive and a send that have been posted together (calls.c). */
struct shim_exchange {
    MPI_Request receive, send; /* MPI_REQUEST_NULL: has not begun */
    int source, dest;
    int result; /* MPI's code of the latest of both calls */
    const void *call_site;
};
/* Has it begun?  An error handler may turn an error into a success without a request, and a library
 * may have no request for MPI_PROC_NULL. */
SHIM_INLINE bool shim_begun(MPI_Request request, int result, int peer)
{
    return request != MPI_REQUEST_NULL || (result == MPI_SUCCESS && peer == MPI_PROC_NULL);
}
int shim_exchange_wait(struct shim_exchange *e, struct shim_comm *c, MPI_Status *status);

/* --- error handlers (handler.c)
 *
 * shim_errhandler_suspend() and shim_errhandler_resume() enclose the wait of a blocking function of
 * the program that the shim has split.  Suspend returns false where the library's MPI_Test reports
 * errors as the blocking function would; resume then does nothing.  Resume calls the communicator's
 * error handler if `result` is an error, and returns `result`. */

extern _Atomic unsigned shim_handlers_set; /* how often the program has set an error handler */
bool shim_errhandler_suspend_now(struct shim_comm *c, unsigned set);
/* With MPICH: are the handlers of MPI_COMM_WORLD and MPI_COMM_SELF those that MPI began with?  With
 * Open MPI always false: setting a handler and setting it back has no effect there. */
bool shim_handlers_are_defaults(void);
/* In between, errors without a communicator, and those of the shim's MPI_Test, are returned: no
 * error handler is called.  Calls may be nested and come from several threads. */
void shim_errors_return_begin(void);
void shim_errors_return_end(void);
int shim_errhandler_resume_now(MPI_Comm comm, int result);
static inline bool shim_errhandler_suspend(struct shim_comm *c)
{
    unsigned set = atomic_load_explicit(&shim_handlers_set, memory_order_relaxed);
    return __builtin_expect(set != 0, 0) && shim_errhandler_suspend_now(c, set);
}
static inline int shim_errhandler_resume(bool suspended, MPI_Comm comm, int result)
{
    return __builtin_expect(suspended, 0) ? shim_errhandler_resume_now(comm, result) : result;
}

/* --- how wrappers wait (check.c).  A check calls a non-blocking function once.  It is the done() of
 * a struct shim_wait, whose arg has its arguments.  The functions return MPI's code. */

/* Wait until done(); runs tasks meanwhile if the user wants that (tasks.c).  Must be called by the
 * thread that would have blocked. */
void shim_wait(struct shim_wait *w, const void *call_site);
typedef bool shim_check(struct shim_wait *w);
int shim_check_and_wait(shim_check *check, void *args, const void *call_site);
/* One check, and a short wait in a run of failed ones. */
int shim_check_once(shim_check *check, void *args, const void *call_site);
/* comm and at_arrival as in struct shim_wait. */
int shim_wait_request(MPI_Request *request, MPI_Status *status, struct shim_comm *comm,
                      bool at_arrival, const void *call_site);
/* The same, and rings `member`, the other end of the request. */
int shim_wait_one(MPI_Request *request, MPI_Status *status, int member, const void *call_site);
int shim_wait_collective(MPI_Request *request, struct shim_comm *c, const void *call_site);

/* --- partitioned requests (partitioned.c): the blocking function follows when all of them are
 * complete */

bool shim_any_partitioned(int count, const MPI_Request *requests);
void shim_await_partitioned(int count, MPI_Request *requests, const void *call_site);

/* --- tasks in waits (tasks.c) */

/* Has the user asked for tasks in waits?  Set in set-up, from the environment; the same in all
 * ranks. */
extern bool shim_tasks_wanted;
void shim_tasks_start(void);
/* shim_wait, running tasks meanwhile; false: no OpenMP runtime offers tasks. */
bool shim_tasks_wait(struct shim_wait *w, const void *call_site);

/* --- arrival boards (board.c) */

/* Before a collective, and only there: the first one sets up the arrival board. */
void shim_comm_board(struct shim_comm *c);

/* --- arrival barriers (arrival.c) */

struct shim_arrival {
    struct shim_comm *comm; /* NULL: nothing to wait for */
    const void *call_site;
    uint64_t start; /* ticks */
    int next;       /* ranks below it have come */
    unsigned checks;
    bool waited;  /* by the wait engine, which has recorded it */
    bool counted; /* among the threads that are in arrival barriers */
};
/* Enter an arrival barrier of all ranks of c, which is managed.  True: all have arrived, or will so
 * soon that the blocking function is the best way to wait for them; call it, then
 * shim_arrival_end.  False: use the non-blocking form and shim_arrival_wait_request.  All ranks get
 * the same answer. */
bool shim_arrival_begin(struct shim_arrival *a, struct shim_comm *c, const void *call_site);
int shim_arrival_wait_request(struct shim_arrival *a, MPI_Request *request);
/* For a function without a non-blocking form: waits until all have arrived. */
void shim_arrival_wait(struct shim_arrival *a);
void shim_arrival_end(struct shim_arrival *a);

/* --- reductions (reduce.c) */

/* The operation with which the ranks of c, which is managed, call MPI_Ireduce for `op`. */
MPI_Op shim_reduce_op(const struct shim_comm *c, MPI_Count count, MPI_Datatype datatype, MPI_Op op);
/* Frees all operations. */
void shim_reduce_end(void);

/* --- arrival barriers before a function that cannot be split (construct.c, opened_group.c).  Each
 * returns when all ranks have arrived; what they wait for in MPI after that is short. */

/* Of the ranks of a communicator, which is managed; ends with shim_arrival_end(). */
void shim_arrival_barrier(struct shim_arrival *a, struct shim_comm *c, const void *call_site);
/* The same; returns a number on which all its ranks agree.  Few windows or files, if any, have the
 * same number at the same time. */
int shim_arrival_barrier_tag(struct shim_comm *c, const void *call_site);
/* Of the ranks of a group.  Does nothing if no managed group has all of them. */
void shim_arrival_barrier_group(MPI_Group group, int tag, const void *call_site);
int shim_text_tag(const char *text);
/* Of this rank and `peer`, a rank of MPI_COMM_WORLD. */
void shim_arrival_barrier_two(int peer, int tag, const void *call_site);

/* The ranks of a window or a file, as long as its handle is valid.  NULL: no rank to wait for.  The
 * record ends with the handle, which the program must order after all other uses of the handle. */
struct shim_opened_group {
    MPI_Group group;
    int size, me;
    int *world_rank; /* of each */
    const struct shim_managed_group *managed;
    int tag;
    const void *kind;
    uintptr_t handle;
    /* a window: in an exposure epoch, in an access epoch.  MPI allows one thread at a time in
     * each */
    bool posted, started;
    _Atomic int locks; /* a window: epochs of all threads.  relaxed: it orders no other data */
    struct shim_opened_group *next;
};
void shim_opened_group_barrier(struct shim_opened_group *g, const void *call_site);
void shim_opened_group_ring(const struct shim_opened_group *g);
struct shim_opened_group *shim_opened_group_of_win(MPI_Win win);
struct shim_opened_group *shim_opened_group_of_file(MPI_File file);
void shim_remember_win(MPI_Win win, int tag);
void shim_remember_file(MPI_File file, int tag);
/* Detach the record before the call that ends its handle.  After the call: free the record if the
 * handle is gone, or attach it again. */
void shim_opened_group_detach(struct shim_opened_group *g);
void shim_opened_group_end(struct shim_opened_group *g, bool gone);
/* The handle ends in a function of the program that MPI calls, where the rank cannot wait. */
void shim_forget_win(const MPI_Win *win);
void shim_forget_file(const MPI_File *file);
/* Tell the ranks of `group` that this rank has posted; wait until they have posted. */
void shim_opened_group_notify_posted(const struct shim_opened_group *g, MPI_Group group);
void shim_opened_group_await_posted(const struct shim_opened_group *g, MPI_Group group,
                                    const void *call_site);

/* --- windows (onesided.c) */

enum { SHIM_RANKS_ALL = -1 };
/* Wake the target rank, which has to make progress.  Returns its member number. */
int shim_wake_target(MPI_Win win, int rank);
void shim_window_locked(MPI_Win win, int change);

/* --- workload (workload.c) */

void shim_workload_start(void);
/* The calling thread lends its core for a wait; it has the core again. */
void shim_workload_lends(void);
void shim_workload_regained(void);
/* The calling thread waited from start to end (ticks). */
void shim_workload_waited(uint64_t start, uint64_t end, bool slept);
void shim_workload_stop(void);

/* --- polls (poll.c) */

/* Before a test. */
void shim_poll_begin(void);
/* A test has failed.  True: it is one of a run, and lending the core is worth it now. */
bool shim_poll_failed(void);
/* Wait inside the test for a short while.  True: done. */
bool shim_poll_wait(struct shim_wait *w);
void shim_poll_hit(const void *call_site);

#pragma GCC visibility pop
#endif
