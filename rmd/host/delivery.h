/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * delivery.h - how much of a core each core delivers: cores may have speeds of their own, and on a
 * virtual machine the hypervisor takes time away, which the kernel counts as steal (Acun et al., IV.F).
 */
#ifndef RMD_DELIVERY_H
#define RMD_DELIVERY_H

#include "libinvasive/table/topology.h"

struct rmd_delivery {
    struct rmd_cpu_time {
        uint64_t busy, steal; /* ticks */
    } last[INV_MAX_CORES];
    double delivered[INV_MAX_CORES]; /* by core, 0..1; 0: not known */
};

/* Sets the speeds of a machine whose cores are not alike: by ROOT/sys/.../cpu_capacity of each
 * (big and little ones, P and E cores), relative to the largest.  All alike where a core has none.  Not
 * of emulated cores. */
void rmd_speeds_find(struct inv_topology *topology, const char *root);

/* What is known before a sample: the speeds, if they differ. */
void rmd_delivery_reset(struct rmd_delivery *delivery, const struct inv_topology *topology);

/*
 * rmd_delivery_sample - look at ROOT/proc/stat; os_cpu[i] is core i's Linux CPU.
 * Of the time that a core was busy or stolen since the last sample, delivered is what was not
 * stolen, times the core's speed; a mean in which the latest sample has a quarter, the first one all.
 * A core that was busy for less than 50 ms (5 ticks) is judged by what was known of it.
 * False, and no more known than before all samples, when the file cannot be read.
 */
bool rmd_delivery_sample(struct rmd_delivery *delivery, const char *root, const int *os_cpu,
                         const struct inv_topology *topology);

#endif
