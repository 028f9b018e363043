/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * want.h - this process says in the core table whether it has work for another core; lenders read
 * that.
 */
#ifndef INV_WANT_H
#define INV_WANT_H

#include <stdbool.h>

/* Says whether this process has work for another core.  true: also reclaims its own cores; false:
 * withdraws such reclaims.  A load when nothing changes.  Any thread. */
void inv_want(bool wants);
/* Says that this process wants no core, unless there is work for one.  Looks for work once more
 * after that, so work that a thread queues meanwhile is not missed. */
void inv_want_if_work(void);

#endif
