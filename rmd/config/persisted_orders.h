/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * persisted_orders.h - orders that outlive this rmd: drained cores, limits of users, policies
 * that were chosen, and a limit of temperature.  (Orders about one process are in its domain's state.h.)  With them, the
 * settings of the machine before the power cap, so that the next rmd can restore them.
 *
 * Orders are in a memory file, which is stored with the core tables (stored_fd.h).  There is none
 * while there is no order and no power cap.  A core is stored as its CPU number and a policy as its
 * name, since the next rmd may have another configuration.
 */
#ifndef RMD_PERSISTED_ORDERS_H
#define RMD_PERSISTED_ORDERS_H

#include "rmd/policy/policy.h"
#include "rmd/power/power.h"
#include "libinvasive/table/table.h"
#include "libinvasive/table/topology.h"
#include "rmd/config/units.h"

#include <stdbool.h>

enum {
    RMD_PERSISTED_VERSION = 3,
    RMD_PERSISTED_USERS = 1024,
    RMD_PERSISTED_NAME = 24, /* bytes of a policy's name, its end included */
    RMD_PERSISTED_OFF = 1, /* a threshold: no limit of temperature, whatever is configured */
};

/* The chosen policy, "" none, and the configured one at that time.  A configuration that has
 * changed since then overrides the choice. */
struct rmd_persisted_policy {
    char chosen[RMD_PERSISTED_NAME], configured[RMD_PERSISTED_NAME];
};

struct rmd_persisted_user {
    uint32_t uid;
    uint32_t cores, job_cores; /* limits by an operator; 0: none, INV_MAX_CORES: all cores */
    uint32_t own_cores, own_job_cores; /* limits by the user itself */
    struct rmd_persisted_policy policy;
};

struct rmd_persisted_orders {
    uint32_t nusers, ndrained, emulated;
    /* Degrees Celsius: by an operator, 0 none; and the configured limit at that time, as of policies. */
    uint32_t threshold, configured_threshold;
    struct rmd_persisted_policy policy; /* root's choice, for users without one */
    int32_t drained[INV_MAX_CORES];     /* CPU numbers; of emulated cores, core numbers */
    struct rmd_persisted_user user[RMD_PERSISTED_USERS];
};

/* The memory file.  Two copies take turns: the valid copy is never written. */
struct rmd_persisted_memory {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t valid; /* index of the valid copy */
    uint32_t bytes;
    _Atomic uint32_t nknobs;
    struct rmd_persisted_orders copy[2];
    struct rmd_power_knob knob[RMD_POWER_KNOBS];
};

/* What rmd has persisted.  Zeros but for `store` at first.  Only rmd's main thread uses it. */
struct rmd_persisted {
    struct rmd_persisted_memory *memory; /* NULL: no order and no power cap */
    int fd;                              /* of `memory` */
    /* Called with the descriptor when the memory is new, and with -1 when no order and no power cap
     * is left. */
    void (*store)(int fd);
};

/*
 * rmd_persisted_save - replaces the persisted orders.  They are complete at any time, whenever rmd
 * is killed.
 */
void rmd_persisted_save(struct rmd_persisted *persisted, const struct rmd_persisted_orders *now);

/*
 * rmd_persisted_load - takes over the orders of a former rmd, before any save.  Owns fd from then
 * on, also if it fails.  Returns NULL with errno; EPROTO: another version, or no orders.  Else all
 * values are within bounds, and unchanged until the next save.
 */
const struct rmd_persisted_orders *rmd_persisted_load(struct rmd_persisted *persisted,
                                                      int fd);

/*
 * rmd_persisted_save_power - replaces the settings that the end of the power cap restores; count 0:
 *                            none.  The machine must have these settings at the time of the call.
 * rmd_persisted_power - those settings, by a former rmd after rmd_persisted_load; returns their
 * number.
 */
void rmd_persisted_save_power(struct rmd_persisted *persisted, const struct rmd_power_knob *knob,
                              unsigned count);
unsigned rmd_persisted_power(const struct rmd_persisted *persisted,
                             const struct rmd_power_knob **knob);

/*
 * rmd_persisted_policy - the entry for a policy chosen (NULL: none) in place of the configured one.
 * rmd_persisted_chosen - the policy of such an entry.  NULL: none, or the configuration has changed
 *                        since then, or no policy has that name.
 * rmd_persisted_set_drained - enters the drained cores.
 * rmd_persisted_get_drained - sets drained[] of each persisted core, and of the cores of its unit.
 *                             False: there is none.
 */
struct rmd_persisted_policy rmd_persisted_policy(const struct rmd_policy *chosen,
                                                 const struct rmd_policy *configured);
const struct rmd_policy *rmd_persisted_chosen(const struct rmd_persisted_policy *was,
                                              const struct rmd_policy *configured);
void rmd_persisted_set_drained(struct rmd_persisted_orders *orders,
                               const struct inv_topology *topology, const bool drained[]);
bool rmd_persisted_get_drained(const struct rmd_persisted_orders *was,
                               const struct inv_topology *topology, const struct rmd_units *units,
                               bool drained[]);

#endif
