/* SPDX-License-Identifier: GPL-3.0-or-later */
/* formers.h - what a former rmd has stored for this one, by user (stored_fd.h), until the domains
 * take it over. */
#ifndef RMD_FORMERS_H
#define RMD_FORMERS_H

#include "rmd/restart/stored_fd.h"
#include "libinvasive/table/topology.h"

#include <sys/types.h>

struct rmd_formers {
    struct rmd_former {
        uid_t uid;
        int table, state; /* -1 none */
    } item[RMD_STORED_USERS];
    unsigned count;
    int orders; /* -1 none */
};

/* Owns the descriptor from then on. */
void rmd_formers_add(struct rmd_formers *formers, uid_t uid, enum rmd_stored_kind what, int fd);

/* Sets *topology to the cores of the former rmd's tables, if only CPUs that went offline or online
 * make a difference. */
void rmd_formers_cores(const struct rmd_formers *formers, struct inv_topology *topology,
                       const char *sys_root);

#endif
