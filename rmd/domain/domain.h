/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * domain.h - the processes of one user, which share a core table: its members, and the cores that
 * each owns.  The caller holds the loop's turn (loop.h): it is the main thread, or the thread of a
 * bell, which decides on constraints while the loop is idle.
 */
#ifndef RMD_DOMAIN_H
#define RMD_DOMAIN_H

#include "rmd/config/control_protocol.h"
#include "rmd/host/rate_limit.h"
#include "rmd/host/subuid.h"
#include "rmd/journal/events.h"
#include "rmd/journal/report.h"
#include "rmd/policy/policy.h"
#include "rmd/power/energy.h"
#include "libinvasive/table/protocol.h"
#include "rmd/placement/smt.h"
#include "libinvasive/table/topology.h"

#include <sys/types.h>

struct rmd_domain; /* domain_inside.h, for files of this folder only */

/* The orders of an operator or the user about a process, see order.h. */
struct rmd_order {
    unsigned least, most; /* cores; 0: no order */
    bool pinned;
    uint64_t cores[INV_CORE_WORDS]; /* the process is pinned to these, as far as they are granted */
};

/* A process that has left the domain by calling exec.  Its new program may join, as the same
 * process. */
enum { RMD_REPLACED = 64 }; /* how many a domain remembers: the last ones */
struct rmd_replaced {
    pid_t pid; /* 0: none */
    uint64_t start_ticks;
};

/* Which report of a domain a client gets next: first those of dead processes, then those of living
 * ones.  rmd makes one at a time, so that a client that does not read them takes no memory. */
struct rmd_report_cursor {
    uint64_t next, end; /* dead processes still to report, counted from the domain's first one */
    struct rmd_living {
        pid_t pid;
        uint64_t start_ns;
    } *living; /* processes at the time of the request */
    unsigned nliving, nth; /* how many; the next one */
};

/* Is a core of the machine granted to the domain? */
enum rmd_grant {
    RMD_NOT_GRANTED, /* no process of the domain may have it */
    RMD_REVOKING,    /* asked back; a process may still compute on it */
    RMD_GRANTED
};

/* What the domains of an rmd share.  Zeros at first, but for rates.persons. */
struct rmd_shared {
    struct rmd_persons persons;
    struct rmd_rate_limits rates;
    struct rmd_events events;
    struct rmd_reports_kept reports;
    struct rmd_energy energy;
    struct rmd_trace *orphans; /* trace.h: traces that end later than their domains */
};

/* Properties of a domain that do not change, for rmd_domain_new. */
struct rmd_domain_options {
    const struct inv_topology *topology; /* copied */
    enum rmd_smt smt;
    struct rmd_shared *shared; /* not copied */
    uid_t uid;               /* of the domain's user, for events */
    unsigned procs_hint;     /* 0 unknown */
    const double *delivered; /* by core: what it delivers (delivery.h); may be NULL; not copied */
    bool saves_state;        /* for the next rmd (state.h) */
    /* use no inotify, since the kernel takes some 20 ms to end a watch (at 250 ticks a second): the
     * next check, within a second, detects a member that has called exec and does not join again */
    bool leaves_to_checks;
    struct rmd_domain_calls {
        void *context; /* the first argument of these functions, each of which may be NULL: */
        void (*emptied)(void *context); /* the last process has gone */
        /* the process in the slot has left; lives: it may run on, unmanaged */
        void (*left)(void *context, unsigned slot, bool lives);
        void (*core_left)(void *context); /* a withdrawn core may have no holder any more */
        /* a table has been made, with a state or (state_fd -1) without; -1, -1: the table is about
         * to be freed */
        void (*table_changed)(void *context, int table_fd, int state_fd);
    } calls;
};

/* Properties that may change, for rmd_domain_set_rules. */
struct rmd_domain_rules {
    const struct rmd_policy *policy;
    struct rmd_tuning tuning; /* RMD_TUNING */
    unsigned reclaim_bound_us;
    bool lend_blocked; /* cores whose threads sleep in the kernel are lent (blocked.h) */
    unsigned max_job_cores; /* that the processes of a launch own together; 0: no limit */
};

/* A domain without a process or core; makes no table yet.  NULL: no memory. */
struct rmd_domain *rmd_domain_new(const struct rmd_domain_options *options);
void rmd_domain_free(struct rmd_domain *domain);

/* rmd_domain_set_rules - sets the rules, copied, for later decisions.  The domain has none
 *                        before the first call.
 * rmd_domain_reconfigured - decides by the rules at once. */
void rmd_domain_set_rules(struct rmd_domain *domain, const struct rmd_domain_rules *rules);
void rmd_domain_reconfigured(struct rmd_domain *domain);
/* paced: the number of the domain's cores changes many times a second, by a quota, so changes of
 * owners are no events. */
void rmd_domain_set_paced(struct rmd_domain *domain, bool paced);
/* Number of units that the domain will have soon, by which the mode of a new table is chosen; 0:
 * not more than it has. */
void rmd_domain_set_due(struct rmd_domain *domain, unsigned units);

/* --- reading a domain.  What a returned pointer points to changes with the domain. */

struct rmd_domain_counts {
    unsigned live, stopped;                                 /* processes now; stopped by a signal */
    unsigned granted, units_granted;                        /* cores, and units */
    uint64_t moves;                                         /* of cores between processes, so far */
    uint64_t joins, leaves, deaths, decisions, decision_ns; /* so far */
};

/* A process of the domain. */
struct rmd_member {
    pid_t pid;
    int pidfd, rank;      /* the domain's; MPI's, -1 unknown */
    uint64_t start_ticks; /* procstat.h */
    unsigned owned;       /* cores */
    bool suspended; /* with its job */
    unsigned priority; /* of its job */
    const struct rmd_order *order;
};

/* The options and rules of the domain, and its counts as they are now. */
uid_t rmd_domain_uid(const struct rmd_domain *domain);
const struct inv_topology *rmd_domain_topology(const struct rmd_domain *domain);
const struct rmd_domain_rules *rmd_domain_rules(const struct rmd_domain *domain);
struct rmd_domain_counts rmd_domain_counts(const struct rmd_domain *domain);
/* How many processes the domain has, and how many cores are granted to it. */
unsigned rmd_domain_live(const struct rmd_domain *domain);
unsigned rmd_domain_granted(const struct rmd_domain *domain);
/* False: the slot has no process. */
bool rmd_domain_member(const struct rmd_domain *domain, unsigned slot, struct rmd_member *member);
/* The replaced processes that the domain remembers: an array of RMD_REPLACED elements. */
const struct rmd_replaced *rmd_domain_replaced(const struct rmd_domain *domain);
/* The table, which processes write to, and its descriptor: NULL and -1 before the first join. */
struct inv_table *rmd_domain_table(const struct rmd_domain *domain);
int rmd_domain_table_fd(const struct rmd_domain *domain);

/* Of a core: is it granted; the slot of its owner, or -1; does it rest (order.h); the slot of the
 * member that holds it now, or -1, and *tid its thread: a hint. */
enum rmd_grant rmd_domain_grant(const struct rmd_domain *domain, unsigned core);
int rmd_domain_owner(const struct rmd_domain *domain, unsigned core);
bool rmd_domain_rests(const struct rmd_domain *domain, unsigned core);
int rmd_domain_holder(const struct rmd_domain *domain, unsigned core, pid_t *tid);

/*
 * rmd_domain_admit - grants the core to the domain, without an owner at first.
 * rmd_domain_withdraw - revokes the core.  True: no process computes on it any more.
 * rmd_domain_has_left - true: no process computes any more on a core that was withdrawn.
 * rmd_domain_expel - revokes the core at once: its word says so, the caller keeps threads away.
 * rmd_domain_share - divides the granted cores among the processes, if they have changed.
 * The caller admits or withdraws all cores of a unit before the next rmd_domain_share.
 */
void rmd_domain_admit(struct rmd_domain *domain, unsigned core);
bool rmd_domain_withdraw(struct rmd_domain *domain, unsigned core);
bool rmd_domain_has_left(struct rmd_domain *domain, unsigned core);
void rmd_domain_expel(struct rmd_domain *domain, unsigned core);
void rmd_domain_share(struct rmd_domain *domain);

/*
 * rmd_domain_take_over - takes over the core table and the state (state.h) of a former rmd.  The
 * domain must have no process.  Its living members are members again; those that have died are
 * removed.  The granted cores become those of the state.
 * Returns the number of members; the domain owns both descriptors if it has a table then.  Or
 * returns -1, errno EPROTO: another version, or no table and state; ESTALE: of other cores.
 */
int rmd_domain_take_over(struct rmd_domain *domain, int table_fd, int state_fd);

/*
 * rmd_takeover_cores - before that: sets *topology to the cores of a former rmd that was started
 * for the same cores, if the two differ only by CPUs that are offline now or were offline then.
 * Its tables have these cores.  True: *topology has changed.  The caller closes state_fd.
 *   sys_root  where sysfs is, which lists the online CPUs
 */
bool rmd_takeover_cores(struct inv_topology *topology, int state_fd, const char *sys_root);

/* Periodic: repairs rmd's part of the table, and finds processes that a signal has stopped or that
 * have continued.  True: the domain has begun, or ceased, to consist of stopped processes only. */
bool rmd_domain_check(struct rmd_domain *domain);

/* Confinement may have moved threads of the domain's processes to other CPUs. */
void rmd_domain_confined(struct rmd_domain *domain);

/* The domain has no process left: frees all tokens and board lines that were not returned, and
 * calls `emptied`. */
void rmd_domain_reset(struct rmd_domain *domain);

/* Frees the table if the domain has no process. */
void rmd_domain_drop_empty_table(struct rmd_domain *domain);

/*
 * rmd_domain_join - a process becomes a member, and owns its share when this returns.
 *   pid, pidfd  from the kernel.  The pidfd is the domain's from here on, in any case
 *   request     checked by the caller
 * Returns the slot; or -1, errno ENOSPC no slot is left, else of making the table.
 */
int rmd_domain_join(struct rmd_domain *domain, pid_t pid, int pidfd,
                    const struct inv_request *request);

/* The process with this pid leaves the domain and goes on unmanaged.  Nothing happens when it is no
 * member. */
void rmd_domain_leave(struct rmd_domain *domain, pid_t pid);

/* Decides again, since an input of the policy may have changed. */
void rmd_domain_reconsider(struct rmd_domain *domain);
/* The speeds of the cores from now on, in 1/INV_WHOLE_SPEED; decides again. */
void rmd_domain_set_speeds(struct rmd_domain *domain, const unsigned short *speed);

/* Replaces the order about the process in this slot, and decides again in any case. */
void rmd_domain_set_order(struct rmd_domain *domain, unsigned slot, const struct rmd_order *order);
/* How many cores can be guaranteed to this process now: the granted ones, without those to which
 * processes are pinned and those that the other processes need at least. */
unsigned rmd_domain_most(struct rmd_domain *domain, unsigned slot);
/*
 * A job is the processes of one launch.  While it is suspended its processes own and hold no core,
 * and their threads wait.
 * rmd_domain_suspend - suspends or resumes the job of the process in this slot.  Returns the number
 * of
 *                      its processes.
 * rmd_domain_suspension_settled - true: no process of the job holds a core, and none computes.
 *                                 *computing: number of its processes whose threads still compute.
 */
unsigned rmd_domain_suspend(struct rmd_domain *domain, unsigned slot, bool suspended);
bool rmd_domain_suspension_settled(struct rmd_domain *domain, unsigned slot, unsigned *computing);
/* Gives the job of the process in this slot this priority (limit.h), and decides again.  Returns
 * the number of its processes. */
unsigned rmd_domain_prioritize(struct rmd_domain *domain, unsigned slot, unsigned priority);
/* The process in this slot owns at most this number of cores, by a quota of its own; 0: no limit.
 * Decides again if the number has changed. */
void rmd_domain_set_paid(struct rmd_domain *domain, unsigned slot, unsigned cores);
/* The slot of a member; -1 when it is none. */
int rmd_domain_slot(struct rmd_domain *domain, pid_t pid);

/* From now on this policy decides, for the first time at once. */
void rmd_domain_set_policy(struct rmd_domain *domain, const struct rmd_policy *policy);

/* Is this the first call with this number, which stands for a message that all processes of a
 * launch want to print (dedup.h)? */
bool rmd_domain_says_first(struct rmd_domain *domain, uint64_t launch);

/*
 * rmd_domain_observe - a read-only descriptor of the table; the caller closes it.  Before the first
 * join it is of an empty table that no domain uses: the mode of the table depends on the number of
 * processes.  -1 with errno.
 */
int rmd_domain_observe(struct rmd_domain *domain);

/* Adds the report of a process on another node, submitted by the member with this pid.  `bytes` is
 * at most the size of *remote; nothing else is checked before.  0, or -1: malformed, or pid is no
 * member. */
int rmd_domain_submit_report(struct rmd_domain *domain, pid_t pid,
                             const struct inv_remote_report *remote, size_t bytes);

/*
 * One report for each process that has joined until now, dead processes first.
 * rmd_domain_begin_reports - sets the cursor to the first one; the caller frees it with
 *                            rmd_report_cursor_free.  Returns the number of reports.
 * rmd_domain_next_report - the report at the cursor; the caller frees its record.  False: there are
 *                          no more; there are fewer than announced if memory is short.
 * rmd_report_cursor_advance - to the next one.
 */
unsigned rmd_domain_begin_reports(struct rmd_domain *domain, struct rmd_report_cursor *cursor);
bool rmd_domain_next_report(struct rmd_domain *domain, struct rmd_report_cursor *cursor,
                            struct rmd_report *report);
void rmd_report_cursor_advance(struct rmd_report_cursor *cursor);
void rmd_report_cursor_free(struct rmd_report_cursor *cursor);

#endif
