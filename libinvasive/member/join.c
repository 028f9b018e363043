/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * join.c - this process as a member of a domain: finding and joining its resource
 * manager, leaving it, and what a fork does to all that.
 *
 * Joining is one request and one answer on rmd's socket (protocol.h); the answer
 * carries the core table as a descriptor, which is mapped and closed.  From then on
 * the process talks to other processes through the table alone and keeps no descriptor of ours.
 */
#define _GNU_SOURCE
#include "libinvasive/process.h"
#include "libinvasive/hold/strangers.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/launch/preload.h"
#include "libinvasive/table/protocol.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/launch/step.h"
#include "libinvasive/process/tool.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/table/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct inv_process inv_process;

enum { JOIN_TIMEOUT_S = 5, FIRST_HOLD_TIMEOUT_MS = 2000, BORROWER_HOLD_TIMEOUT_MS = 250 };
enum { NODE_TRIES = 1000, CUT_OFF_TRIES = 5 };

static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool join_tried;
/* Set in the thread that joined, for its end.  Both are written before a thread can join. */
static pthread_key_t joiner;
static bool has_joiner;

/* What the environment said when we were loaded, if this is not the launch's first node; and the
 * number of cores of its rmd as far as that has answered, 0 unknown. */
static struct inv_launch launch;
static bool launched_elsewhere;
static _Atomic unsigned node_cores;

/* The file that this library was loaded from, NULL unknown; only of a process on a further node.
 * Written by the constructor: dladdr waits for the loader's lock, whose holder may be waiting for us
 * (the constructor of a plugin that uses OpenMP).  Read by rmd_path. */
static const char *own_file;

/* One line on stderr, in one write so that lines of several ranks do not mix. */
static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    size_t length = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[length++] = '\n';
    inv_write_stderr(line, length);
}

/* A non-negative integer from the environment, or -1. */
static int env_int(const char *name)
{
    const char *text = inv_getenv(name);
    if (!text || !*text)
        return -1;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value < 0 || value > INT_MAX ? -1 : (int)value;
}

/* --- the resource manager */

static int connect_to(const char *name)
{
    return name && *name ? inv_socket_connect(name, JOIN_TIMEOUT_S) : -1;
}

/* The same; an rmd that is being started again is waited for. */
static int connect_to_service(const char *name)
{
    return name && *name ? inv_socket_connect_service(name, JOIN_TIMEOUT_S) : -1;
}

/* The rmd that belongs to this library: where the whole is installed in one tree, or built. */
static const char *rmd_path(char *path, size_t bytes)
{
    const char *told = inv_getenv("INVASIVE_RMD");
    if (told && *told)
        return told;
    if (own_file) {
        const char *slash = strrchr(own_file, '/');
        int n = snprintf(path, bytes, "%.*s/../../bin/rmd", slash ? (int)(slash - own_file) : 1,
                         slash ? own_file : ".");
        if (n > 0 && (size_t)n < bytes && !access(path, X_OK))
            return path;
    }
    return INV_BINDIR "/rmd";
}

/* Connect to the launch's rmd on this node, which the first process starts.  A process that
 * connects while an rmd ends for want of processes is cut off, and comes back here. */
static int connect_to_node(void)
{
    char path[4096], why[256];
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int tries = 0; tries < NODE_TRIES; tries++) {
        int fd = connect_to(launch.socket);
        if (fd >= 0 || errno != ECONNREFUSED)
            return fd;
        const char *rmd = rmd_path(path, sizeof path);
        switch (inv_launch_start(&launch, rmd, why, sizeof why)) {
        case INV_START_FAILED:
            complain("invasive: cannot start %s on this node (%s). Running unmanaged.", rmd, why);
            errno = 0; /* it has been said */
            return -1;
        case INV_START_RACED:
            nanosleep(&pause, NULL);
            break;
        case INV_STARTED:
            break;
        }
    }
    errno = ETIMEDOUT;
    return -1;
}

/* Connect to the rmd of this process: the one that INVASIVE_SOCKET names, or on another node than
 * the launch's first that node's.  Sets *where.  -1 with errno, 0 if why has been said. */
static int reach_manager(const char **where)
{
    *where = inv_getenv("INVASIVE_SOCKET");
    int fd = connect_to_service(*where);
    if (fd >= 0 || !launched_elsewhere)
        return fd;
    *where = launch.socket;
    return connect_to_node();
}

static void complain_unreachable(const char *where)
{
    char unfit[INV_SOCKET_UNFIT];
    if (errno && inv_socket_unfit(where, unfit))
        complain("invasive: %s: set INVASIVE_SOCKET to another one. Running unmanaged.", unfit);
    else if (errno)
        complain("invasive: cannot reach rmd at %s (%s): is it running? Running unmanaged.", where,
                 strerror(errno));
}

/* One request, one answer; again where we were cut off.  Returns false when there is no rmd or
 * no sensible answer, and has said so.  *table_fd: what came with the answer, -1 nothing. */
static bool ask_manager(const struct inv_request *request, struct inv_reply *reply, int *table_fd,
                        const char **where)
{
    for (int tries = 0;; tries++) {
        int fd = reach_manager(where);
        *table_fd = -1;
        if (fd < 0) {
            complain_unreachable(*where);
            return false;
        }
        bool good = inv_socket_ask(fd, request, sizeof *request, reply, table_fd);
        int error = errno;
        close(fd);
        if (good)
            return true;
        bool cut_off = error == ECONNRESET || error == EPIPE || error == ENODATA;
        bool comes_back = *where == launch.socket || **where == '/';
        if (cut_off && comes_back && tries < CUT_OFF_TRIES)
            continue;
        complain("invasive: rmd at %s did not answer as expected (%s): is it of another version? "
                 "Running unmanaged.",
                 *where, strerror(error));
        return false;
    }
}

/* On another node the environment does not say how many cores there are: its rmd knows. */
static bool node_answers(void)
{
    struct inv_request request = inv_request_of(INV_OBSERVE);
    struct inv_reply reply;
    const char *where;
    int table_fd;
    if (!ask_manager(&request, &reply, &table_fd, &where))
        return false;
    if (table_fd >= 0)
        close(table_fd);
    if (reply.status == INV_OK && reply.count > 0 && reply.count <= INV_MAX_CORES) {
        atomic_store_explicit(&node_cores, reply.count, memory_order_relaxed);
        return true;
    }
    complain("invasive: rmd at %s refused this process (%s). Running unmanaged.", where,
             reply.message);
    return false;
}

/* Is this process a task of a Slurm step that invade is not in (invade srun ...)?  What invade may
 * use is not the step's then.  An invade in the step has named the launch after it. */
static bool is_confined(void)
{
    char job[32];
    const char *text = inv_getenv("INVASIVE_LAUNCH");
    return text && inv_step_is_ours() &&
           !(inv_job_name(job, sizeof job) && strstr(text, job) != NULL);
}

/* A private rmd has all cores of invade, and learns the step's cores as its tasks join: so the size
 * of teams follows from the tasks.  Joined tasks may be bound to fewer cores by now. */
static void count_step_cores(const char *where)
{
    struct inv_cpus cpus;
    if (*where == '@' && is_confined() && inv_step_cpus(&cpus))
        atomic_store_explicit(&node_cores, (unsigned)inv_cpus_count(&cpus), memory_order_relaxed);
}

/* Are we asked to be managed, and is an rmd there to do it?  Looked up once, when the
 * runtime decides on its default team size: without a manager that is the stock one. */
static bool environment_wants(void)
{
    INV_UNDISTURBED;
    const char *mode = inv_getenv("INVASIVE"), *where = inv_getenv("INVASIVE_SOCKET");
    if (!where || !*where || (mode && strcmp(mode, "off") == 0) || inv_getenv(INV_STOCK_VARIABLE))
        return false;
    int fd = connect_to_service(where);
    if (fd < 0 && launched_elsewhere)
        return node_answers();
    if (fd < 0) {
        complain_unreachable(where);
        return false;
    }
    close(fd);
    count_step_cores(where);
    return true;
}

bool inv_wanted(void)
{
    if (atomic_load_explicit(&join_tried, memory_order_relaxed))
        return inv_has_manager();
    static _Atomic int answer; /* 0 not asked yet, 1 yes, 2 no */
    if (atomic_load_explicit(&answer, memory_order_relaxed) == 0)
        atomic_store_explicit(&answer, environment_wants() ? 1 : 2, memory_order_relaxed);
    return atomic_load_explicit(&answer, memory_order_relaxed) == 1;
}

bool inv_asked(void)
{
    const char *where = inv_getenv("INVASIVE_SOCKET");
    return where && *where;
}

unsigned inv_domain_cores(void)
{
    int cores = -1, told = (int)atomic_load_explicit(&node_cores, memory_order_relaxed);
    if (inv_managed())
        return told && told < (int)inv_process.ncores ? (unsigned)told : inv_process.ncores;
    if (inv_wanted()) {
        cores = told ? told : env_int("INVASIVE_CORES");
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

int inv_local_size(void)
{
    int size = env_int("MPI_LOCALNRANKS");
    return size < 0 ? env_int("OMPI_COMM_WORLD_LOCAL_SIZE") : size;
}

unsigned inv_ranks_here(void)
{
    int here = inv_local_size();
    if (here < 0 && (here = env_int("PMI_SIZE")) < 0)
        here = inv_getenv("SLURM_PROCID") ? env_int("SLURM_NTASKS") : -1;
    if (here < 0)
        return inv_getenv("PMIX_RANK") ? 2 : 1;
    return here > 0 ? (unsigned)here : 1;
}

/* The JOIN request with the hints that the caller or the launcher's environment has. */
static struct inv_request join_request(int rank, int size, int local_size)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    request.rank = rank;
    request.size = size;
    request.local_size = local_size;
    if (request.rank < 0 && (request.rank = env_int("PMI_RANK")) < 0)
        request.rank = env_int("OMPI_COMM_WORLD_RANK");
    if (request.size < 0 && (request.size = env_int("PMI_SIZE")) < 0)
        request.size = env_int("OMPI_COMM_WORLD_SIZE");
    if (request.local_size < 0)
        request.local_size = inv_local_size();
    if ((request.local_rank = env_int("MPI_LOCALRANKID")) < 0)
        request.local_rank = env_int("OMPI_COMM_WORLD_LOCAL_RANK");
    request.launch = inv_launch_mark();
    request.confined = is_confined();
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
    if (!ask_manager(&request, &reply, &table_fd, &where))
        return NULL;
    if (reply.status != INV_OK)
        complain("invasive: rmd at %s refused this process (%s). Running unmanaged.", where,
                 reply.message);
    else if (table_fd < 0 || !(table = inv_table_map(table_fd, true)) ||
             reply.slot >= table->nslots) {
        complain("invasive: the core table of rmd at %s cannot be used (%s). Running unmanaged.",
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

/* The child of a fork shares the mapping but is not the process that rmd knows: it runs
 * unmanaged, with the affinity that the program had.  The fork may also have come while
 * another thread was joining.  That thread is not in the child, which may join by itself. */
static void after_fork_in_child(void)
{
    join_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (inv_managed()) {
        struct inv_cpus cpus;
        inv_own_cpus(&cpus);
        if (!inv_process.alone)
            inv_cpus_set(0, &cpus);
        atomic_store(&inv_process.managed, false);
        atomic_store(&join_tried, true);
    } else if (!inv_process.table || (atomic_load(&join_tried) && !inv_process.alone)) {
        return;
    }
    inv_process.alone = false;
    atomic_store(&inv_process.record, NULL);
    atomic_store(&inv_process.sites, NULL);
    atomic_store_explicit(&inv_trace_ring, INV_TRACE_NONE, memory_order_relaxed);
    inv_table_unmap(inv_process.table);
    inv_process.table = NULL;
    atomic_store(&inv_process.waiting, 0);
    atomic_store(&inv_process.holds_until_ns, 0);
    inv_thread_forget();
    inv_parked_forget();
    inv_strangers_forget();
}

/* The thread that joined ends before the process does, and still has its hold.  The OpenMP runtime
 * has a destructor of its own, which knows the threads that could use it.  So not in the first
 * round. */
static void joiner_ends(void *round)
{
    static char second;
    if (round != &second)
        pthread_setspecific(joiner, &second);
    else if (inv_managed() && inv_hold != INV_HOLD_NONE)
        inv_hold_lend();
}

/* Before a thread can join: a fork may come at any time then. */
static void __attribute__((constructor)) begin(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
    has_joiner = pthread_key_create(&joiner, joiner_ends) == 0;
    const char *text = inv_getenv("INVASIVE_LAUNCH");
    launched_elsewhere = text && inv_launch_parse(&launch, text) && launch.home != inv_node_id();
    Dl_info own;
    if (launched_elsewhere && dladdr((void *)begin, &own))
        own_file = own.dli_fname;
}

/* How long (ms) the process waits for its first core.  If a job has more ranks than there are cores,
 * ranks that own none will never all hold one at once. */
static uint64_t first_patience_ms(int local_size)
{
    if (inv_first_owned_core() != INV_NO_CORE)
        return FIRST_HOLD_TIMEOUT_MS;
    return local_size <= (int)inv_process.ncores ? BORROWER_HOLD_TIMEOUT_MS : 0;
}

/* The first hold: the process's own core; in a crowded start the core that is given back first. */
static bool acquire_first_hold(int local_size)
{
    uint64_t patience_ms = first_patience_ms(local_size);
    uint64_t limit = inv_now_ns() + patience_ms * UINT64_C(1000000);
    if (inv_process.anonymous) {
        inv_token_force(inv_process.table, inv_process.slot);
        inv_tool_arrived(INV_HOLD_TOKEN);
        inv_hold_begin(INV_HOLD_TOKEN);
        inv_assigned_core_enable();
        return true;
    }
    int hold = inv_first_hold(limit);
    if (hold == INV_HOLD_NONE)
        return false;
    inv_hold_begin(hold);
    return true;
}

bool inv_tell_manager(const struct inv_request *request, size_t bytes)
{
    INV_UNDISTURBED;
    const char *where = inv_getenv("INVASIVE_SOCKET");
    int fd = connect_to(where);
    if (fd < 0 && launched_elsewhere)
        fd = connect_to(launch.socket);
    if (fd < 0)
        return false;
    struct inv_reply reply;
    int none = -1;
    bool good = inv_socket_ask(fd, request, bytes, &reply, &none) && reply.status == INV_OK;
    if (none >= 0)
        close(none);
    close(fd);
    return good;
}

/* Open MPI 4 binds ranks unless it is told not to.  It is not told by `invade`: libraries that are
 * loaded before MPI is set up make as many threads as the process has CPUs.  Where the user has chosen a
 * binding, or what it follows from, wide_mask is that one. */
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

/* The domain's cores for the process, where its launcher has bound it to some of them. */
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
    if (!inv_cpus_equal(&inv_process.own_mask, &inv_process.wide_mask) &&
        inv_cpus_set(0, &cpus) != 0)
        inv_process.wide_mask = inv_process.own_mask;
}

static void join_once(int rank, int size, int local_size)
{
    inv_assert(!inv_managed() && inv_hold == INV_HOLD_NONE);
    if (!inv_wanted())
        return;
    if (inv_cpus_get(0, &inv_process.wide_mask)) {
        complain("invasive: cannot read the affinity mask (%s): invasive(7), Limits, says how many "
                 "CPUs there may be. Running unmanaged.", strerror(errno));
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
    bool held = acquire_first_hold(request.local_size);
    inv_assert(held == (inv_hold != INV_HOLD_NONE) && inv_hold_is_valid(inv_hold));
    if (has_joiner)
        pthread_setspecific(joiner, &joiner);
    atomic_store_explicit(&inv_process.managed, true, memory_order_release);
    inv_slot_tell_binding();
    if (!held)
        inv_leave("no core became free in time");
}

bool inv_join(int rank, int size, int local_size)
{
    if (atomic_load_explicit(&join_tried, memory_order_acquire))
        return inv_has_manager();
    INV_UNDISTURBED;
    pthread_mutex_lock(&join_lock);
    if (!atomic_load_explicit(&join_tried, memory_order_relaxed)) {
        join_once(rank, size, local_size);
        /* release: a thread that sees join_tried sees inv_process complete */
        atomic_store_explicit(&join_tried, true, memory_order_release);
    }
    pthread_mutex_unlock(&join_lock);
    return inv_has_manager();
}

/* A table whose cores are this process's, none of them a certain CPU; NULL: no memory. */
static struct inv_table *own_table(unsigned ncores)
{
    static int anywhere[INV_MAX_CORES];
    for (unsigned core = 0; core < ncores; core++)
        anywhere[core] = -1;
    struct inv_table *table = inv_table_private(ncores, anywhere, 1, INV_MODE_PINNED);
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
    inv_process.alone = true;
    inv_process.table = table;
    inv_assert(!inv_managed() && ncores >= 1 && ncores <= INV_MAX_CORES);
    acquire_first_hold(1);
    inv_assert(inv_hold >= 0 && inv_hold < (int)ncores); /* no other process can have taken it */
    if (has_joiner)
        pthread_setspecific(joiner, &joiner);
    /* release: partner is inv_managed */
    atomic_store_explicit(&inv_process.managed, true, memory_order_release);
}

bool inv_join_alone(unsigned ncores)
{
    static bool tried; /* under the lock */
    const char *mode = inv_getenv("INVASIVE");
    if (inv_asked() || (mode && strcmp(mode, "off") == 0) || ncores < 1 || ncores > INV_MAX_CORES)
        return false;
    INV_UNDISTURBED;
    pthread_mutex_lock(&join_lock);
    if (!tried && !inv_managed())
        join_alone_once(ncores);
    tried = true;
    atomic_store_explicit(&join_tried, true, memory_order_release); /* as in inv_join */
    pthread_mutex_unlock(&join_lock);
    return inv_managed();
}

void inv_join_never(const char *reason)
{
    if (atomic_load_explicit(&join_tried, memory_order_acquire))
        return;
    INV_UNDISTURBED;
    pthread_mutex_lock(&join_lock);
    if (!atomic_load_explicit(&join_tried, memory_order_relaxed)) {
        complain("invasive: %s. Running unmanaged.", reason);
        /* release: as in inv_join */
        atomic_store_explicit(&join_tried, true, memory_order_release);
    }
    pthread_mutex_unlock(&join_lock);
}

void inv_leave(const char *reason)
{
    if (!inv_managed())
        return;
    INV_UNDISTURBED;
    if (reason)
        complain("invasive: %s: running unmanaged.", reason);
    if (inv_hold != INV_HOLD_NONE)
        inv_hold_lend();
    inv_assert(inv_hold == INV_HOLD_NONE);
    inv_tool_left_domain();
    inv_thread_unpin();
    inv_cpus_set(0, &inv_process.own_mask);
    /* The mapping stays: other threads may be in the middle of something in it. */
    atomic_store_explicit(&inv_process.managed, false, memory_order_release);
    atomic_store(&inv_process.record, NULL); /* the slot will be another's */
    atomic_store(&inv_process.sites, NULL);
    atomic_store_explicit(&inv_trace_ring, INV_TRACE_NONE, memory_order_relaxed); /* this, too */
    if (inv_process.alone)
        return;
    /* Its cores are free at once. */
    struct inv_request request = inv_request_of(INV_LEAVE);
    inv_tell_manager(&request, sizeof request);
}
