/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * domain.h - the processes of one user, which share a core table: its members, and the cores that
 * each owns.  The caller holds the loop's turn (loop.h): it is the main thread, or the thread of a
 * bell, which decides on constraints while the loop is idle.
 */
#ifndef RMD_DOMAIN_H
#define RMD_DOMAIN_H

#include "rmd/domain/bell.h"
#include "rmd/loop/dedup.h"
#include "rmd/loop/loop.h"
#include "rmd/config/control_protocol.h"
#include "rmd/journal/report.h"
#include "rmd/policy/policy.h"
#include "protocol.h"
#include "topology.h"
#include "rmd/config/units.h"

#include <sys/types.h>

struct rmd_domain;
struct rmd_trace;

/* What an operator or the user has said about a process, see order.h. */
struct rmd_order {
    unsigned least, most; /* cores; 0: nothing said */
    bool pinned;
    uint64_t cores[INV_CORE_WORDS]; /* to these, as far as they are granted */
};

struct rmd_process {
    struct rmd_source pidfd; /* readable when the process has died */
    struct rmd_domain *domain;
    bool used;
    pid_t pid;
    int rank, size;             /* MPI's; -1 unknown */
    uint64_t job;               /* a number that the ranks of one MPI job have in common */
    uint64_t mark;              /* as it said, inv_launch_mark; 0: nothing.  Ranks of a job agree */
    uint64_t launch;            /* what max_job_cores is for: that, else its session */
    int local_rank, local_size; /* among the MPI ranks of this node; -1 unknown */
    unsigned owned;             /* cores */
    unsigned owned_units;       /* what it owns, as policies count it */
    double iteration_s;         /* as it was announced last, */
    unsigned iteration_cores;   /* with so many units owned */
    uint64_t start_ns, settled_ns, owned_ns;
    uint64_t start_ticks; /* procstat.h */
    bool stopped, wanted; /* by a signal; it wanted cores then */
    bool locks;           /* what shows that it is the same program still, replaced.h */
    int loan;             /* tokens of it that others have meanwhile */
    int assigned;         /* core that its slot says, where tokens are counted; INV_NO_CORE none */
    struct rmd_order order; /* what an operator has said of it */
    unsigned reported_owned; /* cores, by the last INV_EVENT_OWNER */
    uint64_t reported_mark;  /* hash of these cores */
};

/* Orders for processes that have left; they hold again when the same process comes back. */
enum { RMD_LEFT_ORDERS = 64 }; /* the last ones */
struct rmd_left_order {
    pid_t pid; /* 0: none */
    uint64_t start_ticks;
    struct rmd_order order;
};

/* A process that has become another program: as that it may come again. */
enum { RMD_REPLACED = 64 };
struct rmd_replaced {
    pid_t pid; /* 0: none */
    uint64_t start_ticks;
};

/* Position of a client in the reports of a domain.  rmd makes them one at a time, so that a client
 * that does not read them takes no memory. */
struct rmd_report_cursor {
    uint64_t next, end; /* of dead processes, counted from the domain's first one */
    struct rmd_living {
        pid_t pid;
        uint64_t start_ns;
    } *living; /* processes at the time of the request */
    unsigned nliving, nth;
};

/* Is a core of the machine granted to the domain? */
enum rmd_grant {
    RMD_NOT_GRANTED, /* no process of the domain may have it */
    RMD_REVOKING,    /* asked back; a process may still compute on it */
    RMD_GRANTED
};

/* Only the holder of the loop's turn reads and writes it, but for `bell`, which bell.c uses. */
struct rmd_domain {
    /* set by the caller of rmd_domain_open */
    struct inv_topology topology;
    enum rmd_smt smt;
    const struct rmd_policy *policy;
    struct rmd_tuning tuning; /* RMD_TUNING */
    unsigned procs_hint; /* 0 unknown */
    unsigned reclaim_bound_us;
    unsigned max_job_cores; /* that the processes of a launch own together; 0: no limit */
    const double *delivered; /* of a core by each core, 0 unknown; may be NULL */
    /* called when the last process has gone; one has, which may live on unmanaged; a core may have
     * left; a table has been made or, fd -1, is to go: each may be NULL */
    void (*emptied)(struct rmd_domain *);
    void (*left)(struct rmd_domain *, unsigned slot, bool lives);
    void (*core_left)(struct rmd_domain *);
    void (*table_changed)(struct rmd_domain *, int fd);

    struct rmd_units units;  /* what policies and placement give out */
    struct inv_table *table; /* NULL before the first join */
    int table_fd;
    unsigned char grant[INV_MAX_CORES]; /* enum rmd_grant */
    unsigned granted, units_granted;    /* granted cores, and units: a unit is granted as a whole */
    bool changed;    /* since the last rmd_domain_share */
    unsigned due;    /* units that will be, for those that are about to join */
    unsigned tokens; /* that the table has been given */
    struct inv_table *header; /* our copy of the table's constant part, rmd_domain_mend_head */
    struct rmd_bell bell;
    unsigned live;                           /* processes now */
    unsigned joined, expected;               /* since the domain was last empty */
    uint64_t jobs, newest_job;               /* numbers given out; that of the last to join */
    uint64_t newest_launch;                  /* of which those are that are still to come */
    struct rmd_process procs[INV_MAX_SLOTS]; /* by slot */
    uint64_t moves;           /* of cores from one process to another */
    int owner[INV_MAX_CORES]; /* slot that owns the core; what the table says is a copy */
    struct rmd_reports dead;
    bool saves_state;        /* set by the caller: save the state for the next rmd (state.h) */
    struct rmd_state *state; /* state.h; NULL without, or without a table */
    int state_fd;
    unsigned stopped;     /* processes */
    uint64_t repaired_ns; /* said last that something was */
    int amiss;            /* tokens that the table had too many at the last check, */
    unsigned alike;       /* and at how many before it; check.c */
    uid_t uid; /* of the domain's user; set by the caller of rmd_domain_open, for events */
    struct rmd_left_order left_orders[RMD_LEFT_ORDERS];
    unsigned nleft_orders; /* so far */
    unsigned char resting[INV_MAX_CORES]; /* granted cores that no process may use, see order.h */
    uint64_t decisions, decision_ns, joins, leaves, deaths; /* so far */
    struct rmd_trace *starting, *trace, *ending; /* trace.h; NULL: none */
    struct rmd_dedup messages;                   /* that processes of a launch print once */
    struct rmd_source closed_files; /* replaced.h; fd -1: none */
    bool closed_files_wait;         /* not listened to now */
    unsigned looked_at;             /* slots, so far */
    struct rmd_replaced replaced[RMD_REPLACED]; /* the last ones since the domain was empty */
    unsigned nreplaced;                         /* so far */
};

/* Prepare a domain without a process or core; makes no table yet.  Decides here what `units` are,
 * from topology and smt.  0, or -1 with errno. */
int rmd_domain_open(struct rmd_domain *domain);
void rmd_domain_close(struct rmd_domain *domain);

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

/* Another policy, tuning, bound or limit, which the caller has put into *domain. */
void rmd_domain_reconfigured(struct rmd_domain *domain);

/*
 * rmd_domain_take_over - takes over the core table and the state (state.h) of a former rmd.  The
 * domain must have no process.  Its living members are members again; those that have died are
 * removed.  domain->grant becomes that of the state.
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

/* Confinement may have moved threads of its processes to other CPUs. */
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

/* The process with this pid goes on without us.  Nothing happens when it is no member. */
void rmd_domain_leave(struct rmd_domain *domain, pid_t pid);

/* Something has changed that the policy may look at. */
void rmd_domain_reconsider(struct rmd_domain *domain);

/* Orders have changed: decide again in any case. */
void rmd_domain_reorder(struct rmd_domain *domain);
/* So many cores can be guaranteed to this process, as things are: what there is, without what is
 * pinned and what the others need at least. */
unsigned rmd_domain_most(struct rmd_domain *domain, unsigned slot);
/* The slot of a member; -1 when it is none. */
int rmd_domain_slot(struct rmd_domain *domain, pid_t pid);

/* From now on this policy decides; owners change at once. */
void rmd_domain_set_policy(struct rmd_domain *domain, const struct rmd_policy *policy);

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
