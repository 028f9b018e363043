/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * public.c - the names in libinvasive.so.0, the library that programs link.
 *
 * It is a filter (DT_FILTER, ld's option -F): the dynamic linker finds each of these names in
 * libinvasive-process.so, which has the functions, and which `invade` preloads.  Programs so see the
 * public functions only, and a process has their state once.  What stands here is never called.
 */
#include "invasive.h"
#include "invasive-tool.h"

#define FILTERED                                                                             \
    {                                                                                        \
        __builtin_trap();                                                                    \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct inv_claim inv_claim_now(void) FILTERED
int inv_invade(const struct inv_constraint *constraint, enum inv_blocking blocking,
               struct inv_claim *claim) FILTERED
int inv_reinvade(const struct inv_constraint *constraint, enum inv_blocking blocking,
                 struct inv_claim *claim) FILTERED
int inv_retreat(void) FILTERED
bool inv_lend(void) FILTERED
bool inv_reclaim(void) FILTERED
int inv_announce_workload(double workload) FILTERED
int inv_announce_scalability(const struct inv_scalability *scalability) FILTERED
int inv_control_point(const char *name, int low, int high, int *value) FILTERED
double inv_core_speed(void) FILTERED
const char *inv_version(void) FILTERED
int inv_tool_register(const struct inv_tool *tool, unsigned version) FILTERED
void inv_tool_unregister(void) FILTERED
