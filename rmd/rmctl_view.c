/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_view.c - everything here is statistics and snapshots: relaxed loads, no partner.
 *
 * Who looks at the table of another user (--user) must not trust it: what bounds an array is read
 * once, and names and graphs are copied before they are looked at.
 */
#define _GNU_SOURCE
#include "rmctl_view.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#include "now.h"

#define LOOK(member) atomic_load_explicit(&(member), memory_order_relaxed)

/* A member that is no atomic, since nobody changes it after rmd; another user's process may. */
static unsigned at_most(const volatile uint32_t *member, unsigned most)
{
    unsigned value = *member;
    return value < most ? value : most;
}

static int whose(unsigned name)
{
    return name == INV_NOBODY ? VIEW_NOBODY : name > INV_MAX_SLOTS ? VIEW_AWAY : (int)name - 1;
}

static void take_core(struct view_core *to, struct inv_core *from)
{
    inv_word w = LOOK(from->word);
    to->cpu = from->os_cpu;
    to->owner = whose(inv_word_owner(w));
    to->holder = whose(inv_word_holder(w));
    to->thread = to->holder >= 0 && LOOK(from->holder_tid) > 0 ? LOOK(from->holder_tid) : 0;
    to->asked = inv_word_reclaim(w) && to->holder >= 0;
}

static void take_counters(struct view_process *p, struct inv_counters *c)
{
#define TAKE(name) p->name = LOOK(c->name)
    TAKE(lends);
    TAKE(borrows);
    TAKE(reclaims);
    TAKE(evictions);
    TAKE(reclaim_wait_ns);
    TAKE(reclaim_wait_max_ns);
    TAKE(borrowed_ns);
    TAKE(lent_used_ns);
    TAKE(held_ns);
    TAKE(useful_ns);
    TAKE(wait_ns);
    TAKE(waits);
#undef TAKE
}

static void take_process(struct view *v, struct inv_table *t, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(t, slot);
    struct view_process *p = &v->process[v->nprocs++];
    uint64_t bits = LOOK(s->workload_bits);
    *p = (struct view_process){.slot = slot, .pid = s->pid, .rank = s->rank, .size = s->size};
    rmd_copy_name(p->program, s->program);
    memcpy(&p->workload, &bits, sizeof bits);
    for (unsigned c = 0; c < v->ncores; c++) {
        p->owned += v->core[c].owner == (int)slot;
        p->held += v->core[c].holder == (int)slot;
    }
    if (!v->pinned)
        p->held = LOOK(s->tokens) > 0 ? (unsigned)LOOK(s->tokens) : 0;
    p->wants = LOOK(t->wanting[slot / 64]) >> slot % 64 & 1;
    take_counters(p, &s->counters);
    p->graph_valid = inv_scalability_read(s, &p->graph);
}

void view_take(struct view *v, struct inv_table *t, const char *socket)
{
    v->time_ns = inv_now_ns();
    snprintf(v->socket, sizeof v->socket, "%s", socket);
    v->rmd_pid = LOOK(t->rmd_pid);
    unsigned nslots = at_most(&t->nslots, INV_MAX_SLOTS);
    v->ncores = at_most(&t->ncores, INV_MAX_CORES);
    v->reclaim_bound_us = t->reclaim_bound_us;
    v->emulated = t->emulated;
    v->pinned = t->mode == INV_MODE_PINNED;
    v->free_tokens = LOOK(t->free_tokens);
    v->owner_moves = LOOK(t->owner_moves);
    v->nprocs = 0;
    for (unsigned c = 0; c < v->ncores; c++)
        take_core(&v->core[c], inv_core_at(t, c));
    for (unsigned s = 0; s < nslots; s++)
        /* acquire: partner is rmd's release, after it filled the slot */
        if (atomic_load_explicit(&inv_slot_at(t, s)->state, memory_order_acquire) ==
            INV_SLOT_LIVE)
            take_process(v, t, s);
}

const struct view_process *view_of(const struct view *v, int slot)
{
    for (unsigned i = 0; i < v->nprocs; i++)
        if ((int)v->process[i].slot == slot)
            return &v->process[i];
    return NULL;
}
