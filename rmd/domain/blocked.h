/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blocked.h - threads that hold a core and sleep in the kernel: in a read, a join, a page fault.  No
 * code of ours runs there.  While another process wants a core, rmd looks at the holders, lends the
 * cores of those that sleep, and returns a core when its thread runs again (core.h, inv_core_lend_for).  A core
 * that the thread has borrowed is taken for good.
 *
 * At no cost while no process wants a core: rmd stops to look after a while, and the next process that
 * begins to want one rings its bell (table.h, unwatched).  While all cores are computed on, rmd looks seldom, and
 * not at the threads of a process whose processor time says that they compute.  A core whose thread falls
 * asleep is idle, which rmd is told at once (idle_cpu.h).
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
    struct rmd_source timer; /* fd -1: it never looks */
    struct rmd_source idle;  /* readable: a CPU was idle; fd -1: that is not watched */
    struct rmd_idle_cpu *idle_cpu;
    bool watching;           /* for an idle CPU */
    bool looking;            /* the timer runs */
    unsigned looks;          /* so far */
    unsigned unwanted;       /* looks in a row at which no process wanted a core */
    unsigned fruitless;      /* looks since the last loan, up to a limit */
    uint64_t lent_ns;        /* when a core or token was lent last, or that loan was last found worth looks */
    bool soon;               /* the last look was sooner than others */
    uint64_t looked_ns;      /* when it has looked last; 0: not since it began */
    struct rmd_blocked_holder {
        struct rmd_followed thread; /* that holds the core, or has lent it */
        unsigned slot;              /* its process */
        unsigned look;              /* the last one at the thread: a number, of `looks` */
        bool asleep;                /* at the last look */
        bool awake;                 /* a thread that has lent: it ran at the last look */
        bool lent;                  /* by us */
        uint64_t slice_ns;          /* of the thread before; 0: as it was */
    } holder[INV_MAX_CORES];   /* of their own cores; of tokens: by slot */
    struct rmd_blocked_holder borrower[INV_MAX_CORES]; /* never lent */
    struct {
        uint64_t ran_ns, delta_ns; /* processor time; since the look before */
        unsigned held;             /* cores that it holds now */
        uint64_t not_before_ns;    /* nothing is lent before: threads that hold no core compute */
        uint64_t patience_ns;      /* how long that is the next time */
        bool tokens_lent;          /* by us, where tokens are counted */
    } process[INV_MAX_SLOTS];
};

/* open - before the first process joins the table.  Looks only where threads have cores of their own to
 *        sleep on: not in an emulated domain.
 * close - before the table goes. */
void rmd_blocked_open(struct rmd_domain *domain);
void rmd_blocked_close(struct rmd_domain *domain);
/* reconsider - a process has joined, left, or rung: begin to look, if there is reason to, or stop.
 * forget - the process in this slot is about to be removed. */
void rmd_blocked_reconsider(struct rmd_domain *domain);
void rmd_blocked_forget(struct rmd_domain *domain, unsigned slot);

#endif
