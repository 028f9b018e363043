/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * scalability.h - scalability graphs (include/invasive.h): whether a graph is valid, and how
 * it is written in the core table.  Each point is one word, so that a reader never sees half
 * of a point: the cores in the high half, the bits of the speed-up in the low half.
 */
#ifndef INV_SCALABILITY_H
#define INV_SCALABILITY_H

#include "invasive.h"
#include "libinvasive/table/table.h"

/* Number of points. */
unsigned inv_scalability_points(const struct inv_scalability *s);
/* Is the graph as invasive.h demands?  A graph without points is valid and means "unknown". */
bool inv_scalability_valid(const struct inv_scalability *s);

/* Is this the graph in the slot?  A load for each point. */
bool inv_scalability_is_written(struct inv_slot *slot, const struct inv_scalability *s);

/* Writes the graph, which must be valid, into the slot.  Callers: the slot's process, and rmd for a
 * process that joins. */
void inv_scalability_write(struct inv_slot *slot, const struct inv_scalability *s);
/* Reads the slot's graph.  False, and *s is "unknown", when that graph is not valid: written by a
 * wrong program, or being written at this moment. */
bool inv_scalability_read(struct inv_slot *slot, struct inv_scalability *s);

#endif
