/* SPDX-License-Identifier: GPL-3.0-or-later */
/* domain_inside.h - what the files of this folder share. */
#ifndef RMD_DOMAIN_INSIDE_H
#define RMD_DOMAIN_INSIDE_H

#include "rmd/domain/domain.h"
#include "rmd/journal/events.h"

/* Uses this table.  The domain owns fd from then on, also if it fails.  0, or -1 with errno. */
int rmd_domain_use_table(struct rmd_domain *domain, struct inv_table *table, int fd);

/* A table that fits the process that is about to join, one of so many.  0, or -1 with errno. */
int rmd_domain_fit_table(struct rmd_domain *domain, unsigned expected);

/* Restores the constant part of the table if a process has overwritten it.  So no offset or count
 * that rmd uses is wrong. */
void rmd_domain_mend_head(struct rmd_domain *domain);

/* Adds up the core time that each process has owned until now, and shows it in its slot. */
void rmd_domain_settle(struct rmd_domain *domain);
void rmd_domain_show_owned(struct inv_slot *slot, const struct rmd_process *process);

/* Do cores have owners in the domain's table?  Else tokens are counted, or there is no table. */
static inline bool rmd_domain_owns_cores(const struct rmd_domain *d)
{
    return d->table && d->table->mode == INV_MODE_PINNED;
}

/* Lets the policy decide, and moves cores.  must: the members have changed, so cores move even if
 * little is gained. */
void rmd_domain_redistribute(struct rmd_domain *domain, bool must);

/* Decides if a constraint is new. */
void rmd_domain_answer_constraints(struct rmd_domain *domain);

/* Adds an event of this process (events.h). */
void rmd_domain_add_event(const struct rmd_domain *domain, const struct rmd_process *process,
                          enum inv_event_kind kind, unsigned before, unsigned after,
                          const char *text);

/* The report of the process in this slot as of now; end_ns 0: it lives. */
struct rmd_report rmd_domain_report_of(struct rmd_domain *domain, unsigned slot, uint64_t end_ns);

/* Notice the death of the process in this slot.  0, or -1 with errno. */
int rmd_domain_watch(struct rmd_domain *domain, unsigned slot, int pidfd);
void rmd_domain_unwatch(struct rmd_domain *domain, unsigned slot);

/* Removes the process in this slot.  rmd_domain_share divides the cores anew.  left: the process
 * lives, and goes on unmanaged. */
void rmd_domain_remove_member(struct rmd_domain *domain, unsigned slot, bool left);

/* Put the head of the table, the owners and the names of members right.  The number of cores and
 * slots where something was wrong. */
unsigned rmd_domain_repair(struct rmd_domain *domain);

/* rmd_domain_surplus - free tokens of the table beyond those that it should have, if no process is
 * taking or returning one.
 * rmd_domain_tokens_of - the tokens of a process, as it has written them, limited to a valid
 * number. */
int rmd_domain_surplus(struct rmd_domain *domain);
int rmd_domain_tokens_of(struct rmd_domain *domain, unsigned slot);

/* Logs that `what` was repaired, once a second at most. */
void rmd_domain_log_repaired(struct rmd_domain *domain, const char *what);

#endif
