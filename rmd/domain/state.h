/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * state.h - what the next rmd has to know of a domain, in memory that outlives this one.
 *
 * Each core table has a second memory file beside it, which only rmd can open.  It is stored with
 * the table (stored_fd.h).  So an rmd that starts after a kill, at whatever instruction, knows the
 * members and need not trust the table, which they can write to.  Two copies take turns: the valid
 * copy is never written.
 */
#ifndef RMD_STATE_H
#define RMD_STATE_H

#include "libinvasive/table/table.h"

#include <sys/types.h>

enum {
    /* increases with every change of this file, and of the messages of fd_holder.c */
    RMD_STATE_VERSION = 8,
    /* of a table's head, which does not change after its creation */
    RMD_HEAD_BYTES = offsetof(struct inv_table, wanting),
    RMD_STATE_GROUP = 512, /* bytes; a group whose path is longer is not saved */
};
#define RMD_STATE_MAGIC UINT64_C(0x6574617473646d72) /* "rmdstate" */

struct rmd_state_process {
    int32_t pid; /* 0: the slot is free */
    int32_t rank, size, local_rank, local_size;
    int32_t loan; /* tokens of it that others have while it is stopped */
    uint32_t stopped, wanted;
    uint32_t locks, suspended;
    uint32_t least, most; /* cores, by order; order.h */
    uint32_t priority, unused;
    uint64_t start_ticks, job, mark, launch, start_ns, settled_ns, owned_ns;
    uint64_t energy_uj;
};

struct rmd_state_copy {
    uint32_t joined, expected, tokens, unused;
    uint64_t jobs, newest_job, newest_launch, moves;
    int32_t owner[INV_MAX_CORES];
    int16_t pinned_to[INV_MAX_CORES]; /* slot, -1: no order pins a process to the core */
    struct rmd_state_process process[INV_MAX_SLOTS];
};

struct rmd_state {
    uint64_t magic;
    uint32_t version, table_version;
    uint64_t bytes;
    unsigned char head[RMD_HEAD_BYTES];
    uint64_t asked; /* hash of the settings from which the cores follow: topology.h */
    int32_t os_cpu[INV_MAX_CORES];
    uint8_t apart[INV_MAX_CORES];
    _Atomic uint32_t valid; /* index of the valid copy */
    /* enum rmd_grant.  Not in the copies: it is saved before the user gets a granted core, and
     * before another user gets a revoked one */
    _Atomic unsigned char grant[INV_MAX_CORES];
    /* The control group of each member before it entered its user's cpuset.  Not in the copies: it
     * is saved before the process moves, and valid from then on. */
    _Atomic unsigned char grouped[INV_MAX_SLOTS];
    char group[INV_MAX_SLOTS][RMD_STATE_GROUP];
    struct rmd_state_copy copy[2];
};

struct rmd_domain;

/* Makes the state of the domain's new table: d->state and d->state_fd.  0, or -1 with errno. */
int rmd_state_make(struct rmd_domain *domain);
/* Unmaps the state and closes its descriptor. */
void rmd_state_drop(struct rmd_domain *domain);

/* These save the domain as it is now: all of it; the grant of one core; the head of the table,
 * after rmd has changed it.  The caller holds the loop's turn.  Without a state they do nothing. */
void rmd_state_save(struct rmd_domain *domain);
void rmd_state_save_grant(struct rmd_domain *domain, unsigned core);
void rmd_state_head(struct rmd_domain *domain);

/* Saves the control group of the process in a slot; NULL, or a path that is too long: removes
 * it. */
void rmd_state_set_group(struct rmd_domain *domain, unsigned slot, const char *group);
/* The saved group; NULL: none. */
const char *rmd_state_saved_group(const struct rmd_domain *domain, unsigned slot);

/* Maps the state of a former rmd.  The descriptor stays the caller's.  NULL with errno; EPROTO: it
 * is no state, or of another version.  All values are within bounds. */
struct rmd_state *rmd_state_map(int fd);
void rmd_state_unmap(struct rmd_state *state);

/* Number of processes in the state that still live. */
unsigned rmd_state_living(const struct rmd_state *state);
/* Does this process still live, as the same process? */
bool rmd_state_lives(const struct rmd_state_process *process);

#endif
