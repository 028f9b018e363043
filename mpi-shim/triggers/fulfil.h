/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* fulfil.h - the entries of one event, for C and Fortran (fulfil.c). */
#ifndef TRIGGERS_FULFIL_H
#define TRIGGERS_FULFIL_H

#include "mpi-shim/triggers/list.h"

/* `count` > 0 entries of the event, without requests and statuses; the caller frees them.  NULL:
 * no memory. */
struct trigger_entry *triggers_make(int count, omp_event_handle_t event);
/* Appends them to the list, and tests some.  Results as inv_fulfil_when; after a failure the
 * entries can only be freed. */
int triggers_add(struct trigger_entry *e, int count);
#endif
