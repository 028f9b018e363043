/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * places.h - where the threads of a team are bound (places.c).
 */
#ifndef GOMP_PLACES_H
#define GOMP_PLACES_H 1

#pragma GCC visibility push(hidden)
struct gomp_region_start;
/* Where implicit task `id` runs: place + 1 (0: anywhere) and its partition. */
struct gomp_place_choice {
    unsigned place, partition_off, partition_len;
};
extern struct gomp_place_choice gomp_place_of (const struct gomp_region_start *, unsigned id);
/* The calling thread runs on the CPUs of this place from now on; 0: where it runs already. */
extern void gomp_bind_self (unsigned place);
#pragma GCC visibility pop
#endif
