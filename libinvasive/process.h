/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * process.h - this process as a member of a domain: joining it, the cores that its threads hold,
 * and waiting.  Used by the OpenMP runtime and the MPI shim, which do not know each other.
 *
 * A *hold* is a thread's right to compute: a core number in pinned mode, a token in anonymous
 * mode.  In both modes the thread is said to hold a core.  A thread that holds no core must not
 * compute; it parks.
 */
#ifndef INV_PROCESS_H
#define INV_PROCESS_H

#include "core.h"
#include "cpus.h"
#include "now.h"

enum { INV_HOLD_NONE = -1, INV_HOLD_TOKEN = -2 }; /* >= 0: a core number */

struct inv_process {
    /* We are a process of the domain and have held a first core.  release/acquire; partner:
     * inv_join.  Cleared by inv_leave; the table stays mapped, for threads that are in it */
    _Atomic bool managed;
    struct inv_table *table;
    unsigned slot;
    unsigned ncores; /* cores of the domain; of the affinity mask when not managed */
    bool anonymous, emulated;
    bool alone; /* the domain is this process's own: there is no resource manager (inv_join_alone) */
    /* The affinity that the process began with, which the program sees; and where its threads may
     * run. They differ where the launcher has bound the process to a part of the domain
     * (widen_mask). Written by inv_join; constant afterwards. */
    struct inv_cpus own_mask, wide_mask;
    /* threads that wait in MPI now: while there are any, idle workers give their cores
     * away at once.  Writers: inv_wait_begin/end.  Relaxed: a hint */
    _Atomic unsigned waiting;
    /* until this time (ns) idle threads hold own cores for a while although other processes want them,
     * since iterations are shorter so (mpi-shim/measure/short_waits.h).  Writer: the MPI shim, at the end of a
     * wait.  Relaxed: a hint */
    _Atomic uint64_t holds_until_ns;
    /* our record, where INVASIVE_REPORT asks for one; else NULL.  release/acquire; partner: the
     * end of inv_join.  NULL again when the slot is not ours any more */
    struct inv_record *_Atomic record;
    /* the same; also where it asks only for the names of call sites, for a trace */
    struct inv_record *_Atomic sites;
};
extern struct inv_process inv_process;
/* The hold of the calling thread; INV_HOLD_NONE in threads that we do not manage. */
extern __thread int inv_hold __attribute__((tls_model("initial-exec")));

/* May a thread of this process have this as its hold?  INV_HOLD_NONE included. */
static inline bool inv_hold_is_valid(int hold)
{
    return hold == INV_HOLD_NONE ||
           (inv_process.anonymous ? hold == INV_HOLD_TOKEN : hold >= 0 && hold < INV_MAX_CORES);
}

static inline bool inv_managed(void)
{
    return atomic_load_explicit(&inv_process.managed, memory_order_acquire);
}

/* The same, and there is a resource manager. */
static inline bool inv_has_manager(void)
{
    return inv_managed() && !inv_process.alone;
}

/* Are threads of the process left to the kernel's placement, whatever core they hold? */
static inline bool inv_unpinned(void)
{
    return inv_managed() && (inv_process.emulated || inv_process.alone);
}

/* Is a trace being taken (trace.h)?  Cheap. */
static inline bool inv_traced(void)
{
    return inv_process.table && inv_tracing(inv_process.table);
}

/*
 * inv_join - become a process of the domain that INVASIVE_SOCKET names.  Idempotent and thread safe;
 * only the first call does anything.  The caller becomes the process's main thread and, on success,
 * holds a core.  Hints (rank, world size, ranks on this node) are -1 when unknown; then they are
 * taken from the launcher's environment.  Returns true when managed.  When a manager was asked for
 * but cannot be had, says so once on stderr and returns false: the process runs as the stock
 * runtime does.
 */
bool inv_join(int rank, int size, int local_size);
/*
 * inv_join_alone - where no manager is asked for: become the only process of a domain that it makes
 * itself.  Its threads take turns on so many cores as they do on those of a resource manager, but
 * are pinned to none, and the public interface (invasive.h) says that the process is unmanaged.
 * ncores  1..INV_MAX_CORES Returns true when that is so, and the caller has a core; false, and says
 * nothing, when a manager has been asked for, or there is no memory.  Thread safe; only the first
 * call does anything.
 */
bool inv_join_alone(unsigned ncores);
/* Become no managed process, unless that has been tried; the reason is said on stderr.  Thread
 * safe. */
void inv_join_never(const char *reason);

/* True when the environment asks for management (INVASIVE_SOCKET set, INVASIVE not
 * "off") and this process has not given up.  Cheap; usable before inv_join. */
bool inv_wanted(void);

/* True when the process was launched to be managed, whether or not it can be or wants to be:
 * ranks of one job then have to agree. */
bool inv_asked(void);

/* Number of cores of the domain, before and after joining (INVASIVE_CORES). */
unsigned inv_domain_cores(void);

/* Ranks of this process's job on its node, where its MPI launcher's environment counts those; else
 * -1. Thread safe. */
int inv_local_size(void);

/* Ranks of this process's job on its node, as its MPI launcher's environment says; 1: it is alone,
 * or nothing is known; 2 where the launcher only says that there are ranks.  Thread safe. */
unsigned inv_ranks_here(void);

/* Leave the domain: every hold is given up, the process runs unmanaged from here on.  reason, if not
 * NULL, is said once on stderr.  Called by one thread, outside regions. */
void inv_leave(const char *reason);

/* --- holds (all: calling thread, managed processes only) */

/* Anonymous mode: tokens that this process has.  The last one is never asked back, and a
 * process without one that has work takes one although none is free: every process may
 * run one thread at any time, and the kernel shares the cores out. */
int inv_tokens_held(void);
/* Takes a free core: one of our own, else the nearest to the first of our own.  Returns the hold or
 * INV_HOLD_NONE.  Does not pin and does not change inv_hold: see inv_hold_begin. */
int inv_hold_acquire(void);
/* Ask for all our own cores that others hold; they come back through parked workers. */
void inv_hold_reclaim_owned(void);
/* Evicts the holder of one of our own cores, if it was asked for the core longer ago than the
 * reclaim bound.  Returns the hold or INV_HOLD_NONE.  One thread at a time. */
int inv_hold_evict_overdue(void);
/* Takes a core of ours from its thread, if the thread has slept (in a system call of its own) since
 * the last call.  The thread finds out at its next scheduling point (INV_LOST).  Returns the hold or
 * INV_HOLD_NONE.  One thread at a time. */
int inv_hold_retake_idle(void);
/* How many of the cores that we hold are held by threads that sleep in the kernel now?  A thread that has computed for
 * more than half of the time since the last call does not count, if that call was within 10 ms.  One system call for each
 * thread that computes, some for one that sleeps.  *held: all that we hold.  0 of 0 where it is not known which these
 * are.  One thread at a time. */
unsigned inv_holds_asleep(unsigned *held);
/* Anonymous mode, for the thread that joined: from now on inv_assigned_core_follow is for it. */
void inv_assigned_core_enable(void);
/* Run on the assigned core from now on, or on any core again, if that has changed and threads are
 * bound.  For that thread; others ignore it.  Two loads when nothing has changed. */
void inv_assigned_core_follow(void);
/* Say in our slot whether we do, for the caller, which has just joined.  Any thread. */
void inv_slot_tell_binding(void);
/* Does the process in this slot bind its threads to their cores (inv_bind_threads)? */
bool inv_slot_binds(unsigned slot);
/* Move the thread that has been evicted from a core, a thread of the process in this slot, to the
 * other cores of the domain. */
void inv_repin_evicted(int core, unsigned slot);
/* Let any thread of the domain compute on all of its cores but one; INV_NO_CORE: on all.  binds:
 * the thread's process binds its threads.  If it does not, the thread is moved off the core and has
 * its former affinity again: its process may be about to ask the kernel how many threads it may
 * have. */
void inv_repin_but(int core, int tid, bool binds);
/* Would a thread that the caller evicted compute on the caller's core while the caller waits
 * (evicted.h)?  As far as is known. */
bool inv_evicted_waits(void);
/* Makes the hold the calling thread's: sets inv_hold, and pins the thread if it is not pinned
 * there. */
void inv_hold_begin(int hold);
/* From now on threads that hold a core are bound to it, the caller first of all.  Before, they are
 * moved there and free to be moved away: a process that has no region of our OpenMP runtime may
 * have another runtime, which asks the kernel how many threads it may have. */
void inv_bind_threads(void);
bool inv_threads_are_bound(void);
/* The same for a hold that was handed over.  pinned: the waker pinned the thread to it in its sleep. */
void inv_hold_begin_handed(int hold, bool pinned);
/* The caller has slept where a waker may have pinned it: what it knew of that is void. */
void inv_thread_was_asleep(void);
/* The same, and most likely to this core.  (What inv_thread_core says then is a guess.) */
void inv_thread_woken_on(int core);
/* Gives the hold to the unheld thread `tid` of this process.  pin: pin the thread to the core, since
 * it is not there yet.  False when it could not be pinned. */
bool inv_hold_handover(int hold, int tid, bool pin);
/* Is `hold` a core of this process, and `tid` the thread that holds it? */
bool inv_hold_is_of(int hold, int tid);
/* Does this process hold the core?  Some core that it does hold, the k-th or later, round
 * about; INV_NO_CORE: none. */
bool inv_core_is_held(int core);
int inv_some_held_core(unsigned k);
/* The core that the calling thread is pinned to as far as it knows, INV_HOLD_NONE if it is not. */
int inv_thread_core(void);
/* May the calling thread's affinity be ours: one core, or, since it was evicted, all but one? */
bool inv_thread_pinned(void);
/* Let it run wherever threads of the process may, for a while; returns what to repin it with.  For
 * a child: with the affinity that the program sees. */
int inv_thread_unpin(void);
int inv_thread_unpin_for_child(void);
/* Where threads may run that hold no core: wide_mask, without the CPUs of cores that are another
 * user's now (table.h, INV_ELSEWHERE).  Threads that hold a core while the kernel places them
 * (strangers.h) may run on the domain's cores as well. */
void inv_wide_cpus(struct inv_cpus *cpus);
void inv_spread_cpus(struct inv_cpus *cpus);
/* What the program has: the same, or the CPUs that its launcher has bound it to. */
void inv_own_cpus(struct inv_cpus *cpus);
void inv_thread_repin(int pinned);
/* CPU time of a thread of this process, 0 when there is none of that number. */
uint64_t inv_thread_cpu_ns(int tid);
/* Gives a hold up that is no thread's. */
void inv_hold_release(int hold);
/* The kernel's id of the calling thread, cached in inv_tid, which is 0 before the first call and
 * set in every thread that holds a core.  A child of fork must call inv_thread_forget first. */
extern __thread int inv_tid __attribute__((tls_model("initial-exec")));
int inv_own_tid(void);
void inv_thread_forget(void);
/* Gives the caller's hold up: lends it, and wakes a thread that can use it.  inv_hold becomes NONE. */
void inv_hold_lend(void);
/* Forgets the caller's hold without lending, to give it to another thread.  Returns it, or
 * INV_HOLD_NONE: it was lost. */
int inv_hold_detach(void);

enum inv_verdict {
    INV_KEEP,   /* compute on */
    INV_WANTED, /* another process would use the core if you idle on it */
    INV_GIVE,   /* give it up at this scheduling point: the owner asks for it */
    INV_LOST    /* evicted: it is not yours any more (inv_hold_detach it) */
};
/* What to do with a hold of this process.  Two or three loads, no write. */
enum inv_verdict inv_hold_check(int hold);
/* Is the caller's hold a core of our own? */
bool inv_hold_is_owned(void);
/* What to do with the caller's hold. */
enum inv_verdict inv_hold_poll(void);

/* Set or clear "this process has work for another core"; setting it also tries to
 * reclaim our own cores.  Cheap when nothing changes. */
void inv_want(bool wants);

/* Tell libinvasive how to find out whether there is work for another core: a process whose
 * thread begins to wait, and has none, does not want any.  Set once, by the runtime. */
void inv_set_work_probe(bool (*work_waiting)(void));
/* Stop wanting unless there is work, which is looked for again after it was said. */
void inv_want_if_work(void);

/* --- task points: a wait in MPI during which ready OpenMP tasks may run (invade --mpi-tasks) */

struct inv_task_point {
    bool (*ready)(void); /* is there a task that the calling thread may run?  A hint; some loads */
    bool (*run)(void);   /* run one; false: there was none.  The caller holds a core */
};
/* Tell libinvasive how.  Set once, by the OpenMP runtime before its first region; *point stays. */
void inv_set_task_point(const struct inv_task_point *point);
/* What was set, or NULL: this process has no OpenMP runtime that offers it. */
const struct inv_task_point *inv_task_point(void);

/* --- other threads of the process, for a thread that waits in a loop of tests (others.c) */

/* The looks of one thread. */
struct inv_others {
    uint64_t cpu_ns; /* CPU time of all others when they were last seen to have run */
    uint64_t ran_ns; /* when that was; 0: never */
    uint64_t own_ns; /* the caller's CPU time then */
    uint64_t spent_ns; /* what the caller has used since */
};
/* How long no other thread of the program has run, as far as the looks tell; UINT64_MAX: none ever
 * has.  Only the caller's CPU time tells whether one could have run in that time: on a busy machine
 * both may have waited for a processor.  Two or three system calls. */
uint64_t inv_others_quiet_ns(struct inv_others *o);
/* The calling thread is the runtime's service thread (the watchdog), for which no thread of the
 * program waits. */
void inv_service_thread(void);

/* The calling thread waits in a loop of tests of MPI, the latest of which has failed: true until
 * the thread tests with success, waits in another way, begins a region, or has not tested for so
 * long that it computes.  Read by the OpenMP runtime where a lock is released.  inv_polls_until, in
 * ticks: 0 where that is false; written by its thread, in the MPI shim and at the begin of a
 * region. */
extern __thread uint64_t inv_polls_until __attribute__((tls_model("initial-exec")));
bool inv_polls(void);

struct inv_give_way {
    bool (*wanted)(void); /* does a thread or an implicit task lack a core, or does the caller hold
                           * none? */
    /* Lets one of them have the caller's hold.  True: the caller holds a core again.  False: the time
     * is over, and the caller goes on as an unheld thread. */
    bool (*give)(uint64_t limit_ns);
    void (*go_on)(void); /* the caller goes on as an unheld thread, and gets the next core that is
                          * free */
};
/* Tell libinvasive how.  Set once, by the OpenMP runtime before its first region; *way stays. */
void inv_set_give_way(const struct inv_give_way *way);
/* The same for callers that do not know the runtime.  Without one: false; true, at once; false. */
bool inv_way_wanted(void);
bool inv_give_way(uint64_t limit_ns);
bool inv_go_on_unheld(void);

/* --- parked workers: they have nothing to do, and lenders can wake them */

/* Park the calling thread (it holds no core) until a lender or inv_parked_wake wakes it, or `*word`
 * is not `expected` any more at the time of parking.  Then it may hold a core.  False, at once:
 * INV_PARKED_MAX workers are parked already, and no waker would find it here. */
bool inv_worker_park(_Atomic uint32_t *word, uint32_t expected);
/* Wake one parked worker of this process and give it the hold (INV_HOLD_NONE: none; it looks for
 * work itself).  False when none is parked; the hold stays the caller's. */
bool inv_parked_wake(int hold);
/* The same without a hold: it wakes on that core (INV_NO_CORE: where it fell asleep). */
bool inv_parked_wake_unheld(int core);
/* Number of parked workers. */
unsigned inv_parked_count(void);
/* For the child of a fork: no thread of the parent is here. */
void inv_parked_forget(void);

/* --- background threads: they compute, hold no core, and are the program's own (background.c) */

/* Core time that this process has held cores until `now` (inv_now_ns); with more processes than
 * cores the processor time that it has used, or 0 where cores are emulated.  Others change the
 * table meanwhile; an interval may be missed or counted twice, and is put right by the next
 * look. */
uint64_t inv_held_ns(uint64_t now);

/* What one thread has seen of them in one wait. */
struct inv_background {
    unsigned sleeps;                  /* of the caller, in this wait */
    uint64_t since_ns;                /* time of the second one */
    uint64_t now_ns, cpu_ns, held_ns; /* at the last look; 0 before the first */
    int64_t asleep;                   /* how often other threads had gone to sleep then */
    uint64_t ran_ns;                  /* the last look at which others had computed */
    int found;                        /* how many computed, at the last look */
    uint64_t period_ns; /* the least time until the next look */
};
enum { INV_BACKGROUND_UNKNOWN = -1 };
void inv_background_begin(struct inv_background *b);
/* Call before each sleep.  Returns how many background threads compute; INV_BACKGROUND_UNKNOWN: it is too
 * early to say.  keeps: one of the process's holds is kept for them. */
int inv_background_count(struct inv_background *b, bool keeps);

/* --- waiting, for the MPI shim */

/* inv_wait_begin: the caller is about to wait.  Gives its hold up, unless threads of the program
 * compute that have none (background.c).  Read the bell before (inv_bell_read). */
uint32_t inv_bell_read(void);
void inv_wait_begin(void);
/* Sleep until the bell is not `seen` any more or the time is over.  True when rung.  Now and then it
 * reconsiders, before the sleep, whether to lend or to keep the hold. */
bool inv_wait_sleep(uint32_t seen, int64_t timeout_ns);
/* The wait is over: the caller holds a core again when it returns (its own core first; after the
 * reclaim bound the borrower is evicted). */
void inv_wait_end(void);

/* The lowest core that this process owns; INV_NO_CORE when it owns none. */
int inv_first_owned_core(void);
/* The first hold of a process, before it is managed: as in inv_wait_end, until `limit_ns`. */
int inv_first_hold(uint64_t limit_ns);

/* Wake process `slot` of this domain if it waits (see inv_ring). */
void inv_ring_slot(unsigned slot);

/* Begin our record, if INVASIVE_REPORT asks for one; inv_join calls it. */
void inv_record_begin(void);
/* What is reported begins and ends here: MPI_Init has ended, MPI_Finalize begins.  Without them it
 * is from the joining to the process's end. */
void inv_record_restart(void);
void inv_record_stop(void);
/* Bring the record's CPU time up to date.  Nothing happens where there is no record. */
void inv_record_publish(void);
/* Write the name of a module as the dynamic linker has it, "" the program, to `to`
 * (INV_MODULE_BYTES): of a longer name the end.  Thread safe. */
void inv_record_name_module(char *to, const char *name);

/* --- the report of a process on another node than the `invade` that wants it (remote_report.c) */

struct inv_remote_report;
struct inv_request;
/* Does that `invade` run on this node?  False where no report is wanted. */
bool inv_report_is_here(void);
/* Fills in the report of this process, which has stopped its record.  Returns its bytes. */
size_t inv_remote_report_fill(struct inv_remote_report *report);
/* Submits the report of a process on another node to our rmd, as one of our launch and job.
 * behind_ns: our clock less the sender's.  False: it is malformed, or rmd refuses it. */
bool inv_remote_report_submit(struct inv_remote_report *report, size_t bytes, int64_t behind_ns);
/* Send rmd a request, the beginning of so many bytes; true when it says INV_OK. */
bool inv_tell_manager(const struct inv_request *request, size_t bytes);

#endif
