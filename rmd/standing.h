/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * standing.h - what operators and users have ordered and the next rmd has to keep to: which cores
 * are drained, limits of users, and policies that were chosen.  (What was ordered of a process is
 * in its domain's state.h.)  And what the power cap has changed on the machine, which is to be as
 * before when the cap ends, whichever rmd that sees.
 *
 * It is a piece of memory as state.h's, kept with the tables; there is none while nothing is
 * ordered or capped. Cores have their CPU numbers in it and policies their names, since the next rmd may have
 * another configuration.
 */
#ifndef RMD_STANDING_H
#define RMD_STANDING_H

#include "policy.h"
#include "power.h"
#include "table.h"
#include "topology.h"
#include "units.h"

#include <stdbool.h>

enum {
    RMD_STANDING_VERSION = 2,
    RMD_STANDING_USERS = 1024,
    RMD_STANDING_NAME = 24, /* bytes of a policy's name, its end included */
};

/* A policy that was chosen, "" none, and what the configuration said then: when it says something
 * else now, that is the last word. */
struct rmd_standing_policy {
    char chosen[RMD_STANDING_NAME], configured[RMD_STANDING_NAME];
};

struct rmd_standing_user {
    uint32_t uid;
    uint32_t cores, job_cores;         /* by an operator; 0 nothing said, INV_MAX_CORES all */
    uint32_t own_cores, own_job_cores; /* by itself */
    struct rmd_standing_policy policy;
};

struct rmd_standing {
    uint32_t nusers, ndrained, emulated, unused;
    struct rmd_standing_policy policy; /* root's, for those who have none of their own */
    int32_t drained[INV_MAX_CORES];    /* CPUs; where cores are emulated, cores */
    struct rmd_standing_user user[RMD_STANDING_USERS];
};

/*
 * rmd_standing_save - note this in place of what was noted before.  Never half written, whenever
 * rmd is killed.  `keep` gets the descriptor of memory that is new, or -1: nothing is ordered or
 * capped any more.
 */
void rmd_standing_save(const struct rmd_standing *now, void (*keep)(int fd));

/*
 * rmd_standing_take - what a former rmd has noted, which is ours to go on with; before any save.
 * The descriptor is ours in any case.  NULL with errno; EPROTO: it is of another version, or is
 * none.  Else everything in it is within bounds, and stays as it is until the next save.
 */
const struct rmd_standing *rmd_standing_take(int fd);

/*
 * rmd_standing_note_power - note in place of what was noted before that these shall be put back,
 *                           0: none.  They must be as they were when this is called, before and
 *                           after.  `keep` as above.
 * rmd_standing_power - how many are noted, by a former rmd after rmd_standing_take, and which.
 */
void rmd_standing_note_power(const struct rmd_power_knob *knob, unsigned count,
                             void (*keep)(int fd));
unsigned rmd_standing_power(const struct rmd_power_knob **knob);

/*
 * rmd_standing_policy - how it is noted that somebody has chosen a policy (NULL: nobody has) over
 *                       the configuration's.
 * rmd_standing_chosen - the policy in such a note; NULL also where the configuration says another
 *                       one than it did then, or there is none of that name.
 * rmd_standing_drain - note the cores that are drained.
 * rmd_standing_drained - drained[] of each core that has been, and of those of its unit, becomes
 *                        true.  False: there is none.
 */
struct rmd_standing_policy rmd_standing_policy(const struct rmd_policy *chosen,
                                               const struct rmd_policy *configured);
const struct rmd_policy *rmd_standing_chosen(const struct rmd_standing_policy *was,
                                             const struct rmd_policy *configured);
void rmd_standing_drain(struct rmd_standing *standing, const struct inv_topology *topology,
                        const bool drained[]);
bool rmd_standing_drained(const struct rmd_standing *was, const struct inv_topology *topology,
                          const struct rmd_units *units, bool drained[]);

#endif
