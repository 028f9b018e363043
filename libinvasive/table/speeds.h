/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* speeds.h - cores of a machine that is only described, by their number and speeds. */
#ifndef INV_SPEEDS_H
#define INV_SPEEDS_H

/*
 * inv_speeds_parse - "8", or "4x1.0,4x0.6": four cores of full speed, and then four that take 1 / 0.6 of
 * the time.  Speeds are from 0.01 to 1.
 *   most   cores that there may be
 *   speed  room for so many, in thousandths; NULL: only their number is asked for
 * Returns the number of cores; 0 when the text is neither, or says more.
 */
unsigned inv_speeds_parse(const char *text, unsigned most, unsigned short *speed);

#endif
