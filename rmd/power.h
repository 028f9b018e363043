/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * power.h - a power cap for the node: through powercap (RAPL) where the machine has it, else by
 * the highest frequency (cpufreq), else not at all.
 */
#ifndef RMD_POWER_H
#define RMD_POWER_H

#include "sysfile.h"

enum { RMD_POWER_KNOBS = 1024 };

/* What was asked for: watts for all packages together, or per cent of what they may take. */
struct rmd_power_cap {
    double amount; /* > 0; 0: no cap */
    bool percent;
};

/* "95", "95W" or "80%".  False when it is none. */
bool rmd_power_parse(const char *text, struct rmd_power_cap *cap);

struct rmd_power {
    unsigned count;
    struct rmd_power_knob {
        struct rmd_sysfile file;
        uint64_t before; /* what it said */
    } *knob;
    const char *how; /* for people */
};

/*
 * rmd_power_limit - set the cap.  The packages get parts in proportion to the power that each may
 * take; where only frequencies can be set, f = highest * (part)^(1/3), since power rises about as
 * the cube of the frequency, but no less than the lowest.
 * Returns 0; or -1 with errno: ENOTSUP the machine has neither (or watts are asked for and it
 * has only frequencies), else of writing; then everything is as it was.
 */
int rmd_power_limit(struct rmd_power *power, const char *root, struct rmd_power_cap cap);
/* Everything as it was before.  Called again: nothing. */
void rmd_power_restore(struct rmd_power *power);

#endif
