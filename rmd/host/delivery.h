/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * delivery.h - how much of a core each core delivers: on a virtual machine the hypervisor takes
 * time away, which the kernel counts as steal (Acun et al., IV.F).
 */
#ifndef RMD_DELIVERY_H
#define RMD_DELIVERY_H

#include "libinvasive/table/table.h"

struct rmd_delivery {
    struct rmd_cpu_time {
        uint64_t busy, steal; /* ticks */
    } last[INV_MAX_CORES];
    double delivered[INV_MAX_CORES]; /* by core, 0..1; 0: not known */
};

/*
 * rmd_delivery_sample - look at ROOT/proc/stat; os_cpu[i] is core i's Linux CPU.
 * Of the time that a core was busy or stolen since the last sample, delivered is what was not
 * stolen; a mean in which the latest sample has a quarter, the first one all.  A core
 * that was busy for less than 50 ms (5 ticks) is judged by what was known of it.
 * False, and nothing known, when the file cannot be read.
 */
bool rmd_delivery_sample(struct rmd_delivery *delivery, const char *root, const int *os_cpu,
                         unsigned ncores);

#endif
