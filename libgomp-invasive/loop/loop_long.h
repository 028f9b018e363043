/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * loop_long.h - the entry points of loop_entries.h for iterators of type long.  The file that includes it, once, has
 * declared first_ordered and defined static_next.
 */
#define LOOP_T long
#define LOOP_F(field) field
#define LOOP_UP
#define LOOP_PASS
#define LOOP_IS_UP (incr > 0)
#define LOOP_WS_IS_DOWN(ws) ((ws)->incr < 0)
#define LOOP_FIRST_ORDERED first_ordered
#define LOOP_ENTRY(name) "GOMP_loop_" #name
#define LOOP_UPSTREAM(name) gomp_loop_##name
#define LOOP_ITER(name) gomp_iter_##name
#define LOOP_STATIC static_next
#include "loop_entries.h"
