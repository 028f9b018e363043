/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * power.h - a power cap for the node: through powercap (RAPL) where the machine has it, else by
 * the highest frequency (cpufreq), else not at all.
 */
#ifndef RMD_POWER_H
#define RMD_POWER_H

#include "rmd/host/sysfile.h"

enum { RMD_POWER_KNOBS = 1024 };

/* A power cap: watts for all packages together, or per cent of the power that they may take. */
struct rmd_power_cap {
    double amount; /* > 0; 0: no cap */
    bool percent;
};

/* Parses "95", "95W" or "80%".  False: the text is no cap. */
bool rmd_power_parse(const char *text, struct rmd_power_cap *cap);

/* A setting of the machine that was changed.  The next rmd gets it (persisted_orders.h). */
enum rmd_power_kind { RMD_POWER_PACKAGE, RMD_POWER_CPU, RMD_POWER_KINDS };
struct rmd_power_knob {
    uint32_t kind, number; /* enum rmd_power_kind; number of the package or CPU */
    uint64_t before;       /* the former value */
};

/* Saves the settings that the next rmd must restore if this one is killed; count 0: clears them. */
typedef void rmd_power_note(void *context, const struct rmd_power_knob *knob, unsigned count);

struct rmd_power {
    const char *root;
    rmd_power_note *note;
    void *context; /* of `note` */
    const char *how; /* description of the means, for messages */
    struct rmd_sysfile off; /* the switch of a package whose limits have no effect */
    unsigned count;
    struct rmd_power_knob knob[RMD_POWER_KNOBS];
    uint64_t value[RMD_POWER_KNOBS]; /* present value of each knob */
};

/*
 * rmd_power_limit - sets the cap, in files below `root`, which stays the caller's.  The packages
 * get parts in proportion to the power that each may take.  If only frequencies can be set,
 * f = highest * (part)^(1/3), since power rises about as the cube of the frequency, but at least
 * the lowest.  Call rmd_power_restore_former before, so that no cap of a former rmd is there.
 * `note` is called before anything is changed, and after everything has been restored.  Returns 0;
 * or -1 with everything as it was, and errno: ENOTSUP the machine has neither (or watts are asked
 * for, and it has only frequencies), ECANCELED the limits of a package have no effect, see `off`,
 * else of writing.
 */
int rmd_power_limit(struct rmd_power *power, const char *root, struct rmd_power_cap cap,
                    rmd_power_note *note, void *context);
/*
 * rmd_power_slow - sets each CPU to a part of its highest frequency, but no slower than its lowest
 * and no faster than the cap and the former setting allow.  *power is as rmd_power_limit has left it,
 * or zeros but for root, note and context.  CPUs that are offline are left out.
 *   part  by number of the CPU: the part; 1: as the cap and the former setting say.  Receives the part
 *         of these that the CPU has now; 1 for CPUs that were not set
 * Returns 0; or -1 with errno: ENOTSUP no CPU has frequencies that can be set; else of writing, and
 * all CPUs that can be set have their new speed.  A later call tries all of them again.
 */
int rmd_power_slow(struct rmd_power *power, double part[RMD_POWER_KNOBS]);
/* Restores all settings that rmd changed.  A second call has no effect. */
void rmd_power_restore(struct rmd_power *power);
/* Restores the settings that a former rmd had changed.  Files that have vanished are left out, and
 * so are CPUs that are offline, each with a warning.  False with errno: a file cannot be written. */
bool rmd_power_restore_former(const char *root, const struct rmd_power_knob *knob, unsigned count);

#endif
