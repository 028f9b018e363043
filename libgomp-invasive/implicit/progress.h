/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * progress.h - what the watchdog (watchdog.h) does: it sees whether regions get anywhere.
 *
 * It remembers what came of running threads without a hold (history.h): a function whose
 * implicit tasks wait for each other has all of them started at once the next time; if they are
 * merely long, it gets more patience.
 */
#ifndef GOMP_PROGRESS_H
#define GOMP_PROGRESS_H 1

#include "watchdog.h"

#pragma GCC visibility push(hidden)
extern const struct gomp_watch gomp_progress_watch;
#pragma GCC visibility pop
#endif
