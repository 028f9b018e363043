/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * progress.h - what the watchdog (watchdog.h) looks at: do regions make progress?
 *
 * If not, it lets threads run without a hold, and remembers for the function what came of that
 * (history.h).  If implicit tasks waited for each other, all of them are started at once the next
 * time.  If they are only long, the function gets more patience.
 */
#ifndef GOMP_PROGRESS_H
#define GOMP_PROGRESS_H 1

#include "watchdog.h"

#pragma GCC visibility push(hidden)
extern const struct gomp_watch gomp_progress_watch;
#pragma GCC visibility pop
#endif
