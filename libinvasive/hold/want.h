/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * want.h - does this process have work for another core?  Lenders look at it.
 */
#ifndef INV_WANT_H
#define INV_WANT_H

#include <stdbool.h>

/* Set or clear "this process has work for another core"; setting it also tries to
 * reclaim our own cores.  Cheap when nothing changes. */
void inv_want(bool wants);
/* Stop wanting unless there is work, which is looked for again after it was said. */
void inv_want_if_work(void);

#endif
