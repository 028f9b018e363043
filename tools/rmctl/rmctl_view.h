/* SPDX-License-Identifier: GPL-3.0-or-later */
/* rmctl_view.h - a checked copy of a core table at one instant, for status and top. */
#ifndef RMCTL_VIEW_H
#define RMCTL_VIEW_H

#include "libinvasive/table/scalability.h"
#include "libinvasive/table/table.h"

#include <jansson.h>

/* Owner or holder: a slot, or no process, or (of a core that is away) no process of this domain. */
enum { VIEW_NOBODY = -1, VIEW_AWAY = -2 };

struct view_core {
    int cpu, owner, holder, thread; /* cpu -1 emulated; thread 0 unknown */
    bool asked;                     /* the owner asks for it */
    double speed;                   /* as a part of the fastest core's; 0..1 */
};

struct view_process {
    unsigned slot, owned, held;
    int pid, rank, size;
    char program[INV_NAME_BYTES];
    bool wants;
    double workload;
    bool workload_measured;
    double delivered; /* what a core delivers, as the process has measured; 0: unknown */
    uint64_t lends, borrows, reclaims, evictions, reclaim_wait_ns, reclaim_wait_max_ns;
    uint64_t borrowed_ns, lent_used_ns, held_ns, useful_ns, wait_ns, waits;
    bool graph_valid;
    struct inv_scalability graph;
};

struct view {
    char socket[128];
    unsigned rmd_pid, ncores, reclaim_bound_us, nprocs;
    bool emulated, pinned; /* pinned false: anonymous mode */
    int free_tokens;
    uint64_t owner_moves, time_ns; /* time_ns: CLOCK_MONOTONIC of the copy */
    struct view_core core[INV_MAX_CORES];
    struct view_process process[INV_MAX_SLOTS];
};

/* Copies the table of the rmd at `socket`. */
void view_read(struct view *view, struct inv_table *table, const char *socket);
/* The process in this slot; NULL: there is none. */
const struct view_process *view_find_process(const struct view *view, int slot);

/* The view as JSON; admin_snapshot_json adds the orders.  (rmctl_status.c) */
json_t *view_json(const struct view *view);

#endif
