/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * simulate_engine.h - shared by simulate_engine.c, where processes compute and lend, and
 * simulate_manager.c, where owners are decided.  Only for these two.
 *
 * A computing process holds cores, its own ones first.  A free core goes to the computing process
 * that holds the fewest cores and can use one more, as in a core table where each process takes the
 * next free core that it sees.  Cores are only counted here: only the placement knows their
 * numbers.  If cores have speeds, a process computes on its own cores first, and borrowed ones have
 * the mean speed of all.  A waiting process lends its cores.  If its last waits were shorter than
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
    unsigned owned, held, want; /* numbers of cores; want: the most that this piece can use */
    unsigned fresh;             /* owned cores that it has not computed on yet */
    double remaining, rate;     /* work left, seconds on one core of full speed; work done per
                                   second */
    double speed;               /* mean speed of the cores that it owns */
    double settled;             /* time for which `remaining` was computed */
    double penalty;             /* core seconds that are still to be lost */
    double began;               /* when the piece began */
    bool touched;               /* its held cores have changed at this time */
    bool spins;                 /* it waits, and keeps its cores until its event */
    double ended, wait_s;       /* when the last piece was done; mean of the last waits */
    unsigned counted, nodes;    /* for simulate_manager.c */

    double sample_work, sample_s;
    struct inv_steady steady; /* announced work of a piece */
    unsigned graph; /* of the last piece that has begun */
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
    unsigned left; /* number of processes that have not ended */

    double decide_at; /* HUGE_VAL: nothing to decide */
    bool must;        /* members have come or gone */
    int *owner;       /* by core */
    struct rmd_need *needs;
    unsigned *target, *member;
    struct rmd_placed *placed;
    void *arena;
};

/* In simulate_engine.c: the process owns `cores` cores from now on.  Call it first for processes
 * that lose cores. */
void sim_own(struct sim_engine *e, unsigned process, unsigned cores);
/* In simulate_manager.c: allocates and frees the manager's part of the engine. */
void sim_manager_begin(struct sim_engine *e);
void sim_manager_end(struct sim_engine *e);
/* Something has changed, so owners are decided anew after costs.decision_s.  must: processes have
 * come or gone, so cores move even if little is gained. */
void sim_news(struct sim_engine *e, bool must);
/* A process has measured that a piece took `seconds`; or it announces the work of a piece before it
 * begins. */
void sim_measured(struct sim_engine *e, unsigned process, double work, double seconds);
void sim_foreseen(struct sim_engine *e, unsigned process, double work);
/* Decides the owners at the present time. */
void sim_decide(struct sim_engine *e);

#endif
