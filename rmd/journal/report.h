/* SPDX-License-Identifier: GPL-3.0-or-later */
/* report.h - reports of processes, also of ended ones, for `invade --report` and `rmctl`. */
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
    size_t record_bytes; /* of all records */
    uint64_t forgotten;  /* number of reports that were removed before the oldest */
    bool holds;          /* it is in the list of `holders`, */
    struct rmd_reports *next; /* with this next one */
};

/* The reports of all domains.  Zeros at first.  Only the holder of the loop's turn reads and writes
 * it. */
struct rmd_reports_kept {
    struct rmd_reports *holders; /* domains that have reports */
    uint64_t bytes;              /* of their records together */
};

/* The report of the process in this slot as of now.
 *   known  has the fields that rmd knows itself: the pid, whether the process lives, its times and
 * owned
 *          cores.  All others are from the table, where the process may have written anything */
struct rmd_report rmd_report_of(struct inv_table *table, unsigned slot,
                                const struct inv_report *known);

/* Makes a report of a remote one: times are at most now_ns, names are terminated and printable.
 * False: the remote report is malformed, or memory is short. */
bool rmd_report_from_remote(struct rmd_report *report, const struct inv_remote_report *remote,
                            size_t bytes, uint64_t now_ns);

/* A copy, without the record if memory is short.  The caller frees the record. */
struct rmd_report rmd_report_copy(const struct rmd_report *report);

/* Keeps *report, with its record, in `reports`.  Removes the oldest report if there are too many,
 * and the oldest records if they take too much memory: those of this domain or, if those of all
 * domains together do, of the domain that has most.  *reports must stay where it is until
 * rmd_reports_free. */
void rmd_reports_add(struct rmd_reports_kept *kept, struct rmd_reports *reports,
                     struct rmd_report *report);
void rmd_reports_free(struct rmd_reports_kept *kept, struct rmd_reports *reports);

/* Clears the record of the process in this slot, and frees its memory. */
void rmd_record_clear(struct inv_table *table, int table_fd, unsigned slot);

#endif
