/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* manager.c - see manager.h. */
#define _GNU_SOURCE
#include "libinvasive/member/manager.h"
#include "libinvasive/base/complain.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/launch/preload.h"
#include "libinvasive/launch/step.h"
#include "libinvasive/table/socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { JOIN_TIMEOUT_S = 5, NODE_TRIES = 1000, CUT_OFF_TRIES = 5 };

static struct {
    /* What the environment said when we were loaded; void unless has_launch.  Writer: read_launch,
     * before a thread can ask */
    struct inv_launch launch;
    bool has_launch;
    /* The file that this library was loaded from, NULL unknown; only with has_launch.
     * Written by the constructor: dladdr waits for the loader's lock, whose holder may be waiting for us
     * (the constructor of a plugin that uses OpenMP).  Read by rmd_path */
    const char *own_file;
    /* The number of cores of this node's rmd as far as that has answered, 0 unknown.  Writers: threads
     * that ask; relaxed: a number */
    _Atomic unsigned cores;
    /* Of inv_manager_is_there: 0 not asked yet, 1 yes, 2 no.  Writers: threads that ask; relaxed */
    _Atomic int answer;
} manager;

void inv_complain(const char *format, ...)
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
    if (manager.own_file) {
        const char *slash = strrchr(manager.own_file, '/');
        int n = snprintf(path, bytes, "%.*s/../../bin/rmd",
                         slash ? (int)(slash - manager.own_file) : 1,
                         slash ? manager.own_file : ".");
        if (n > 0 && (size_t)n < bytes && !access(path, X_OK))
            return path;
    }
    return INV_BINDIR "/rmd";
}

/* Connects to the launch's rmd on this node, or starts it.  A process that connects while the rmd
 * ends, for it has no members any more, is cut off and comes back here. */
static int connect_to_node(void)
{
    char path[4096], why[256];
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int tries = 0; tries < NODE_TRIES; tries++) {
        int fd = connect_to(manager.launch.socket);
        if (fd >= 0 || errno != ECONNREFUSED)
            return fd;
        const char *rmd = rmd_path(path, sizeof path);
        switch (inv_launch_start(&manager.launch, rmd, why, sizeof why)) {
        case INV_START_FAILED:
            inv_complain("invasive: cannot start %s on this node (%s). Running unmanaged.", rmd, why);
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

/* Is this a further node of the launch, not the one on which invade runs?  Asked only if the rmd of
 * INVASIVE_SOCKET cannot be reached: the node's number takes 25 us to find, and few processes need
 * it.  errno is kept. */
static bool is_further_node(void)
{
    int error = errno;
    bool further = manager.has_launch && manager.launch.node != inv_node_id();
    errno = error;
    return further;
}

/* Connects to the rmd of this process: the one that INVASIVE_SOCKET names, or on a further node of
 * the launch that node's.  Sets *where to its socket's name.  -1 with errno; errno 0: stderr has
 * been told the reason. */
static int reach_manager(const char **where)
{
    *where = inv_getenv("INVASIVE_SOCKET");
    int fd = connect_to_service(*where);
    if (fd >= 0 || !is_further_node())
        return fd;
    *where = manager.launch.socket;
    return connect_to_node();
}

static void complain_unreachable(const char *where)
{
    char unfit[INV_SOCKET_UNFIT];
    if (errno && inv_socket_unfit(where, unfit))
        inv_complain("invasive: %s: set INVASIVE_SOCKET to another one. Running unmanaged.", unfit);
    else if (errno)
        inv_complain("invasive: cannot reach rmd at %s (%s): is it running? Running unmanaged.", where,
                     strerror(errno));
}

bool inv_manager_ask(const struct inv_request *request, struct inv_reply *reply, int *table_fd,
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
        bool comes_back = *where == manager.launch.socket || **where == '/';
        if (cut_off && comes_back && tries < CUT_OFF_TRIES)
            continue;
        if (error == EAGAIN) /* the time limit of the socket */
            inv_complain("invasive: rmd at %s has not answered for %d s: is it stopped? Running "
                         "unmanaged.", *where, JOIN_TIMEOUT_S);
        else
            inv_complain("invasive: rmd at %s did not answer as expected (%s): is it of another "
                         "version? Running unmanaged.", *where, strerror(error));
        return false;
    }
}

/* Asks the rmd of a further node for its number of cores, which the environment does not say. */
static bool node_answers(void)
{
    struct inv_request request = inv_request_of(INV_OBSERVE);
    struct inv_reply reply;
    const char *where;
    int table_fd;
    if (!inv_manager_ask(&request, &reply, &table_fd, &where))
        return false;
    if (table_fd >= 0)
        close(table_fd);
    if (reply.status == INV_OK && reply.count > 0 && reply.count <= INV_MAX_CORES) {
        atomic_store_explicit(&manager.cores, reply.count, memory_order_relaxed);
        return true;
    }
    inv_complain("invasive: rmd at %s refused this process (%s). Running unmanaged.", where,
                 reply.message);
    return false;
}

bool inv_is_confined(void)
{
    char job[32];
    const char *text = inv_getenv("INVASIVE_LAUNCH");
    return text && inv_step_is_ours() &&
           !(inv_job_name(job, sizeof job) && strstr(text, job) != NULL);
}

/* Counts the cores of the Slurm step that this process is of.  invade's own rmd has all cores of
 * invade, and learns the step's cores only as its tasks join; and a task that has joined may be
 * bound to fewer. */
static void count_step_cores(const char *where)
{
    struct inv_cpus cpus;
    if (*where == '@' && inv_is_confined() && inv_step_cpus(&cpus))
        atomic_store_explicit(&manager.cores, (unsigned)inv_cpus_count(&cpus), memory_order_relaxed);
}

/* For inv_manager_is_there: the OpenMP runtime asks when it decides on its default team size, which
 * is the stock one without an rmd. */
static bool environment_wants(void)
{
    INV_UNDISTURBED;
    const char *where = inv_getenv("INVASIVE_SOCKET");
    if (!where || !*where || inv_switched_off() || inv_getenv(INV_STOCK_VARIABLE))
        return false;
    int fd = connect_to_service(where);
    if (fd < 0 && is_further_node())
        return node_answers();
    if (fd < 0) {
        complain_unreachable(where);
        return false;
    }
    close(fd);
    count_step_cores(where);
    return true;
}

bool inv_manager_is_there(void)
{
    if (atomic_load_explicit(&manager.answer, memory_order_relaxed) == 0)
        atomic_store_explicit(&manager.answer, environment_wants() ? 1 : 2, memory_order_relaxed);
    return atomic_load_explicit(&manager.answer, memory_order_relaxed) == 1;
}

unsigned inv_manager_cores(void)
{
    return atomic_load_explicit(&manager.cores, memory_order_relaxed);
}

bool inv_send_to_manager(const struct inv_request *request, size_t bytes)
{
    INV_UNDISTURBED;
    const char *where = inv_getenv("INVASIVE_SOCKET");
    int fd = connect_to(where);
    if (fd < 0 && is_further_node())
        fd = connect_to(manager.launch.socket);
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

/* 101: before load_tool, which calls a tool. */
static void __attribute__((constructor(101))) read_launch(void)
{
    const char *text = inv_getenv("INVASIVE_LAUNCH");
    manager.has_launch = text && inv_launch_parse(&manager.launch, text);
    Dl_info own;
    if (manager.has_launch && dladdr((void *)read_launch, &own))
        manager.own_file = own.dli_fname;
}
