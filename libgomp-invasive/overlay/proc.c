/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * proc.c - how many processors there are: upstream's answers in an unmanaged process,
 * the domain's cores in a managed one.
 *
 * Where ranks share a small node a team is larger than the cores under it, so that cores that come and go in
 * the middle of a static loop find implicit tasks to run: see find_default_team.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "libgomp.h"
#include <libinvasive/base/environment.h>

#define gomp_init_num_threads upstream_init_num_threads
#define gomp_dynamic_max_threads upstream_dynamic_max_threads
#define omp_get_num_procs upstream_omp_get_num_procs
/* Upstream sizes the mask of its first question to the kernel by the configured processors, for which the C library
 * reads a file of /sys, in each process.  It asks again with a larger mask if this many are too few. */
enum { PROCESSORS_AT_FIRST = 64 };
#define sysconf(name) ((name) == _SC_NPROCESSORS_CONF ? PROCESSORS_AT_FIRST : sysconf(name))
#pragma push_macro("ialias")
#undef ialias
#define ialias(fn)
#include <config/linux/proc.c>
#undef sysconf
#pragma pop_macro("ialias")
#undef gomp_init_num_threads
#undef gomp_dynamic_max_threads
#undef omp_get_num_procs

#include "objects.h"
#include "parallel.h"
#include "process.h"
#include "thread_limits.h"
#include "tls.h"
#include <limits.h>
#include <string.h>
#include <strings.h>

static unsigned long smaller_of (unsigned long a, unsigned long b)
{
    return a < b ? a : b;
}

/* The default size.  Written at the first use, under its lock, or while the library is loaded, but for
 * `decided`. */
static struct {
    unsigned found; /* by find_default_team, once: what limits leave may change; 0: not yet */
    bool few_threads; /* found with that; goes to gomp_thread_supply at the first use */
    enum { UNSEEN, WAITS, WAITS_NOT } busy; /* do threads of the program wait for each other in loops? */
    /* Written once, by the thread that decides.  relaxed: the sizes themselves are constant since the first
     * use, which each thread has seen (first_use.c). */
    _Atomic int decided;
    /* The sizes to choose from.  0 if there is one size only, since the user has asked for it or
     * the process is not managed. */
    unsigned of[GOMP_TEAM_DEFAULTS];
    /* The control variables with which threads begin if another one than GOMP_TEAM_LARGE was decided. */
    struct gomp_task_icv icv[GOMP_TEAM_DEFAULTS];
} size = {.decided = GOMP_TEAM_OPEN};

/* The wanted size, or less if limits require that which stock libgomp would not reach: most of what
 * they leave is for the program itself.  If limits are tight: stock's size, or as many threads as
 * can be started. */
static unsigned fit_team (unsigned wanted, unsigned cores)
{
    enum { PART = 8 /* one of so many threads that could be started is for the team */,
           AMPLE = 16 /* limits are tight if that is fewer than this, or than the cores */,
           OTHERS = 2 /* the runtime's in no team: watchdog, free worker */ };
    unsigned long left = gomp_threads_left(), n = left / PART + 1;
    size.few_threads = n < cores || n < AMPLE;
    if (!size.few_threads)
        return (unsigned)(n >= wanted ? wanted : n - n % cores);
    n = smaller_of(left > OTHERS ? left - OTHERS : 0, gomp_threads_to_spare());
    return (unsigned)smaller_of(n, smaller_of(wanted, cores) - 1) + 1;
}

/* Does the environment enable nested regions?  (Called before upstream parses it.) */
static bool nesting_wanted (void)
{
    const char *levels = inv_getenv("OMP_MAX_ACTIVE_LEVELS"), *nested = inv_getenv("OMP_NESTED");
    const char *bind = inv_getenv("OMP_PROC_BIND");
    if (levels)
        return strtoul(levels, NULL, 10) > 1;
    if (nested)
        return strncasecmp(nested, "true", 4) == 0;
    return bind && strchr(bind, ',');
}

/* Does an object that is linked with libgomp call one of these functions, up to NULL? */
struct calls {
    const char *const *names;
    bool found;
};

static int object_calls (struct dl_phdr_info *info, size_t size, void *arg)
{
    struct calls *calls = arg;
    (void)size;
    calls->found = gomp_object_needs(info, "libgomp") && gomp_object_uses(info, calls->names);
    return calls->found;
}

static bool program_calls (const char *const *names)
{
    struct calls calls = {.names = names};
    dl_iterate_phdr(object_calls, &calls);
    return calls.found;
}

static bool has_barriers_inside (void)
{
    static const char *const names[] = {"GOMP_barrier",  "GOMP_barrier_cancel", "GOMP_loop_end",
                                        "GOMP_loop_end_cancel", "GOMP_sections_end",
                                        "GOMP_sections_end_cancel", "GOMP_single_copy_start", NULL};
    return program_calls(names);
}

/* Does the program have sections?  One may wait for another, so each needs a thread. */
static bool has_sections (void)
{
    static const char *const names[] = {"GOMP_parallel_sections", "GOMP_sections_start", "GOMP_sections2_start",
                                        NULL};
    return program_calls(names);
}

/* Do threads wait for each other in loops of their own?  Searched for once. */
static bool busy_waits (void)
{
    if (size.busy == UNSEEN)
        size.busy = gomp_program_busy_waits() ? WAITS : WAITS_NOT;
    return size.busy == WAITS;
}

/* Have the cores several speeds?  Then a fast one takes more implicit tasks of a region than a slow one. */
static bool cores_are_uneven (void)
{
    return inv_getenv("INVASIVE_UNEVEN") != NULL;
}

/* Can a team that is larger than the cores gain anything?  It can where cores come and go in the
 * middle of a region, since several ranks share a small node: there the last implicit tasks to
 * start are the unit of what stays unbalanced.  Or where cores have several speeds.  Else teams of
 * the cores are fine enough.  It cannot
 *   - if regions may be nested, since each thread of a large team would begin a large team;
 *   - if regions have barriers in them, also those at the end of worksharing loops, at each of which
 *     each implicit task is switched to: such programs gain nothing, and keep more arrays for each
 *     thread (doc/design.md);
 *   - if implicit tasks that wait are kernel threads (tls.h), which cost a switch of the kernel each;
 *   - if threads wait for each other in loops of their own: those beyond the cores would take the
 *     cores from those that compute. */
static bool large_team_gains (unsigned cores)
{
    enum { MANY_CORES = 16 };
    unsigned ranks = inv_ranks_here();
    bool come_and_go = ranks > 1 && ranks <= cores && cores < MANY_CORES;
    return (come_and_go || (cores_are_uneven() && ranks <= cores)) && !nesting_wanted() && !has_barriers_inside() &&
           gomp_may_move_threads() && !busy_waits();
}

/* Has the launcher started at least so many ranks for each core here?  No if it does not say how
 * many ranks are on this node (Slurm says how many the job has). */
static bool cores_have_each (unsigned ranks, unsigned cores)
{
    int here = inv_local_size();
    return here > 0 && (unsigned)here >= ranks * cores;
}

/* Does each core have several ranks?  Then a second implicit task costs more than it gains
 * (doc/design.md).  Not with --mpi-tasks, where tasks run while others wait in MPI: in a team of
 * one each runs where it is created. */
static bool one_thread_is_enough (unsigned cores)
{
    return cores_have_each(INV_SEVERAL_RANKS, cores) && !inv_mpi_tasks_asked();
}

/* Are threads of teams of one to be pinned?  If there is one core; or if each core has a few ranks,
 * whose loads are evened out by which core each is pinned to (rmd/placement/partition.c).  With
 * many ranks for each core one is ready to run on each core most of the time, wherever the kernel
 * puts them. */
static bool single_threads_are_pinned (unsigned cores)
{
    enum { MANY_RANKS = 4 };
    return cores == 1 || (one_thread_is_enough(cores) && !cores_have_each(MANY_RANKS, cores));
}

/* The rank's share of the cores, rounded up; all cores if the launcher does not say how many ranks
 * are on this node. */
static unsigned share_of (unsigned cores)
{
    int here = inv_local_size();
    return here > 0 ? (cores + (unsigned)here - 1) / (unsigned)here : cores;
}

/* The rank's share, if more threads would wait for each other on the same cores: in loops of their
 * own, each for a time slice of the kernel, or in barriers as kernel threads (tls.h), which sleep
 * and wake up there.  Else all cores, and also with --mpi-tasks (see above). */
static unsigned cores_that_meet (unsigned cores)
{
    if (inv_local_size() <= 1 || inv_mpi_tasks_asked())
        return cores;
    bool waits = busy_waits();
    if (!waits && (gomp_may_move_threads() || !has_barriers_inside()))
        return cores;
    unsigned share = share_of(cores);
    return share == 1 && cores > 1 && waits && has_sections() ? 2 : share;
}

/* The team size if the program does not set one: INVASIVE_THREADS (invade --threads), or 1 if each
 * core has several ranks, or else the cores, the rank's share of them, or the smallest multiple of
 * them that is large enough, if limits allow. */
static unsigned find_default_team (void)
{
    enum { GRAIN = 16, /* implicit tasks that a large team has at least */
           FOR_EACH = 4 /* and for each of cores that have several speeds */ };
    const char *text = inv_getenv("INVASIVE_THREADS");
    unsigned long wanted = text ? strtoul(text, NULL, 10) : 0;
    if (wanted > 0 && wanted <= 65536)
        return (unsigned)wanted;
    unsigned cores = inv_domain_cores();
    if (one_thread_is_enough(cores))
        return 1;
    unsigned grain = cores_are_uneven() && GRAIN < FOR_EACH * cores ? FOR_EACH * cores : GRAIN;
    if (large_team_gains(cores))
        return fit_team((grain + cores - 1) / cores * cores, cores);
    return fit_team(cores_that_meet(cores), cores);
}

static unsigned default_team (void)
{
    if (!size.found)
        size.found = find_default_team();
    return size.found;
}

__thread bool gomp_team_default_known;

/* Called when the environment is read.  A process that may never use OpenMP is not to ask for a
 * resource manager.  So it finds the size at its first use, when the output of OMP_DISPLAY_ENV is
 * written, too (first_use.c). */
void gomp_init_num_threads (void)
{
    upstream_init_num_threads();
    /* To find the size may take milliseconds, in vain if the variable sets one. */
    if (gomp_use_at_once() && inv_wanted() && !inv_getenv("OMP_NUM_THREADS"))
        gomp_global_icv.nthreads_var = default_team();
}

/* Does the variable say that teams have n threads? */
static bool environment_says (const char *name, unsigned long n)
{
    const char *text = inv_getenv(name);
    return text && strtoul(text, NULL, 10) == n;
}

/* A program may divide its data by omp_get_max_threads(), so that must be a size which teams can
 * have. */
void gomp_settle_default_team (void)
{
    unsigned long n = gomp_global_icv.nthreads_var;
    unsigned limit = gomp_global_icv.thread_limit_var, stock = (unsigned)gomp_available_cpus;
    if (!inv_wanted())
        return;
    /* Upstream takes the default team size for the number of processors, and lets threads spin long
     * if they are no more than that.  The default here may be larger. */
    if (!gomp_places_list)
        gomp_available_cpus = inv_domain_cores();
    if (environment_says("OMP_NUM_THREADS", n) || environment_says("OMP_NUM_THREADS_ALL", n))
        return;
    n = smaller_of(default_team(), limit);
    gomp_thread_supply.few_threads = size.few_threads;
    unsigned cores = inv_domain_cores();
    gomp_team_settings.single_threads_join = n == 1 && single_threads_are_pinned(cores);
    gomp_global_icv.nthreads_var = n;
    if (!inv_getenv("INVASIVE_THREADS")) {
        size.of[GOMP_TEAM_LARGE] = (unsigned)n;
        size.of[GOMP_TEAM_SMALL] = (unsigned)smaller_of(n, cores);
        size.of[GOMP_TEAM_SHARE] = (unsigned)smaller_of(smaller_of(n, stock), share_of(cores));
    }
}

void gomp_settle_teams (void)
{
    gomp_team_initialize();
    for (int i = GOMP_TEAM_SMALL; i < GOMP_TEAM_DEFAULTS; i++) {
        size.icv[i] = gomp_global_icv;
        if (size.of[i])
            size.icv[i].nthreads_var = size.of[i];
    }
}

bool gomp_team_is_default (unsigned nthreads)
{
    return nthreads > 0 && (nthreads == size.of[GOMP_TEAM_SMALL] || nthreads == size.of[GOMP_TEAM_LARGE]);
}

/* Does an object that is linked with libgomp have data by thread number, or a size of its own for teams, as far as its
 * calls tell?  Static loops of C call both of omp_get_num_threads and omp_get_thread_num, those of Fortran too, where
 * the program's own calls have other names. */
static int numbers_threads (struct dl_phdr_info *info, size_t size_of_info, void *found)
{
    static const char *const names[] = {
        "omp_get_max_threads",  "omp_get_max_threads_", "omp_get_num_threads_", "omp_get_thread_num_",
        "omp_set_num_threads",  "omp_set_num_threads_", "omp_set_num_threads_8_", "omp_set_dynamic",
        "omp_set_dynamic_",     "omp_set_dynamic_8_",   NULL};
    static const char *const count[] = {"omp_get_num_threads", NULL}, *const number[] = {"omp_get_thread_num", NULL};
    (void)size_of_info;
    *(bool *)found = gomp_object_needs(info, "libgomp") &&
                     (gomp_object_uses(info, names) || gomp_object_uses(info, count) != gomp_object_uses(info, number));
    return *(bool *)found;
}

/* May teams of the default size be smaller, and does the caller have such teams? */
static bool may_be_smaller (unsigned n)
{
    const char *dynamic = inv_getenv("OMP_DYNAMIC");
    bool numbers = false;
    if (!gomp_team_is_default(n) || size.few_threads || gomp_team_settings.adaptive || gomp_icv(false)->size_is_asked_for ||
        (dynamic && strncasecmp(dynamic, "false", 5) == 0) || gomp_strict_threads() || busy_waits() || has_sections())
        return false;
    dl_iterate_phdr(numbers_threads, &numbers);
    return !numbers;
}

/* One thread, half of the process's share of the cores, the share, all cores, and the default team. */
unsigned gomp_team_choices (int sizes[GOMP_TEAM_CHOICES])
{
    unsigned n = (unsigned)smaller_of(gomp_icv(false)->nthreads_var, UINT16_MAX), count = 0;
    unsigned cores = inv_domain_cores(), share = share_of(cores);
    unsigned wanted[] = {1, (share + 1) / 2, share, cores};
    bool smaller = may_be_smaller(n);
    for (size_t i = 0; smaller && i < sizeof wanted / sizeof *wanted; i++)
        if (wanted[i] < n && (count == 0 || (int)wanted[i] > sizes[count - 1]))
            sizes[count++] = (int)wanted[i];
    sizes[count++] = (int)n;
    return count;
}

/* Gives the calling thread the decided size: its control variables may be older than the
 * decision. */
static void take_team (enum gomp_team_default which)
{
    struct gomp_thread *thr = gomp_thread();
    gomp_thread_icv = &size.icv[which];
    if (thr->task && thr->ts.level == 0 && thr->task->icv.nthreads_var == size.of[GOMP_TEAM_LARGE])
        thr->task->icv.nthreads_var = size.of[which];
}

/* Was the process to be managed, and is not: since it could not join, or has left its domain? */
static bool is_left_unmanaged (void)
{
    return size.of[GOMP_TEAM_LARGE] && !inv_wanted();
}

/* Threads that a program creates begin teams no larger than the cores, if the program has not been
 * told another size before: hundreds of such threads with large teams would need thousands of
 * kernel threads.  A program that has been told a size may divide its data by it, and compute in
 * another thread. */
void gomp_decide_default_team (enum gomp_team_default wanted)
{
    int now = GOMP_TEAM_OPEN;
    if (!gomp_thread()->task)
        gomp_default_icv(); /* the first use, if this is it */
    if (is_left_unmanaged())
        wanted = GOMP_TEAM_SHARE;
    if (atomic_compare_exchange_strong_explicit(&size.decided, &now, (int)wanted, memory_order_relaxed,
                                                memory_order_relaxed))
        now = (int)wanted;
    gomp_team_default_known = true;
    if (now != GOMP_TEAM_LARGE && size.of[now])
        take_team((enum gomp_team_default)now);
}

/* INVASIVE_TEAM=adaptive: only functions that are better off with fewer threads get fewer.
 * Upstream would cut a size that the program asks for down to the default, since sizes may vary. */
static unsigned adaptive_max_threads (void)
{
    unsigned most = gomp_team_limit > 0 ? gomp_team_limit : UINT_MAX;
    unsigned long others = gomp_team_settings.dyn_ours ? UINT_MAX : gomp_icv(false)->nthreads_var;
    return most < others ? most : (unsigned)others;
}

unsigned gomp_dynamic_max_threads (void)
{
    if (__builtin_expect(gomp_team_settings.adaptive, 0))
        return adaptive_max_threads();
    return inv_wanted() ? gomp_icv(false)->nthreads_var : upstream_dynamic_max_threads();
}

int omp_get_num_procs (void)
{
    return inv_wanted() ? (int)inv_domain_cores() : upstream_omp_get_num_procs();
}

ialias (omp_get_num_procs)
