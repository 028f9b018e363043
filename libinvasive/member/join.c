/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * join.c - this process as a member of a domain: joining it, leaving it, and what a fork does to all
 * that.
 *
 * Joining is one request and one answer on rmd's socket (protocol.h); the answer
 * carries the core table as a descriptor, which is mapped and closed.  From then on
 * the process talks to other processes through the table alone and keeps no descriptor of ours.
 */
#define _GNU_SOURCE
#include "libinvasive/member/join.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/hold.h"
#include "libinvasive/hold/parked.h"
#include "libinvasive/hold/pin.h"
#include "libinvasive/hold/pull.h"
#include "libinvasive/hold/strangers.h"
#include "libinvasive/hold/suspended.h"
#include "libinvasive/hold/wait.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/member/manager.h"
#include "libinvasive/member/ranks.h"
#include "libinvasive/record/record.h"
#include "libinvasive/record/tuning.h"
#include "libinvasive/process/holdings.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/table/core.h"
#include "libinvasive/table/trace.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct inv_process inv_process;

enum { FIRST_HOLD_TIMEOUT_MS = 2000 };

static struct {
    pthread_mutex_t lock; /* guards what follows, and inv_process until it is managed */
    /* Written under the lock; release, so that a thread that sees it sees inv_process complete */
    _Atomic bool tried;
    bool tried_standalone;
    int anywhere[INV_MAX_CORES]; /* CPUs of own_table's cores */
    /* Set in the thread that joined, for its end.  Both are written by the constructor, before a thread
     * can join */
    pthread_key_t joiner;
    bool has_joiner;
} joining = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool inv_wanted(void)
{
    return atomic_load_explicit(&joining.tried, memory_order_relaxed) ? inv_has_manager()
                                                                      : inv_manager_is_there();
}

unsigned inv_domain_cores(void)
{
    int cores = -1, told = (int)inv_manager_cores();
    if (inv_managed())
        return told && told < (int)inv_process.ncores ? (unsigned)told : inv_process.ncores;
    if (inv_wanted()) {
        cores = told ? told : inv_getenv_count("INVASIVE_CORES");
    }
    if (cores > 0 && cores <= INV_MAX_CORES)
        return (unsigned)cores;
    struct inv_cpus mask;
    int allowed = inv_cpus_get(0, &mask) == 0 ? inv_cpus_count(&mask) : 0;
    if (allowed > 0)
        return (unsigned)allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/* The JOIN request with the hints that the caller or the launcher's environment has. */
static struct inv_request join_request(int rank, int size, int local_size)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    request.rank = rank;
    request.size = size;
    request.local_size = local_size;
    inv_ranks_fill(&request);
    request.launch = inv_launch_mark();
    request.priority = (uint32_t)(inv_getenv_count("INVASIVE_PRIORITY") + 1);
    request.confined = inv_is_confined();
    strncpy(request.program, program_invocation_short_name, sizeof request.program - 1);
    return request;
}

/* Ask rmd; on success the table is mapped.  On failure says why. */
static struct inv_table *handshake(struct inv_request request, unsigned *slot)
{
    struct inv_reply reply;
    struct inv_table *table = NULL;
    const char *where;
    int table_fd;
    if (!inv_manager_ask(&request, &reply, &table_fd, &where))
        return NULL;
    if (reply.status != INV_OK)
        inv_complain("invasive: rmd at %s refused this process (%s). Running unmanaged.", where,
                     reply.message);
    else if (table_fd < 0 || !(table = inv_table_map(table_fd, true)) ||
             reply.slot >= table->nslots) {
        inv_complain("invasive: the core table of rmd at %s cannot be used (%s). Running unmanaged.",
                     where, table ? "slot out of range" : strerror(errno));
        if (table)
            inv_table_unmap(table);
        table = NULL;
    }
    if (table_fd >= 0)
        close(table_fd);
    *slot = reply.slot;
    return table;
}

/* The child of a fork shares the mapping but is not the process that rmd knows: it has the affinity
 * that the program had, and joins by itself when it first needs cores.  The fork may also have come
 * while another thread was joining, which is not in the child. */
static void after_fork_in_child(void)
{
    joining.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (inv_managed()) {
        struct inv_cpus cpus;
        inv_own_cpus(&cpus);
        if (!inv_process.standalone)
            inv_cpus_set(0, &cpus);
        atomic_store(&inv_process.managed, false);
        atomic_store(&joining.tried, inv_process.standalone);
    } else if (!inv_process.table || (atomic_load(&joining.tried) && !inv_process.standalone)) {
        return;
    }
    inv_process.standalone = false;
    inv_record_end();
    atomic_store_explicit(&inv_trace_ring, INV_TRACE_NONE, memory_order_relaxed);
    inv_table_unmap(inv_process.table);
    inv_process.table = NULL;
    inv_claims_forget();
    inv_waits_forget();
    inv_thread_forget();
    inv_parked_forget();
    inv_strangers_forget();
    inv_pull_forget();
}

/* The thread that joined ends before the process does: gives its hold up.  In the first round of
 * destructors that is left to the OpenMP runtime's, which knows the threads that could use the
 * hold. */
static void joiner_ends(void *round)
{
    if (round != &joining.joiner)
        pthread_setspecific(joining.joiner, &joining.joiner);
    else if (inv_managed() && inv_hold != INV_HOLD_NONE)
        inv_hold_lend();
}

/* Runs before any thread can join, since a fork may come at any time after that.  101: before
 * load_tool, which calls a tool. */
static void __attribute__((constructor(101))) begin(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
    joining.has_joiner = pthread_key_create(&joining.joiner, joiner_ends) == 0;
}

/* The first hold: the process's own core; if it owns none, a free one or the token. */
static void acquire_first_hold(void)
{
    if (inv_process.anonymous) {
        inv_token_force(inv_process.table, inv_process.slot);
        inv_tool_arrived(INV_HOLD_TOKEN);
        inv_hold_begin(INV_HOLD_TOKEN);
        inv_assigned_core_enable();
        return;
    }
    int hold = inv_first_hold(inv_now_ns() + FIRST_HOLD_TIMEOUT_MS * UINT64_C(1000000));
    inv_hold_begin(hold != INV_HOLD_NONE ? hold : inv_hold_take_only_token());
}

/* Open MPI 4 binds ranks by default.  `invade` leaves this binding as it is: libraries that are loaded
 * before MPI_Init make a thread for each CPU of the process.  Where the user has chosen a binding, or
 * what it follows from, wide_mask is that binding. */
static bool is_bound_by_default(void)
{
    static const char *const choices[] = {
        "OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy",
        "OMPI_MCA_rmaps_base_cpus_per_rank",  "OMPI_MCA_orte_rankfile",
        "OMPI_MCA_hwloc_base_cpu_list",       "OMPI_MCA_hwloc_base_cpu_set",
        "OMPI_MCA_hwloc_base_bind_to_core",   "OMPI_MCA_hwloc_base_bind_to_socket"};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (inv_getenv(choices[i]))
            return false;
    return inv_getenv("OMPI_MCA_orte_bound_at_launch") != NULL;
}

/* Lets the process run on all cores of the domain, if its launcher has bound it to some of them by
 * default.  Its threads are pinned to the cores that they hold, also if it has no region of our OpenMP
 * runtime: the kernel would wake a rank that slept for a file on the core where another rank waits. */
static void widen_mask(void)
{
    if (!is_bound_by_default())
        return;
    for (unsigned c = 0; c < inv_process.ncores; c++) {
        int cpu = inv_core_at(inv_process.table, c)->os_cpu;
        if (cpu >= 0 && cpu < INV_MAX_CPUS)
            inv_cpus_add(&inv_process.wide_mask, (size_t)cpu);
    }
    struct inv_cpus cpus;
    inv_wide_cpus(&cpus);
    if (inv_cpus_equal(&inv_process.own_mask, &inv_process.wide_mask))
        return;
    if (inv_cpus_set(0, &cpus) == 0)
        inv_pinning_enable(); /* its first hold is still to come */
    else
        inv_process.wide_mask = inv_process.own_mask;
}

static void join_once(int rank, int size, int local_size)
{
    inv_assert(!inv_managed() && inv_hold == INV_HOLD_NONE);
    if (!inv_wanted())
        return;
    if (inv_cpus_get(0, &inv_process.wide_mask)) {
        inv_complain("invasive: cannot read the affinity mask (%s): invasive(7), Limits, says how "
                     "many CPUs there may be. Running unmanaged.", strerror(errno));
        return;
    }
    inv_process.own_mask = inv_process.wide_mask;
    unsigned slot;
    struct inv_request request = join_request(rank, size, local_size);
    struct inv_table *table = handshake(request, &slot);
    if (!table)
        return;
    inv_process.slot = slot;
    inv_process.ncores = table->ncores;
    inv_process.anonymous = table->mode == INV_MODE_ANONYMOUS;
    inv_process.emulated = table->emulated;
    inv_process.table = table;
    widen_mask();
    atomic_store_explicit(&inv_trace_ring, slot, memory_order_relaxed);
    inv_record_begin();
    inv_tuning_begin();
    inv_suspended_install();
    inv_suspended_wait(); /* a process of a suspended job has no core to begin with */
    acquire_first_hold();
    inv_assert(inv_hold != INV_HOLD_NONE && inv_hold_is_valid(inv_hold));
    if (joining.has_joiner)
        pthread_setspecific(joining.joiner, &joining);
    atomic_store_explicit(&inv_process.managed, true, memory_order_release);
    inv_slot_publish_pinning();
}

bool inv_join(int rank, int size, int local_size)
{
    if (atomic_load_explicit(&joining.tried, memory_order_acquire))
        return inv_has_manager();
    INV_UNDISTURBED;
    pthread_mutex_lock(&joining.lock);
    if (!atomic_load_explicit(&joining.tried, memory_order_relaxed)) {
        join_once(rank, size, local_size);
        /* release: a thread that sees `tried` sees inv_process complete */
        atomic_store_explicit(&joining.tried, true, memory_order_release);
    }
    pthread_mutex_unlock(&joining.lock);
    return inv_has_manager();
}

/* A table whose cores are all this process's, and stand for no certain CPUs; NULL: no memory. */
static struct inv_table *own_table(unsigned ncores)
{
    for (unsigned core = 0; core < ncores; core++)
        joining.anywhere[core] = -1;
    struct inv_table *table = inv_table_private(ncores, joining.anywhere, 1, INV_MODE_PINNED);
    for (unsigned core = 0; table && core < ncores; core++)
        inv_core_own(table, core, 0);
    if (table) /* as a resource manager says it */
        atomic_store_explicit(&inv_slot_at(table, 0)->owned_cores, ncores, memory_order_relaxed);
    return table;
}

static void join_alone_once(unsigned ncores)
{
    struct inv_table *table = NULL;
    if (inv_cpus_get(0, &inv_process.wide_mask) == 0)
        table = own_table(ncores);
    inv_process.own_mask = inv_process.wide_mask;
    if (!table)
        return;
    inv_process.slot = 0;
    inv_process.ncores = ncores;
    inv_process.standalone = true;
    inv_process.table = table;
    inv_assert(!inv_managed() && ncores >= 1 && ncores <= INV_MAX_CORES);
    acquire_first_hold();
    inv_assert(inv_hold >= 0 && inv_hold < (int)ncores); /* no other process can have taken it */
    if (joining.has_joiner)
        pthread_setspecific(joining.joiner, &joining);
    /* release: partner is inv_managed */
    atomic_store_explicit(&inv_process.managed, true, memory_order_release);
}

bool inv_join_standalone(unsigned ncores)
{
    if (inv_asked() || inv_switched_off() || ncores < 1 || ncores > INV_MAX_CORES)
        return false;
    INV_UNDISTURBED;
    pthread_mutex_lock(&joining.lock);
    if (!joining.tried_standalone && !inv_managed())
        join_alone_once(ncores);
    joining.tried_standalone = true;
    atomic_store_explicit(&joining.tried, true, memory_order_release); /* as in inv_join */
    pthread_mutex_unlock(&joining.lock);
    return inv_managed();
}

void inv_join_never(const char *reason)
{
    if (atomic_load_explicit(&joining.tried, memory_order_acquire))
        return;
    INV_UNDISTURBED;
    pthread_mutex_lock(&joining.lock);
    if (!atomic_load_explicit(&joining.tried, memory_order_relaxed)) {
        if (reason)
            inv_complain("invasive: %s. Running unmanaged.", reason);
        /* release: as in inv_join */
        atomic_store_explicit(&joining.tried, true, memory_order_release);
    }
    pthread_mutex_unlock(&joining.lock);
}

void inv_leave(const char *reason)
{
    if (!inv_managed())
        return;
    INV_UNDISTURBED;
    if (reason)
        inv_complain("invasive: %s: running unmanaged.", reason);
    if (inv_hold != INV_HOLD_NONE)
        inv_hold_lend();
    inv_assert(inv_hold == INV_HOLD_NONE);
    inv_tool_left_domain();
    inv_thread_unpin();
    inv_cpus_set(0, &inv_process.own_mask);
    /* The mapping stays: other threads may be accessing it. */
    atomic_store_explicit(&inv_process.managed, false, memory_order_release);
    inv_record_end();
    /* relaxed: other threads may read the ring's number meanwhile, and write to the ring for the last time */
    atomic_store_explicit(&inv_trace_ring, INV_TRACE_NONE, memory_order_relaxed);
    if (inv_process.standalone)
        return;
    /* rmd frees the process's cores at once. */
    struct inv_request request = inv_request_of(INV_LEAVE);
    inv_send_to_manager(&request, sizeof request);
}
