/* SPDX-License-Identifier: GPL-3.0-or-later */
/* machine.h - what rmd looks at and sets in /proc and /sys for the policies: what cores deliver,
 * while the policy wants to know, and a power cap. */
#ifndef RMD_MACHINE_H
#define RMD_MACHINE_H

#include "domain.h"
#include "power.h"

/*
 * rmd_machine_watch - from now on the domain knows what its cores deliver whenever its policy
 * looks at that, from samples below `root` ("" for /; on emulated cores only below another one,
 * whose CPU numbers are those of the cores).  Returns 0, or -1 with errno.
 */
int rmd_machine_watch(struct rmd_domain *domain, const char *root);

/* Set the cap, until rmd_machine_close.  False, and has said why. */
bool rmd_machine_cap(const char *root, struct rmd_power_cap cap);
void rmd_machine_close(void);

#endif
