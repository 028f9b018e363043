/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * remote_report.h - the report of a process on another node than the `invade` that wants it.
 */
#ifndef INV_REMOTE_REPORT_H
#define INV_REMOTE_REPORT_H

#include "libinvasive/table/protocol.h"

/* Fills in the report of this process, which has stopped its record.  Returns its bytes. */
size_t inv_remote_report_fill(struct inv_remote_report *report);
/* Submits the report of a process on another node to our rmd, as one of our launch and job.
 * behind_ns: our monotonic clock less the sender's.  False: the report is malformed, or rmd refuses
 * it. */
bool inv_remote_report_submit(struct inv_remote_report *report, size_t bytes, int64_t behind_ns);

#endif
