/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * proc.c - how many processors there are: upstream's answers when nobody manages us,
 * the domain's cores when somebody does.
 *
 * A managed team is larger than the cores under it, so that cores that come and go in
 * the middle of a static loop find implicit tasks to run: see default_team.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "libgomp.h"
#include <libinvasive/environment.h>

#define gomp_init_num_threads upstream_init_num_threads
#define gomp_dynamic_max_threads upstream_dynamic_max_threads
#define omp_get_num_procs upstream_omp_get_num_procs
#pragma push_macro("ialias")
#undef ialias
#define ialias(fn)
#include <config/linux/proc.c>
#pragma pop_macro("ialias")
#undef gomp_init_num_threads
#undef gomp_dynamic_max_threads
#undef omp_get_num_procs

#include "parallel.h"
#include <libinvasive/process.h>
#include <limits.h>

/* N, the team size when the program does not say: INVASIVE_THREADS (invade --threads), or
 * the smallest multiple of the cores that is at least 32 and at least twice the cores.  The
 * last implicit tasks to start are the unit of what stays unbalanced. */
static unsigned default_team (void)
{
    const char *text = inv_getenv("INVASIVE_THREADS");
    unsigned long wanted = text ? strtoul(text, NULL, 10) : 0;
    if (wanted > 0 && wanted <= 65536)
        return (unsigned)wanted;
    unsigned cores = inv_domain_cores();
    unsigned multiple = (32 + cores - 1) / cores;
    return cores * (multiple < 2 ? 2 : multiple);
}

void gomp_init_num_threads (void)
{
    upstream_init_num_threads();
    if (inv_wanted())
        gomp_global_icv.nthreads_var = default_team();
}

/* Once the environment has been read.  A program may divide its data by omp_get_max_threads(), so
 * that must be a size which teams can have. */
void gomp_limit_default_team (void)
{
    unsigned limit = gomp_global_icv.thread_limit_var;
    bool told = inv_getenv("OMP_NUM_THREADS") || inv_getenv("OMP_NUM_THREADS_ALL");
    if (inv_wanted() && !told && gomp_global_icv.nthreads_var > limit)
        gomp_global_icv.nthreads_var = limit;
}

/* INVASIVE_TEAM=adaptive: only functions that are better off with fewer threads get fewer; sizes
 * that the program asks for are not cut down to the default just because sizes may vary. */
static unsigned adaptive_max_threads (void)
{
    unsigned most = gomp_team_limit > 0 ? gomp_team_limit : UINT_MAX;
    unsigned long others = gomp_team_dyn_ours ? UINT_MAX : gomp_icv(false)->nthreads_var;
    return most < others ? most : (unsigned)others;
}

unsigned gomp_dynamic_max_threads (void)
{
    if (__builtin_expect(gomp_team_adaptive, 0))
        return adaptive_max_threads();
    return inv_wanted() ? gomp_icv(false)->nthreads_var : upstream_dynamic_max_threads();
}

int omp_get_num_procs (void)
{
    return inv_wanted() ? (int)inv_domain_cores() : upstream_omp_get_num_procs();
}

ialias (omp_get_num_procs)
