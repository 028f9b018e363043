/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.h - what remains of a process for `invade --report` and `rmctl`. */
#ifndef RMD_REPORT_H
#define RMD_REPORT_H

#include "libinvasive/table/protocol.h"

/* The report of a process, and its record at its end. */
struct rmd_report {
    struct inv_report report;
    struct inv_record *record; /* report.record_bytes bytes; NULL when that is 0 */
};

/* Reports of the ended processes of one domain. */
struct rmd_reports {
    struct rmd_report *items; /* oldest first */
    unsigned count, capacity;
    size_t record_bytes; /* of all of them */
    uint64_t forgotten;  /* of which there were before the oldest */
    bool holds;          /* it is in a list of kept ones, as is */
    struct rmd_reports *next;
};

/* Of all domains: those that have reports, and what their records take.  Zeros at first.  Only the
 * holder of the loop's turn reads and writes it. */
struct rmd_reports_kept {
    struct rmd_reports *holders;
    uint64_t bytes;
};

/* The report of the process in this slot as of now.
 *   known  what rmd knows itself: the pid, whether it lives, its times and owned cores.  All else
 *          is from the table, where the process may have written anything */
struct rmd_report rmd_report_of(struct inv_table *table, unsigned slot,
                                const struct inv_report *known);

/* Makes a report of a remote one: times are at most now_ns, names end and are printable.  False: it
 * is malformed, or memory is short. */
bool rmd_report_from_remote(struct rmd_report *report, const struct inv_remote_report *remote,
                            size_t bytes, uint64_t now_ns);

/* Without its record when memory is short. */
struct rmd_report rmd_report_copy(const struct rmd_report *report);

/* Keep one, with its record.  The oldest goes when there are very many, and the oldest records when
 * they take much memory: of this domain, or of the one that has most when all together do.  The
 * domain's reports stay where they are in memory until rmd_reports_free. */
void rmd_reports_add(struct rmd_reports_kept *kept, struct rmd_reports *reports,
                     struct rmd_report *report);
void rmd_reports_free(struct rmd_reports_kept *kept, struct rmd_reports *reports);

/* Nothing is left of what the process in this slot has written into its record. */
void rmd_record_clear(struct inv_table *table, int table_fd, unsigned slot);

#endif
