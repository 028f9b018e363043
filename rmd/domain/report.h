/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.h - what remains of a process for `invade --report` and `rmctl`. */
#ifndef RMD_REPORT_H
#define RMD_REPORT_H

#include "rmd/domain/domain.h"

/* The report of the process in this slot as of now; end_ns 0: it lives. */
struct rmd_report rmd_report_of(struct rmd_domain *domain, unsigned slot, uint64_t end_ns);

/* Makes a report of a remote one: times are at most now_ns, names end and are printable.  False: it
 * is malformed, or memory is short. */
bool rmd_report_from_remote(struct rmd_report *report, const struct inv_remote_report *remote,
                            size_t bytes, uint64_t now_ns);

/* Without its record when memory is short. */
struct rmd_report rmd_report_copy(const struct rmd_report *report);

/* Keep one, with its record.  The oldest goes when there are very many, and the oldest records when
 * they take much memory: of this domain, or of the one that has most when all together do.  The
 * domain's reports stay where they are in memory until rmd_reports_free. */
void rmd_reports_add(struct rmd_reports *reports, struct rmd_report *report);
void rmd_reports_free(struct rmd_reports *reports);

/* Nothing is left of what the process in this slot has written into its record. */
void rmd_record_clear(struct rmd_domain *domain, unsigned slot);

#endif
