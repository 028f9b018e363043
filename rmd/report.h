/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.h - what remains of a process for `invade --report` and `rmctl`. */
#ifndef RMD_REPORT_H
#define RMD_REPORT_H

#include "domain.h"

/* The report of the process in this slot as of now; end_ns 0: it lives. */
struct inv_report rmd_report_of(struct rmd_domain *domain, unsigned slot, uint64_t end_ns);

/* Keep one; the oldest goes when there are very many. */
void rmd_reports_add(struct rmd_reports *reports, const struct inv_report *report);

#endif
