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

/* Sets the speeds of the cores (big and little ones, P and E cores) by ROOT/sys/.../cpu_capacity of
 * each CPU, relative to the largest.  If a CPU has no such file, all have the same speed.  Leaves
 * emulated cores alone. */
void rmd_speeds_find(struct inv_topology *topology, const char *root);

/* Forgets all samples: a core delivers its speed, or an unknown part if all cores have the same. */
void rmd_delivery_reset(struct rmd_delivery *delivery, const struct inv_topology *topology);

/*
 * rmd_delivery_sample - reads ROOT/proc/stat; os_cpu[i] is core i's Linux CPU.
 * A core delivers the part of the time for which it was busy or stolen since the last sample that
 * was not stolen, times its speed.  delivered[] is a mean in which the latest sample has the weight
 * 1/4 (the first sample: 1).  A core that was busy for less than 50 ms (5 ticks) keeps its mean.
 * False, after rmd_delivery_reset, when the file cannot be read.
 */
bool rmd_delivery_sample(struct rmd_delivery *delivery, const char *root, const int *os_cpu,
                         const struct inv_topology *topology);

#endif
