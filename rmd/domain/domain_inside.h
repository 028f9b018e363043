/* SPDX-License-Identifier: GPL-3.0-or-later */
/* domain_inside.h - the domain as the files of this folder see it, and what they share. */
#ifndef RMD_DOMAIN_INSIDE_H
#define RMD_DOMAIN_INSIDE_H

#include "rmd/domain/bell.h"
#include "rmd/loop/dedup.h"
#include "rmd/domain/domain.h"
#include "rmd/domain/blocked.h"
#include "rmd/loop/loop.h"
#include "rmd/config/units.h"

struct rmd_process {
    struct rmd_source pidfd; /* readable when the process has died */
    struct rmd_domain *domain;
    bool used;
    pid_t pid;
    int rank, size;             /* MPI's; -1 unknown */
    uint64_t job;               /* a number that is the same in all ranks of one MPI job */
    uint64_t mark;              /* its inv_launch_mark, the same in all ranks of a job; 0:
                                   unknown */
    uint64_t launch;            /* its launch, for max_job_cores: the mark, else its session */
    int local_rank, local_size; /* among the MPI ranks of this node; -1 unknown */
    unsigned owned;             /* number of cores that it owns */
    unsigned owned_units;       /* number of units that it owns */
    double iteration_s;         /* announced last, */
    unsigned iteration_cores;   /* when it owned this number of units */
    uint64_t start_ns, settled_ns, owned_ns;
    struct rmd_energy_share energy;
    uint64_t start_ticks; /* procstat.h */
    bool stopped, wanted; /* it is stopped by a signal, or suspended; it wanted cores when it was */
    unsigned priority;    /* of its launch (limit.h) */
    bool suspended;       /* with its job (watch/suspend.c) */
    bool computes;        /* while suspended: it computed at the last look */
    uint64_t ran_ns;      /* while suspended: its processor time at the last look */
    bool locks;           /* it has a lock that shows whether it is the same program (replaced.h) */
    int loan;             /* number of its tokens that others have while it cannot compute */
    int assigned;         /* the slot's `assigned`, in anonymous mode; INV_NO_CORE none */
    struct rmd_order order;
    unsigned paid_cores;     /* most cores that it may own, by a quota of its own; 0: no limit */
    unsigned reported_owned; /* number of cores in the last INV_EVENT_OWNER */
    uint64_t reported_mark;  /* hash of these cores */
};

/* Orders for processes that have left; they hold again when the same process comes back. */
enum { RMD_LEFT_ORDERS = 64 }; /* how many a domain remembers */
struct rmd_left_order {
    pid_t pid; /* 0: none */
    uint64_t start_ticks;
    struct rmd_order order;
};

/* Only the holder of the loop's turn reads and writes a domain, except `bell`, which bell.c
 * uses. */
struct rmd_domain {
    /* as in rmd_domain_options and rmd_domain_rules */
    struct inv_topology topology;
    enum rmd_smt smt;
    struct rmd_shared *shared;
    uid_t uid;
    unsigned procs_hint;
    const double *delivered;
    bool saves_state, leaves_to_checks;
    bool paced; /* rmd_domain_set_paced */
    struct rmd_domain_calls calls;
    struct rmd_domain_rules rules;

    struct rmd_units units;  /* what policies and placement give out */
    struct inv_table *table; /* NULL before the first join */
    int table_fd;
    unsigned char grant[INV_MAX_CORES]; /* enum rmd_grant */
    unsigned granted, units_granted;    /* granted cores, and units: a unit is granted as a whole */
    bool changed;    /* the granted cores have changed since the last rmd_domain_share */
    unsigned due;    /* rmd_domain_set_due */
    unsigned tokens; /* number of tokens that the table has been given */
    struct inv_table *header; /* our copy of the table's constant part, rmd_domain_mend_head */
    struct rmd_bell bell;
    unsigned live;                           /* number of processes */
    unsigned joined, expected;               /* processes since the domain was last empty */
    uint64_t jobs, newest_job;               /* last number of a job; job that joined last */
    uint64_t newest_launch;                  /* launch of the processes that are still expected */
    struct rmd_process procs[INV_MAX_SLOTS]; /* by slot */
    uint64_t moves;           /* of cores from one process to another */
    int owner[INV_MAX_CORES]; /* slot that owns the core; the table has a copy */
    struct rmd_reports dead;
    struct rmd_state *state; /* state.h; NULL without, or without a table */
    int state_fd;
    unsigned stopped;     /* number of processes that are */
    uint64_t repaired_ns; /* time of the last log line about a repair */
    int amiss;            /* tokens that the table had too many at the last check, */
    unsigned alike;       /* and at this number of checks before it; check.c */
    struct rmd_left_order left_orders[RMD_LEFT_ORDERS];
    unsigned nleft_orders; /* so far */
    unsigned char resting[INV_MAX_CORES]; /* granted cores that no process may use, see order.h */
    uint64_t decisions, decision_ns, joins, leaves, deaths; /* so far */
    struct rmd_trace *starting, *trace, *ending; /* trace.h; NULL: none */
    struct rmd_dedup messages;                   /* that the processes of a launch print once */
    struct rmd_source closed_files; /* replaced.h; fd -1: none */
    bool closed_files_wait;         /* the event loop does not watch it now */
    unsigned looked_at;             /* number of slots checked so far (replaced.c) */
    struct rmd_replaced replaced[RMD_REPLACED]; /* the last ones since the domain was empty */
    unsigned nreplaced;                         /* so far */
    struct rmd_blocked blocked;
    struct rmd_suspension {
        struct rmd_source timer;       /* fd -1: not open */
        uint64_t pause_ns, looked_ns; /* time until the next look; time of the last look */
        uint32_t looks;               /* so far */
        unsigned early;               /* number of looks to come that follow each other soon */
    } suspension;
};

/* rmd_domain_open - prepares what is zeros but for the options and rules.  0, or -1 with errno.
 * rmd_domain_close - frees all but *domain. */
int rmd_domain_open(struct rmd_domain *domain);
void rmd_domain_close(struct rmd_domain *domain);

/* Uses this table.  The domain owns fd from then on, also if it fails.  0, or -1 with errno. */
int rmd_domain_use_table(struct rmd_domain *domain, struct inv_table *table, int fd);

/* Makes a table whose mode fits the process that is about to join, one of `expected` processes,
 * unless the present table does or is in use.  0, or -1 with errno. */
int rmd_domain_fit_table(struct rmd_domain *domain, unsigned expected);

/* Restores the constant part of the table if a process has overwritten it.  So no offset or count
 * that rmd uses is wrong. */
void rmd_domain_mend_head(struct rmd_domain *domain);

/* Adds up the core time that each process has owned until now, and shows it in its slot. */
void rmd_domain_settle(struct rmd_domain *domain);
void rmd_domain_show_owned(struct inv_slot *slot, const struct rmd_process *process);

/* Do cores have owners in the domain's table?  False in anonymous mode, and without a table. */
static inline bool rmd_domain_owns_cores(const struct rmd_domain *d)
{
    return d->table && d->table->mode == INV_MODE_PINNED;
}

/* Lets the policy decide, and moves cores.  must: the members have changed, so cores move even if
 * little is gained. */
void rmd_domain_redistribute(struct rmd_domain *domain, bool must);

/* If a constraint is new: decides, and tells the processes (decided_seq). */
void rmd_domain_answer_constraints(struct rmd_domain *domain);

/* Adds an event of this process (events.h). */
void rmd_domain_add_event(const struct rmd_domain *domain, const struct rmd_process *process,
                          enum inv_event_kind kind, unsigned before, unsigned after,
                          const char *text);

/* The report of the process in this slot as of now; end_ns 0: it lives. */
struct rmd_report rmd_domain_report_of(struct rmd_domain *domain, unsigned slot, uint64_t end_ns);

/* Notice the death of the process in this slot.  0, or -1 with errno. */
int rmd_domain_watch(struct rmd_domain *domain, unsigned slot, int pidfd);
void rmd_domain_unwatch(struct rmd_domain *domain, unsigned slot);

/* Removes the process in this slot.  rmd_domain_share divides the cores anew.  left: the process
 * lives, and goes on unmanaged. */
void rmd_domain_remove_member(struct rmd_domain *domain, unsigned slot, bool left);

/* Puts the head of the table, the owners and the names of members right.  Returns the number of
 * cores and slots where something was wrong. */
unsigned rmd_domain_repair(struct rmd_domain *domain);

/* rmd_domain_surplus - number of free tokens of the table beyond those that it should have; right
 * if no process is taking or returning a token.
 * rmd_domain_lend_tokens - lends all tokens of a process that cannot compute; also those that it
 * has got since the last call.  True: the number of lent tokens has changed.
 * rmd_domain_end_token_loan - the process computes again. */
int rmd_domain_surplus(struct rmd_domain *domain);
bool rmd_domain_lend_tokens(struct rmd_domain *domain, unsigned slot);
void rmd_domain_end_token_loan(struct rmd_domain *domain, unsigned slot);

/*
 * Processes that cannot compute: stopped by a signal, or suspended (watch/check.c).
 * rmd_domain_check_stopped - finds these processes, lends their cores and tokens, and ends the
 * loans of
 *                            processes that go on.  True: other processes than before cannot
 * compute. rmd_domain_lend_held - lends the cores that such a process has been handed since.
 * rmd_domain_rescue - wakes threads that a process which cannot compute may have been about to wake.
 */
bool rmd_domain_check_stopped(struct rmd_domain *domain);
void rmd_domain_lend_held(struct rmd_domain *domain, unsigned slot);
void rmd_domain_rescue(struct rmd_domain *domain);

/*
 * Suspended jobs (watch/suspend.c).
 * rmd_suspension_joined - a process has joined: suspends it if its job is suspended.
 * rmd_suspension_taken_over - the processes of a former rmd have been taken over, suspended ones
 * too. rmd_suspension_close - called before the table is unmapped.
 */
void rmd_suspension_joined(struct rmd_domain *domain, unsigned slot);
void rmd_suspension_taken_over(struct rmd_domain *domain);
void rmd_suspension_close(struct rmd_domain *domain);

/* Logs that `what` was repaired, once a second at most. */
void rmd_domain_log_repaired(struct rmd_domain *domain, const char *what);

#endif
