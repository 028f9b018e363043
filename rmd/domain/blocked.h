/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blocked.h - threads that hold a core and sleep in the kernel: in a read, a join, a page fault.  No
 * code of ours runs there.  While another process wants a core, rmd looks at the holders, lends the
 * cores of those that sleep, and returns a core when its thread runs again (core.h,
 * inv_core_lend_for).  A core that the thread has borrowed is taken for good.
 *
 * This costs nothing while no process wants a core: rmd stops looking after a while, and the next
 * process that begins to want a core rings rmd's bell (table.h, unwatched).  While threads compute
 * on all cores, rmd looks seldom, and not at the threads of a process whose processor time says
 * that they compute.  If a holder falls asleep its core becomes idle, which rmd is told at once
 * (idle_cpu.h).
 */
#ifndef RMD_BLOCKED_H
#define RMD_BLOCKED_H

#include "rmd/host/idle_cpu.h"
#include "rmd/host/procstat.h"
#include "rmd/loop/loop.h"
#include "libinvasive/table/table.h"

struct rmd_domain;

/* What rmd knows of the holders.  Only the holder of the loop's turn reads and writes it. */
struct rmd_blocked {
    struct rmd_source timer; /* fd -1: rmd never looks at this domain */
    struct rmd_source idle;  /* readable: a CPU was idle; fd -1: idle CPUs are not watched for */
    struct rmd_idle_cpu *idle_cpu;
    bool watching;           /* idle_cpu runs */
    bool looking;            /* the timer runs */
    unsigned looks;          /* so far */
    unsigned unwanted;       /* looks in sequence at which no process wanted a core */
    unsigned fruitless;      /* looks since the last loan, up to a limit */
    uint64_t lent_ns;        /* when a core or token was lent last, or a loan was found worth more
                                looks */
    bool soon;               /* the last look came sooner than usual */
    uint64_t looked_ns;      /* time of the last look; 0: none since the timer runs */
    struct rmd_blocked_holder {
        struct rmd_followed thread; /* holds the core, or is the thread for which rmd has lent it */
        unsigned slot;              /* of its process */
        unsigned look;              /* `looks` at the last look at this thread */
        bool asleep;                /* at the last look */
        bool awake;                 /* lent: the thread ran at the last look */
        bool lent;                  /* rmd has lent the core for the thread */
        uint64_t slice_ns;          /* former length of the thread's time slices; 0: not changed */
    } holder[INV_MAX_CORES];   /* of their process's own cores; of tokens: by slot */
    struct rmd_blocked_holder borrower[INV_MAX_CORES]; /* `lent` is always false */
    struct {
        uint64_t ran_ns, delta_ns; /* processor time; the part of it since the look before */
        unsigned held;             /* number of cores that the process holds now */
        uint64_t not_before_ns;    /* no core is lent before, since threads without a core
                                      compute */
        uint64_t patience_ns;      /* length of the next such time */
        bool tokens_lent;          /* rmd has lent its tokens, where tokens are counted */
    } process[INV_MAX_SLOTS];
};

/* rmd_blocked_open - before the first process joins the table.  Not in an emulated domain, where
 *                    threads sleep to compute.
 * rmd_blocked_close - before the table is unmapped. */
void rmd_blocked_open(struct rmd_domain *domain);
void rmd_blocked_close(struct rmd_domain *domain);
/* rmd_blocked_reconsider - a process has joined, left, or rung: begins to look if there is reason
 * to,
 *                          or stops.
 * rmd_blocked_forget - the process in this slot is about to be removed. */
void rmd_blocked_reconsider(struct rmd_domain *domain);
void rmd_blocked_forget(struct rmd_domain *domain, unsigned slot);

#endif
