/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * log.h - rmd's messages, on stderr: one line and one write for each.  If stderr is the journal's,
 * a line begins with its priority (sd-daemon(3)); the journal adds the time.  Else a line of a
 * service begins with time and level, "2026-11-25T07:01:02.345Z rmd: notice: ".  A line of any
 * other rmd goes to the terminal of its user, and begins with "rmd: ".  While rmd serves, a line
 * that cannot be written at once is lost; the next line tells how many were.
 */
#ifndef RMD_LOG_H
#define RMD_LOG_H

#include <stdbool.h>

enum rmd_level { RMD_ERROR, RMD_WARNING, RMD_NOTICE, RMD_INFO, RMD_DEBUG, RMD_LOG_LEVELS };

extern const char *const rmd_level_names[RMD_LOG_LEVELS];

/* Finds out whether stderr is the journal's.  Called once. */
void rmd_log_open(void);
/* From now on less important messages than `level` are not written; at first RMD_WARNING. */
void rmd_log_set_level(enum rmd_level level);
/* From now on lines have time and level, unless stderr is the journal's. */
void rmd_log_dated(void);
/* From now on a line that cannot be written at once is lost. */
void rmd_log_no_wait(void);

/* Writes a line to stderr if `level` is important enough (rmd_log_set_level).  Control characters
 * become question marks. */
void rmd_log(enum rmd_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* These write an error, and a message for debugging. */
#define rmd_error(...) rmd_log(RMD_ERROR, __VA_ARGS__)
#define rmd_debug(...) rmd_log(RMD_DEBUG, __VA_ARGS__)

#endif
