/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_view.c - see rmctl_view.h.  All loads are relaxed and have no partner: they are statistics
 * and snapshots.
 *
 * The table of another user (--user) is not trusted: a number that bounds an array is read once,
 * and names and graphs are copied before they are used.
 */
#define _GNU_SOURCE
#include "tools/rmctl/rmctl_view.h"
#include "rmd/loop/text.h"

#include <stdio.h>
#include <string.h>

#include "libinvasive/base/now.h"

#define LOAD(member) atomic_load_explicit(&(member), memory_order_relaxed)

/* Loads a member that is no atomic, since it does not change after rmd has set it.  Another user's
 * process may change it nevertheless. */
static unsigned load_bounded(const volatile uint32_t *member, unsigned most)
{
    unsigned value = *member;
    return value < most ? value : most;
}

static int slot_of_name(unsigned name)
{
    return name == INV_NOBODY ? VIEW_NOBODY : name > INV_MAX_SLOTS ? VIEW_AWAY : (int)name - 1;
}

static void read_core(struct view_core *to, struct inv_core *from)
{
    inv_word w = LOAD(from->word);
    to->cpu = from->os_cpu;
    to->owner = slot_of_name(inv_word_owner(w));
    to->holder = slot_of_name(inv_word_holder(w));
    to->thread = to->holder >= 0 && LOAD(from->holder_tid) > 0 ? LOAD(from->holder_tid) : 0;
    to->asked = inv_word_reclaim(w) && to->holder >= 0;
    to->speed = (double)from->speed / INV_WHOLE_SPEED;
}

static void read_counters(struct view_process *p, struct inv_counters *c)
{
#define COPY(name) p->name = LOAD(c->name)
    COPY(lends);
    COPY(borrows);
    COPY(reclaims);
    COPY(evictions);
    COPY(reclaim_wait_ns);
    COPY(reclaim_wait_max_ns);
    COPY(borrowed_ns);
    COPY(lent_used_ns);
    COPY(held_ns);
    COPY(useful_ns);
    COPY(wait_ns);
    COPY(waits);
#undef COPY
}

static void read_process(struct view *v, struct inv_table *t, unsigned slot)
{
    struct inv_slot *s = inv_slot_at(t, slot);
    struct view_process *p = &v->process[v->nprocs++];
    uint64_t bits = LOAD(s->workload_bits);
    *p = (struct view_process){.slot = slot, .pid = s->pid, .rank = s->rank, .size = s->size};
    rmd_copy_name(p->program, s->program);
    memcpy(&p->workload, &bits, sizeof bits);
    p->workload_measured = LOAD(s->workload_measured);
    bits = LOAD(s->delivered_bits);
    memcpy(&p->delivered, &bits, sizeof bits);
    for (unsigned c = 0; c < v->ncores; c++) {
        p->owned += v->core[c].owner == (int)slot;
        p->held += v->core[c].holder == (int)slot;
    }
    p->held += LOAD(s->tokens) > 0 ? (unsigned)LOAD(s->tokens) : 0;
    p->wants = LOAD(t->wanting[slot / 64]) >> slot % 64 & 1;
    read_counters(p, &s->counters);
    p->graph_valid = inv_scalability_read(s, &p->graph);
}

void view_read(struct view *v, struct inv_table *t, const char *socket)
{
    v->time_ns = inv_now_ns();
    snprintf(v->socket, sizeof v->socket, "%s", socket);
    v->rmd_pid = LOAD(t->rmd_pid);
    unsigned nslots = load_bounded(&t->nslots, INV_MAX_SLOTS);
    v->ncores = load_bounded(&t->ncores, INV_MAX_CORES);
    v->reclaim_bound_us = t->reclaim_bound_us;
    v->emulated = t->emulated;
    v->pinned = t->mode == INV_MODE_PINNED;
    v->free_tokens = LOAD(t->free_tokens);
    v->owner_moves = LOAD(t->owner_moves);
    v->nprocs = 0;
    for (unsigned c = 0; c < v->ncores; c++)
        read_core(&v->core[c], inv_core_at(t, c));
    for (unsigned s = 0; s < nslots; s++)
        /* acquire: partner is rmd's release, after it filled the slot */
        if (atomic_load_explicit(&inv_slot_at(t, s)->state, memory_order_acquire) ==
            INV_SLOT_LIVE)
            read_process(v, t, s);
}

const struct view_process *view_find_process(const struct view *v, int slot)
{
    for (unsigned i = 0; i < v->nprocs; i++)
        if ((int)v->process[i].slot == slot)
            return &v->process[i];
    return NULL;
}
