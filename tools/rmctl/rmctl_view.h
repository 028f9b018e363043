/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_view.h - a core table as it was at one instant, checked, for status and top. */
#ifndef RMCTL_VIEW_H
#define RMCTL_VIEW_H

#include "libinvasive/table/scalability.h"
#include "libinvasive/table/table.h"

#include <jansson.h>

/* Owner or holder: a slot, or: */
enum { VIEW_NOBODY = -1, VIEW_AWAY = -2 };

struct view_core {
    int cpu, owner, holder, thread; /* cpu -1 emulated; thread 0 unknown */
    bool asked;                     /* back, by its owner */
    double speed;                   /* of the fastest core's; 0..1 */
};

struct view_process {
    unsigned slot, owned, held;
    int pid, rank, size;
    char program[INV_NAME_BYTES];
    bool wants;
    double workload;
    double delivered; /* by a core, as the process has measured; 0 not known */
    uint64_t lends, borrows, reclaims, evictions, reclaim_wait_ns, reclaim_wait_max_ns;
    uint64_t borrowed_ns, lent_used_ns, held_ns, useful_ns, wait_ns, waits;
    bool graph_valid;
    struct inv_scalability graph;
};

struct view {
    char socket[128];
    unsigned rmd_pid, ncores, reclaim_bound_us, nprocs;
    bool emulated, pinned; /* else tokens are counted */
    int free_tokens;
    uint64_t owner_moves, time_ns; /* CLOCK_MONOTONIC, when we looked */
    struct view_core core[INV_MAX_CORES];
    struct view_process process[INV_MAX_SLOTS];
};

void view_read(struct view *view, struct inv_table *table, const char *socket);
/* The process in this slot; NULL: there is none. */
const struct view_process *view_find_process(const struct view *view, int slot);

/* All of it in JSON; admin_snapshot_json adds the orders.  (rmctl_status.c) */
json_t *view_json(const struct view *view);

#endif
