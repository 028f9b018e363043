/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop_ull.c - worksharing loops over unsigned long long: upstream's file, with the fork's entry
 * points in front of it (loops.h).
 */
#include "loops.h"
#include "loop_rename.h"

LOOP_STATIC_NEXT(ull_static_next, unsigned long long)
#define gomp_iter_ull_static_next ull_static_next
static bool first_ordered (unsigned long long *, unsigned long long *);
#define gomp_iter_ull_dynamic_next_locked first_ordered
#include <../libgomp/loop_ull.c>
#undef gomp_iter_ull_dynamic_next_locked

#define LOOP_T gomp_ull
#define LOOP_F(field) field##_ull
#define LOOP_UP bool up,
#define LOOP_PASS up,
#define LOOP_IS_UP up
#define LOOP_WS_IS_DOWN(ws) ((ws)->mode & LOOP_DOWN)
#define LOOP_FIRST_ORDERED first_ordered
#define LOOP_ENTRY(name) "GOMP_loop_ull_" #name
#define LOOP_UPSTREAM(name) gomp_loop_ull_##name
#define LOOP_ITER(name) gomp_iter_ull_##name
#define LOOP_STATIC ull_static_next
#include "loop_entries.h"
