/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_engine.h - what simulate_engine.c, where processes compute and lend, and
 * simulate_manager.c, where owners are decided, have in common.  Private to the two.
 *
 * A computing process holds cores, its own ones first.  A free core goes to the computing process
 * that holds the fewest cores and can use one more.  This is like in a table where each process
 * takes the next free core that it sees.  Cores are only counted here; which ones they are matters
 * to the placement only.  Of cores with speeds a process has its own first, and what it borrows has the
 * mean speed of all.  A waiting process lends its cores.  If its last waits were shorter than
 * lending takes, it spins that long first.
 */
#ifndef RMD_SIMULATE_ENGINE_H
#define RMD_SIMULATE_ENGINE_H

#include "tools/rmctl/simulate/simulate.h"
#include "tools/rmctl/simulate/simulate_heap.h"
#include "libinvasive/base/steady.h"

enum sim_state { SIM_ABSENT, SIM_COMPUTES, SIM_WAITS, SIM_ENDED };

struct sim_actor {
    struct sim_cursor at;
    enum sim_state state;
    unsigned owned, held, want; /* want: more are of no use for this piece */
    unsigned fresh;             /* owned cores that it has not computed on yet */
    double remaining, rate;     /* seconds on one core of full speed; done per second */
    double speed;               /* of the cores that it owns, on average */
    double settled;             /* time of `remaining` */
    double penalty;             /* core seconds to be lost */
    double began;               /* the piece */
    bool touched;               /* held cores have changed now */
    bool spins;                 /* waits, and keeps its cores until its event */
    double ended, wait_s;       /* when the last piece was done; mean of the last waits */
    unsigned counted, nodes;    /* simulate_manager.c */

    double sample_work, sample_s;
    struct inv_steady steady; /* work of a piece, as it was told */
    unsigned graph; /* of the last piece begun */
};

struct sim_engine {
    const struct sim_world *world;
    const struct rmd_policy *policy; /* NULL: owners stay */
    struct sim_result *result;
    struct sim_actor *actor;
    unsigned *busy; /* by job: members that have not done this round's piece */
    double now;
    unsigned pool; /* cores without a holder */
    double mean_speed; /* of all cores */
    struct sim_heap events, hungry, rich;
    unsigned *touched, ntouched;
    unsigned left; /* processes not ended */

    double decide_at; /* HUGE_VAL: nothing to decide */
    bool must;        /* members have come or gone */
    int *owner;       /* by core */
    struct rmd_need *needs;
    unsigned *target, *member;
    struct rmd_placed *placed;
    void *arena;
};

/* (simulate_engine.c) The process owns `cores` from now on.  Call it for those that lose cores
 * first. */
void sim_own(struct sim_engine *e, unsigned process, unsigned cores);
/* (simulate_manager.c) */
void sim_manager_begin(struct sim_engine *e);
void sim_manager_end(struct sim_engine *e);
void sim_news(struct sim_engine *e, bool must);
/* What a process announces: the work of a piece when it is done; or before it. */
void sim_measured(struct sim_engine *e, unsigned process, double work, double seconds);
void sim_foreseen(struct sim_engine *e, unsigned process, double work);
void sim_decide(struct sim_engine *e);

#endif
