/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * sections.c - upstream's; regions that are one sections construct say which function they are
 * for (parallel.h).
 */
#include "parallel.h"

#define gomp_resolve_num_threads(requested, count) gomp_resolve_for(fn, requested, count)
#include <../libgomp/sections.c>
