/* SPDX-License-Identifier: GPL-3.0-or-later */
/* order.c - see order.h. */
#define _GNU_SOURCE
#include "rmd/domain/order.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"

void rmd_order_apply(const struct rmd_order *o, struct rmd_need *need)
{
    if (o->least && need->min_cores < o->least)
        need->min_cores = o->least;
    if (o->least && need->max_cores && need->max_cores < o->least)
        need->max_cores = o->least;
    if (o->most && (!need->max_cores || need->max_cores > o->most))
        need->max_cores = o->most;
    if (need->max_cores && need->min_cores > need->max_cores)
        need->min_cores = need->max_cores;
}

bool rmd_orders_any(const struct rmd_domain *d)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        const struct rmd_process *p = &d->procs[s];
        if (p->used && rmd_order_is_set(&p->order))
            return true;
    }
    return false;
}

/* A suspended process uses none of the cores to which it is pinned. */
static bool uses_pins(const struct rmd_process *p)
{
    return p->used && p->order.pinned && !p->suspended;
}

int rmd_pinned_to(const struct rmd_domain *d, unsigned core)
{
    if (d->grant[core] != RMD_GRANTED)
        return -1;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
        const struct rmd_process *p = &d->procs[s];
        if (uses_pins(p) && inv_set_has(p->order.cores, core))
            return (int)s;
    }
    return -1;
}

bool rmd_is_pinned(const struct rmd_domain *d, unsigned slot)
{
    const struct rmd_process *p = &d->procs[slot];
    if (!uses_pins(p))
        return false;
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] == RMD_GRANTED && inv_set_has(p->order.cores, c))
            return true;
    return false;
}

unsigned rmd_pinned_units(const struct rmd_domain *d)
{
    unsigned n = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (uses_pins(&d->procs[s]))
            for (unsigned c = 0; c < d->topology.ncores; c++)
                n += d->grant[c] == RMD_GRANTED && rmd_units_first(&d->units, c) &&
                     inv_set_has(d->procs[s].order.cores, c);
    return n;
}

bool rmd_pins_hold(const struct rmd_domain *d)
{
    unsigned others = 0;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        others += d->procs[s].used && !d->procs[s].suspended && !rmd_is_pinned(d, s);
    return rmd_pinned_units(d) + others <= d->units_granted;
}

void rmd_wake_core(struct rmd_domain *d, unsigned core)
{
    if (!d->resting[core])
        return;
    d->resting[core] = false;
    if (d->grant[core] == RMD_GRANTED)
        inv_core_admit(d->table, core);
}

void rmd_rest_unowned(struct rmd_domain *d)
{
    bool any = rmd_orders_any(d);
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        if (d->grant[c] != RMD_GRANTED || d->owner[c] >= 0)
            continue;
        if (any && !d->resting[c]) {
            d->resting[c] = true;
            inv_core_withdraw(d->table, c);
        } else if (!any && d->resting[c]) {
            rmd_wake_core(d, c);
            inv_core_offer(d->table, c, INV_MAX_SLOTS);
        }
    }
}

bool rmd_order_settled(struct rmd_domain *d, unsigned slot)
{
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        if (d->grant[c] != RMD_GRANTED)
            continue;
        /* relaxed: looked at again and again */
        inv_word w = atomic_load_explicit(&inv_core_at(d->table, c)->word, memory_order_relaxed);
        unsigned holder = inv_word_holder(w), name = slot + 1;
        bool concerns = holder == name || inv_word_owner(w) == name || d->resting[c];
        bool elsewhere = holder != INV_NOBODY && holder != inv_word_owner(w);
        if (concerns && elsewhere && inv_word_reclaim(w))
            return false;
    }
    return true;
}

/* A core that the process owns, to which a thread of it may be moved; -1 none. */
static int cpu_of(const struct rmd_domain *d, unsigned slot)
{
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->owner[c] == (int)slot)
            return d->topology.os_cpu[c];
    return -1;
}

void rmd_order_force(struct rmd_domain *d)
{
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        if (!d->resting[c] || d->grant[c] != RMD_GRANTED)
            continue;
        struct inv_core *core = inv_core_at(d->table, c);
        unsigned name = inv_word_holder(atomic_load_explicit(&core->word, memory_order_relaxed));
        if (name == INV_NOBODY)
            continue;
        pid_t tid = atomic_load_explicit(&core->holder_tid, memory_order_relaxed);
        inv_core_expel(d->table, c);
        if (name > INV_MAX_SLOTS || !d->procs[name - 1].used)
            continue;
        struct rmd_process *p = &d->procs[name - 1];
        rmd_log(RMD_INFO, "core %u taken from process %d by force", c, (int)p->pid);
        if (!d->topology.emulated)
            rmd_pin_thread(p->pid, p->pidfd.fd, tid, cpu_of(d, name - 1));
    }
}

/* --- orders of processes that go and come back */

void rmd_order_keep(struct rmd_domain *d, const struct rmd_process *p)
{
    if (!rmd_order_is_set(&p->order))
        return;
    d->left_orders[d->nleft_orders++ % RMD_LEFT_ORDERS] =
        (struct rmd_left_order){p->pid, p->start_ticks, p->order};
}

/* Removes cores to which another process has been pinned meanwhile from the order. */
static void remove_taken(const struct rmd_domain *d, struct rmd_order *order)
{
    bool any = false;
    for (unsigned c = 0; order->pinned && c < d->topology.ncores; c++) {
        for (unsigned s = 0; s < INV_MAX_SLOTS; s++) {
            const struct rmd_process *p = &d->procs[s];
            if (uses_pins(p) && inv_set_has(p->order.cores, c))
                inv_set_remove(order->cores, c);
        }
        any |= inv_set_has(order->cores, c);
    }
    order->pinned = any;
}

void rmd_order_yield_pins(const struct rmd_domain *d, struct rmd_process *p)
{
    inv_assert(p->suspended);
    remove_taken(d, &p->order);
}

void rmd_order_recall(struct rmd_domain *d, struct rmd_process *p)
{
    for (unsigned i = 0; i < RMD_LEFT_ORDERS; i++) {
        struct rmd_left_order *was = &d->left_orders[i];
        if (was->pid != p->pid || was->start_ticks != p->start_ticks)
            continue;
        struct rmd_order order = was->order;
        *was = (struct rmd_left_order){0};
        remove_taken(d, &order); /* it has none yet itself */
        p->order = order;
    }
}
