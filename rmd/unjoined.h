/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * unjoined.h - processes of a user with a domain that are no members of it, and compute all the same:
 * descendants of members, or where the operator wants it all (struct rmd_fence, whole), are kept to
 * the user's cores as members are (fence.h).
 *
 * They are found by looks through /proc.  A user may have as many as it likes, so a look goes on in
 * slices, and takes no more than a tenth of a processor's time.  As domain.h, for who holds the loop's
 * turn.
 */
#ifndef RMD_UNJOINED_H
#define RMD_UNJOINED_H

#include "cpus.h"

#include <stdbool.h>

/*
 * rmd_unjoined_begin - before all others.
 *   possible  what a process may use that is kept from nothing
 *   cpusets   descendants are put into their user's; where that fails, and of all others, the
 *             affinity is cut down: who keeps processes by their control groups would miss those
 * Returns 0, or -1 with errno.
 */
int rmd_unjoined_begin(const struct inv_cpus *possible, bool cpusets);

/* A look is due: begins one, if none is under way.  Where there is nothing to do nothing happens. */
void rmd_unjoined_look(void);

/* What users may use has changed: as rmd_unjoined_look, soon, and again after one that is under way. */
void rmd_unjoined_changed(void);

/* Whose affinity has been cut down may use all again. */
void rmd_unjoined_end(void);

#endif
