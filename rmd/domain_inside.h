/* SPDX-License-Identifier: GPL-3.0-or-later */
/* domain_inside.h - declarations that check.c, domain.c, member.c and takeover.c share. */
#ifndef RMD_DOMAIN_INSIDE_H
#define RMD_DOMAIN_INSIDE_H

#include "domain.h"
#include "events.h"

/* Go on with this table, whose descriptor is the domain's from here on in any case.  0, or -1 with
 * errno. */
int rmd_domain_use_table(struct rmd_domain *domain, struct inv_table *table, int fd);

/* A table that fits the process that is about to join, one of so many.  0, or -1 with errno. */
int rmd_domain_fit_table(struct rmd_domain *domain, unsigned expected);

/* The part of the table that nobody may write after its creation is put right when
 * somebody did, so that no offset or count that we use is ever wrong. */
void rmd_domain_mend_head(struct rmd_domain *domain);

/* Add up the core time that everybody has owned until now, and show it. */
void rmd_domain_settle(struct rmd_domain *domain);
void rmd_domain_show_owned(struct inv_slot *slot, const struct rmd_process *process);

/* Let the policy decide and do what it says.  `must`: the members have changed, so there
 * is no question whether it is worth it. */
void rmd_domain_redistribute(struct rmd_domain *domain, bool must);

/* Adds an event of this process (events.h). */
void rmd_domain_add_event(const struct rmd_domain *domain, const struct rmd_process *process,
                          enum inv_event_kind kind, unsigned before, unsigned after,
                          const char *text);

/* Notice the death of the process in this slot.  0, or -1 with errno. */
int rmd_domain_watch(struct rmd_domain *domain, unsigned slot, int pidfd);
void rmd_domain_unwatch(struct rmd_domain *domain, unsigned slot);

/* Removes the process in this slot.  rmd_domain_share divides the cores anew.  left: the process
 * lives, and goes on unmanaged. */
void rmd_domain_remove_member(struct rmd_domain *domain, unsigned slot, bool left);

/* Put the head of the table, the owners and the names of members right.  The number of cores and
 * slots where something was wrong. */
unsigned rmd_domain_repair(struct rmd_domain *domain);

/* Tokens that the table has free and should not have, were nobody taking or returning one now, and
 * those of a process, which writes them itself, within reason. */
int rmd_domain_surplus(struct rmd_domain *domain);
int rmd_domain_tokens_of(struct rmd_domain *domain, unsigned slot);

/* Logs that `what` was repaired, once a second at most. */
void rmd_domain_log_repaired(struct rmd_domain *domain, const char *what);

#endif
