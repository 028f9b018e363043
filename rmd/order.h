/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * order.h - what an operator or its user has said of one process (rmctl shrink, expand, pin):
 * constraints that go over what the process announces, and stay until they are taken back or it
 * ends, whatever policy decides.
 *
 * A process that is pinned has its cores to itself and is nothing that the policy divides among,
 * while that leaves others some.
 * In a domain where there is an order, cores that nobody owns rest: they are withdrawn as if they
 * were another domain's, for else who has been shrunk would borrow what it has just given up.
 */
#ifndef RMD_ORDER_H
#define RMD_ORDER_H

#include "control_protocol.h"
#include "policy.h"

#include <sys/types.h>

struct rmd_domain;
struct rmd_process;

struct rmd_order {
    unsigned least, most; /* cores; 0: nothing said */
    bool pinned;
    uint64_t cores[INV_CORE_WORDS]; /* to these, as far as they are granted */
};

/* What the process asks for, and what was said of it: need->min_cores and max_cores, in cores. */
void rmd_order_apply(const struct rmd_order *order, struct rmd_need *need);

/* Is anything said of a process of the domain? */
bool rmd_orders_any(const struct rmd_domain *domain);

/* The slot of the process that is pinned to this granted core; -1: none. */
int rmd_pinned_to(const struct rmd_domain *domain, unsigned core);
/* Is the process pinned, to at least one granted core? */
bool rmd_is_pinned(const struct rmd_domain *domain, unsigned slot);
/* So many units are pinned. */
unsigned rmd_pinned_units(const struct rmd_domain *domain);
/* Is there a unit for each process that is not pinned?  Else all pins wait until there is again: of
 * cores that another user got, or of processes that have joined, nobody knew when it was
 * ordered. */
bool rmd_pins_hold(const struct rmd_domain *domain);

/*
 * Who leaves, or calls exec, is the same process when it joins again.
 * rmd_order_keep   - it leaves: what was said of it, of the last RMD_LEFT_ORDERS, is kept.
 * rmd_order_recall - it has joined: that goes for it again, without cores that another one has been
 *                    pinned to meanwhile.
 */
void rmd_order_keep(struct rmd_domain *domain, const struct rmd_process *process);
void rmd_order_recall(struct rmd_domain *domain, struct rmd_process *process);

/* Owners have been decided: cores without one rest, or do so no longer. */
void rmd_rest_unowned(struct rmd_domain *domain);
/* The core is about to get an owner, or to leave. */
void rmd_wake_core(struct rmd_domain *domain, unsigned core);

/*
 * rmd_order_settled - has what was decided about this process come about?  Nobody computes on a
 * core that rests; it computes on none that is asked back; nobody else on one that it asks for.
 * rmd_order_force - nobody computes on cores that rest: the reclaim bound has passed.
 */
bool rmd_order_settled(struct rmd_domain *domain, unsigned slot);
void rmd_order_force(struct rmd_domain *domain);

#endif
