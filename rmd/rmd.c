/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd.c - the resource manager: options, and the sources of its event loop.
 *
 * It sleeps until something happens: a client connects (server.c), a member dies or
 * announces a constraint (domain.c), its launcher goes away, a signal comes.
 *
 * The form for a further node of a launch (--node) is nobody's: it ends when no process has
 * been there for a while.  The embedded form (--private) belongs to one `invade`: it ends when
 * the other end of its ready descriptor is closed, however the launcher ended.  The socket of
 * both is abstract, so that nothing is left.
 */
#define _GNU_SOURCE
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "domain.h"
#include "machine.h"
#include "server.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "(version unknown)"
#endif

enum {
    OPT_PRIVATE = 256,
    OPT_NODE,
    OPT_CORES,
    OPT_EMULATE,
    OPT_PROCS,
    OPT_BOUND,
    OPT_READY_FD,
    OPT_LISTEN_FD,
    OPT_POLICY,
    OPT_SMT,
    OPT_ENERGY_LOSS,
    OPT_MOVE_COST,
    OPT_PAY_WITHIN,
    OPT_POWER_CAP,
    OPT_SYS_ROOT
};

/* How long a node's rmd waits for a first process, or for another one. */
enum { NODE_LINGER_S = 2 };

static const struct argp_option options[] = {
    {"socket", 's', "NAME", 0, "listen on NAME: @NAME for an abstract socket, or a path", 0},
    {"private", OPT_PRIVATE, NULL, 0, "serve one launcher: end when it ends", 0},
    {"node", OPT_NODE, NULL, 0,
     "serve one node of a launch: end when no process has been there for 2 seconds; CPUs of "
     "--cores that this node does not have do not matter",
     0},
    {"listen-fd", OPT_LISTEN_FD, "N", 0,
     "descriptor N listens already, on the name of --socket", 0},
    {"ready-fd", OPT_READY_FD, "N", 0,
     "write \"ready CORES\" to descriptor N when clients may connect; with --private, end when "
     "its other end is closed",
     0},
    {"cores", OPT_CORES, "LIST", 0, "use these CPUs only, such as 0-3,8", 0},
    {"emulate-cores", OPT_EMULATE, "MACHINE", 0,
     "pretend to have N cores, or a machine such as \"package:2 numa:2 l3:4 core:4 pu:2\"; nobody "
     "is pinned",
     0},
    {"procs", OPT_PROCS, "N", 0, "N processes will join; without it, each first one tells", 0},
    {"policy", OPT_POLICY, "NAME", 0,
     "who owns how many cores: workload (default), or another of rmd(8)", 0},
    {"energy-loss", OPT_ENERGY_LOSS, "PERCENT", 0,
     "throughput that policy energy may give away (default 5)", 0},
    {"move-cost-us", OPT_MOVE_COST, "US", 0,
     "what it costs to move a core, in microseconds of a core (default 1000)", 0},
    {"pay-within-ms", OPT_PAY_WITHIN, "MS", 0,
     "time within which a move must have paid for that (default 100)", 0},
    {"power-cap", OPT_POWER_CAP, "WATTS", 0,
     "what the CPUs may take together, or with % what part of the most that they may", 0},
    {"sys-root", OPT_SYS_ROOT, "DIR", 0, "look for proc and sys in DIR instead of /", 0},
    {"smt", OPT_SMT, "HOW", 0,
     "hardware threads of a physical core: each is a core of its own (default), all go together "
     "(core), or only the first is used (first)",
     0},
    {"reclaim-bound-us", OPT_BOUND, "US", 0,
     "an owner takes its core by force after this time (default 5000)", 0},
    {"verbose", 'v', NULL, 0, "say on stderr what happens", 0},
    {0}};

struct settings {
    const char *socket, *cores, *sys_root;
    struct rmd_power_cap power_cap;
    bool private, node;
    int ready_fd, listen_fd;
    const char *emulate;
};

static struct rmd_domain domain;

static unsigned number(struct argp_state *state, const char *arg, unsigned least, unsigned most)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(arg, &end, 10);
    if (*arg < '0' || *arg > '9' || *end || errno || n < least || n > most)
        argp_error(state, "'%s' is not a number from %u to %u", arg, least, most);
    return (unsigned)n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct settings *s = state->input;
    switch (key) {
    case 's':
        s->socket = arg;
        return 0;
    case OPT_PRIVATE:
        s->private = true;
        return 0;
    case OPT_NODE:
        s->node = true;
        return 0;
    case OPT_LISTEN_FD:
        s->listen_fd = (int)number(state, arg, 3, 1 << 20);
        return 0;
    case OPT_READY_FD:
        s->ready_fd = (int)number(state, arg, 3, 1 << 20);
        return 0;
    case OPT_CORES:
        s->cores = arg;
        return 0;
    case OPT_EMULATE:
        s->emulate = arg;
        return 0;
    case OPT_PROCS:
        domain.procs_hint = number(state, arg, 1, 1 << 20);
        return 0;
    case OPT_BOUND:
        domain.reclaim_bound_us = number(state, arg, 1, 60000000);
        return 0;
    case OPT_SMT:
        if (strcmp(arg, "each") && strcmp(arg, "core") && strcmp(arg, "first"))
            argp_error(state, "'%s' is not how threads are used: use each, core or first", arg);
        domain.smt = arg[0] == 'e'   ? RMD_SMT_EACH
                     : arg[0] == 'c' ? RMD_SMT_CORE
                                     : RMD_SMT_FIRST;
        return 0;
    case OPT_POLICY:
        domain.policy = rmd_policy_named(arg);
        if (!domain.policy)
            argp_error(state, "'%s' is no policy: use %s", arg, rmd_policy_names());
        return 0;
    case OPT_ENERGY_LOSS:
        domain.tuning.energy_loss = number(state, arg, 0, 99) / 100.0;
        return 0;
    case OPT_MOVE_COST:
        domain.tuning.move_cost_s = number(state, arg, 0, 60000000) * 1e-6;
        return 0;
    case OPT_PAY_WITHIN:
        domain.tuning.within_s = number(state, arg, 1, 3600000) * 1e-3;
        return 0;
    case OPT_POWER_CAP:
        if (!rmd_power_parse(arg, &s->power_cap))
            argp_error(state, "'%s' is no power: use watts, such as 95, or 80%%", arg);
        return 0;
    case OPT_SYS_ROOT:
        s->sys_root = arg;
        return 0;
    case 'v':
        rmd_verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void signal_came(struct rmd_source *source, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof info) == sizeof info)
        rmd_stop(0);
}

static void launcher_gone(struct rmd_source *source, uint32_t events)
{
    (void)source;
    (void)events;
    rmd_stop(0);
}

/* Before any thread is started, so that all inherit the mask. */
static int watch_signals(void)
{
    static struct rmd_source source = {.ready = signal_came};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    source.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return source.fd < 0 ? -1 : rmd_watch(&source, EPOLLIN);
}

/* Tell the launcher that clients may come, and notice when it goes. */
static int watch_launcher(const struct settings *s)
{
    static struct rmd_source source = {.ready = launcher_gone};
    if (s->ready_fd < 0)
        return s->private ? prctl(PR_SET_PDEATHSIG, SIGTERM) : 0;
    char line[32];
    int n = snprintf(line, sizeof line, "ready %u\n", domain.topology.ncores);
    if (write(s->ready_fd, line, (size_t)n) != n)
        return -1;
    if (s->node)
        return close(s->ready_fd);
    source.fd = s->ready_fd;
    return s->private ? rmd_watch(&source, EPOLLRDHUP) : 0; /* HUP and ERR come unasked */
}

/* --- the end of a node's rmd */

static struct rmd_source linger;

static void linger_from_now(void)
{
    const struct itimerspec t = {.it_value.tv_sec = NODE_LINGER_S};
    timerfd_settime(linger.fd, 0, &t, NULL);
}

static void lingered(struct rmd_source *source, uint32_t events)
{
    uint64_t expirations;
    (void)events;
    if (read(source->fd, &expirations, sizeof expirations) == sizeof expirations && !domain.live)
        rmd_stop(0);
}

static int watch_emptiness(void)
{
    linger = (struct rmd_source){timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                                 lingered};
    if (linger.fd < 0)
        return -1;
    domain.emptied = linger_from_now;
    linger_from_now();
    return rmd_watch(&linger, EPOLLIN);
}

static int find_cores(const struct settings *s)
{
    bool first_only = domain.smt == RMD_SMT_FIRST;
    int failed = s->emulate ? inv_topology_emulate(&domain.topology, s->emulate, first_only)
                            : inv_topology_detect(&domain.topology, s->cores, first_only);
    if (failed && s->node && s->cores && errno == ENODEV)
        failed = inv_topology_detect(&domain.topology, NULL, first_only);
    if (!failed)
        return 0;
    if (errno == EINVAL && s->emulate)
        rmd_say("--emulate-cores=%s is neither a number from 1 to %d nor a machine with so many "
                "cores, such as \"package:2 core:4 pu:2\"", s->emulate, INV_MAX_CORES);
    else if (errno == EINVAL)
        rmd_say("--cores=%s is not a list of CPUs such as 0-3,8", s->cores);
    else
        rmd_say("no CPU is left of --cores=%s: see the affinity mask (taskset -p %d)",
                s->cores ? s->cores : "", (int)getpid());
    return -1;
}

/* Cores of the dead are to be free at once even where every CPU is busy.  rmd runs for some
 * microseconds at a time, so it can ask for a short slice, which lets it run soon after it
 * wakes (Linux 6.12), and for a high priority, which only root gets.  Either may fail. */
static void be_prompt(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = {.size = sizeof attributes, .runtime_ns = 100000};
    syscall(SYS_sched_setattr, 0, &attributes, 0);
    if (setpriority(PRIO_PROCESS, 0, -15))
        rmd_chat("running at the usual priority");
}

/* A dead process's death is seen by pidfd only; there is no second way that does not poll. */
static int check_kernel(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (pidfd < 0) {
        rmd_say("this kernel has no pidfd_open (%s); Linux 5.3 or later is needed",
                strerror(errno));
        return -1;
    }
    return close(pidfd);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse, NULL, "rmd - moves cores between the processes of a node",
        NULL,    NULL,  NULL};
    struct settings s = {
        .socket = "/run/invasive/rmd.sock", .sys_root = "", .ready_fd = -1, .listen_fd = -1};
    argp_program_version = "rmd " PACKAGE_VERSION;
    domain.policy = &rmd_policies[0];
    domain.tuning = (struct rmd_tuning)RMD_TUNING;
    domain.reclaim_bound_us = 5000;
    argp_parse(&argp, argc, argv, 0, NULL, &s);
    if (check_kernel() || find_cores(&s))
        return 1;
    be_prompt();
    if (watch_signals() || rmd_domain_open(&domain) || (s.node && watch_emptiness()) ||
        rmd_machine_watch(&domain, s.sys_root)) {
        rmd_say("cannot start: %s", strerror(errno));
        return 1;
    }
    if (s.listen_fd >= 0 ? rmd_server_inherit(s.listen_fd, &domain)
                         : rmd_server_open(s.socket, &domain))
        return 1;
    if (!rmd_machine_cap(s.sys_root, s.power_cap)) {
        rmd_server_close();
        return 1;
    }
    if (watch_launcher(&s)) {
        rmd_say("cannot reach the launcher: %s", strerror(errno));
        rmd_machine_close();
        rmd_server_close();
        return 1;
    }
    rmd_chat("%s, socket %s", domain.topology.description, s.socket);
    int status = rmd_loop();
    rmd_machine_close();
    rmd_server_close();
    rmd_domain_close(&domain);
    return status;
}
