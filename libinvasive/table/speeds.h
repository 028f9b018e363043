/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* speeds.h - the cores of an emulated machine, described by their number and speeds. */
#ifndef INV_SPEEDS_H
#define INV_SPEEDS_H

/*
 * inv_speeds_parse - "8", or "4x1.0,4x0.6": four cores of full speed, and then four that take 1 / 0.6 of
 * the time.  Speeds are from 0.01 to 1.
 *   most   the largest number of cores that is accepted
 *   speed  receives the speed of each core in thousandths; has room for `most`; NULL: not asked for
 * Returns the number of cores; 0 when the text is malformed, or the cores are more than `most`.
 */
unsigned inv_speeds_parse(const char *text, unsigned most, unsigned short *speed);

#endif
