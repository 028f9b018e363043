/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * order.h - orders of an operator or user about one process (rmctl shrink, expand, pin).  They
 * override the constraints that the process announces, and hold until they are taken back or the
 * process ends, with every policy.
 *
 * A pinned process owns the cores to which it is pinned, and the policy does not divide these.  No
 * pin holds while fewer units are left than there are processes that are not pinned.
 *
 * In a domain with an order, cores without an owner rest: they are withdrawn like cores of another
 * domain.  Else a shrunk process would borrow the cores that it has just given up.
 */
#ifndef RMD_ORDER_H
#define RMD_ORDER_H

#include "rmd/domain/domain.h"

struct rmd_process;

/* Applies the order to the process's constraint: need->min_cores and max_cores, in cores. */
void rmd_order_apply(const struct rmd_order *order, struct rmd_need *need);

static inline bool rmd_order_is_set(const struct rmd_order *order)
{
    return order->least || order->most || order->pinned;
}

/* Is there an order for a process of the domain? */
bool rmd_orders_any(const struct rmd_domain *domain);

/* The slot of the process that is pinned to this granted core; -1: none. */
int rmd_pinned_to(const struct rmd_domain *domain, unsigned core);
/* Is the process pinned, to at least one granted core? */
bool rmd_is_pinned(const struct rmd_domain *domain, unsigned slot);
/* The number of units to which processes are pinned. */
unsigned rmd_pinned_units(const struct rmd_domain *domain);
/* Is there a unit for each process that is not pinned?  Else no pin holds until there is.  Another
 * user may have got cores since the order, or processes may have joined. */
bool rmd_pins_hold(const struct rmd_domain *domain);

/*
 * A process that leaves, or calls exec, and joins again is the same process.
 * rmd_order_keep   - it leaves: remembers its order, as one of the last RMD_LEFT_ORDERS.
 * rmd_order_recall - it has joined: restores its order, without cores to which another process has
 *                    been pinned meanwhile.
 */
void rmd_order_keep(struct rmd_domain *domain, const struct rmd_process *process);
void rmd_order_recall(struct rmd_domain *domain, struct rmd_process *process);
/* A suspended process is about to be resumed: removes the cores to which another process has been
 * pinned meanwhile from its order. */
void rmd_order_yield_pins(const struct rmd_domain *domain, struct rmd_process *process);

/* After owners have been decided.  In a domain with an order, granted cores without an owner rest
 * from now on; in a domain without one, such cores stop resting and are offered to processes. */
void rmd_rest_unowned(struct rmd_domain *domain);
/* The core rests no longer, since it is about to get an owner or to leave the domain. */
void rmd_wake_core(struct rmd_domain *domain, unsigned core);

/*
 * rmd_order_settled - has the last decision about this process taken effect?  No process computes
 *                     on a resting core; this process computes on no core that is asked back; and
 *                     no other process on a core that this one asks for.
 * rmd_order_force - the reclaim bound has passed: takes resting cores from their holders.
 */
bool rmd_order_settled(struct rmd_domain *domain, unsigned slot);
void rmd_order_force(struct rmd_domain *domain);

#endif
