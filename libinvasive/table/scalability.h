/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * scalability.h - scalability graphs (include/invasive.h): whether one is valid, and how
 * it is written in the core table: a word for each point, so that a reader never sees half
 * of one; the cores in the high half, the bits of the speed-up in the low one.
 */
#ifndef INV_SCALABILITY_H
#define INV_SCALABILITY_H

#include "invasive.h"
#include "libinvasive/table/table.h"

/* Number of points. */
unsigned inv_scalability_points(const struct inv_scalability *s);
/* Is it as invasive.h says?  No point at all is valid too: unknown. */
bool inv_scalability_valid(const struct inv_scalability *s);

/* Is it what the slot has?  Some loads, as many as it has points. */
bool inv_scalability_is_written(struct inv_slot *slot, const struct inv_scalability *s);

/* Writes the graph, which must be valid, into the slot.  Callers: the slot's process, and rmd for a
 * process that joins. */
void inv_scalability_write(struct inv_slot *slot, const struct inv_scalability *s);
/* False, and unknown, when what the slot has is not valid: written by a wrong program, or
 * just being written. */
bool inv_scalability_read(struct inv_slot *slot, struct inv_scalability *s);

#endif
