/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * control_point.h - control points of the runtime itself (tuning.c), beside those of the program
 * (inv_control_point): one table, one record for `invade --report`.
 *
 * No call waits.  While another thread is in one of them, or in inv_control_point, a call does nothing.
 */
#ifndef INV_CONTROL_POINT_H
#define INV_CONTROL_POINT_H

#include <stdbool.h>
#include <stdint.h>

/* Begins the only search of a control point.  name: 1 to 47 bytes; values: `count`, rising, `own` one of them
 * (inv_tune_begin_list).  False: another thread is in a call, or there is no room or no memory; the search has not
 * begun. */
bool inv_control_begin(const char *name, const int *values, unsigned count, int own);

/* An iteration with the present value took `ns` nanoseconds.  The search has begun, and is not over.  *value
 * becomes the value for the next iteration, unless another thread is in a call.  True: the search is over, and
 * *value was the best. */
bool inv_control_add(const char *name, uint64_t ns, int *value);

#endif
