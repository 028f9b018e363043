/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* recorded.h - is there a record of this process, for a report, or for the table of call sites? */
#ifndef SHIM_RECORDED_H
#define SHIM_RECORDED_H

#include "libinvasive/member/record.h"

/* Is there a record?  Is there one, or at least its table of sites?  relaxed: a hint; each use
 * loads the address again. */
static inline bool shim_recorded(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_recording.record, memory_order_relaxed) != NULL, 0);
}
static inline bool shim_has_sites(void)
{
    return __builtin_expect(
        atomic_load_explicit(&inv_recording.sites, memory_order_relaxed) != NULL, 0);
}

#endif
