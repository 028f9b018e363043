/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd.c - the resource manager: options, and the sources of its event loop.
 *
 * It sleeps until something happens: a client connects (connections.c), a member dies or
 * announces a constraint (divide.c), a core is to go to another user (users_divide.c), its launcher
 * goes away, a signal comes.
 *
 * Without --private and --node it is a service: it has a configuration file (settings.c), and
 * serves all users if root runs it.  On a further node of a launch (--node) it has no launcher, and
 * ends when there has been no process for a while.  The private form (--private) belongs to one
 * `invade`: it ends when the other end of its ready descriptor is closed, however the launcher
 * ended.  Both have abstract sockets, so that no file is left.
 */
#define _GNU_SOURCE
#include "config.h"
#include "libinvasive/base/cpus.h"
#include "rmd/host/delivery.h"
#include "rmd/restart/fd_holder.h"
#include "rmd/serve/launcher.h"
#include "rmd/loop/log.h"
#include "rmd/loop/loop.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/slice.h"
#include "rmd/users/machine.h"
#include "rmd/serve/metrics.h"
#include "rmd/serve/server.h"
#include "rmd/restart/service.h"
#include "rmd/config/settings.h"
#include "rmd/config/socket_path.h"
#include "rmd/loop/text.h"
#include "rmd/users/users.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONFIG_FILE "/etc/invasive/rmd.conf"
#define SOCKET "/run/invasive/rmd.sock"
#define GROUP "invasive"

enum {
    OPT_PRIVATE = 256,
    OPT_NODE,
    OPT_PROCS,
    OPT_READY_FD,
    OPT_LISTEN_FD,
    OPT_CONFIG,
    OPT_CHECK_CONFIG,
    OPT_FOREGROUND,
    OPT_SYS_ROOT,
    OPT_KEY, /* and the following ones: enum rmd_key */
};

/* How long a node's rmd waits for a first process, or for another one. */
enum { NODE_LINGER_S = 2 };

/* What a key of rmd.conf is called on the command line comes first. */
static const struct argp_option options[] = {
    {"socket", OPT_KEY + RMD_KEY_SOCKET, "NAME", 0,
     "listen on NAME: @NAME for an abstract socket, or a path", 0},
    {NULL, 's', NULL, OPTION_ALIAS, NULL, 0},
    {"cores", OPT_KEY + RMD_KEY_CORES, "LIST", 0, "use these CPUs only, such as 0-3,8", 0},
    {"emulate-cores", OPT_KEY + RMD_KEY_EMULATE_CORES, "MACHINE", 0,
     "pretend to have N cores, or a machine such as \"package:2 numa:2 l3:4 core:4 pu:2\"; no "
     "thread is pinned",
     0},
    {"smt", OPT_KEY + RMD_KEY_SMT, "HOW", 0,
     "hardware threads of a physical core: each is a core of its own (default), all go together "
     "(core), or only the first is used (first)",
     0},
    {"policy", OPT_KEY + RMD_KEY_POLICY, "NAME", 0,
     "how many cores each process owns: workload (default), or another of rmd-policies(7)", 0},
    {"energy-loss", OPT_KEY + RMD_KEY_ENERGY_LOSS, "PERCENT", 0,
     "throughput that policy energy may give away (default 5)", 0},
    {"move-cost-us", OPT_KEY + RMD_KEY_MOVE_COST, "US", 0,
     "what it costs to move a core, in microseconds of a core (default 1000)", 0},
    {"pay-within-ms", OPT_KEY + RMD_KEY_PAY_WITHIN, "MS", 0,
     "time within which a move must have paid for that (default 100)", 0},
    {"power-cap", OPT_KEY + RMD_KEY_POWER_CAP, "WATTS", 0,
     "power of all CPUs together at most, in watts, or with % as a part of their highest power", 0},
    {"temperature-limit", OPT_KEY + RMD_KEY_TEMPERATURE_LIMIT, "DEGREES", 0,
     "keep the CPUs below DEGREES Celsius, by their frequencies or by leaving out cores", 0},
    {"reclaim-bound-us", OPT_KEY + RMD_KEY_RECLAIM_BOUND, "US", 0,
     "an owner takes its core by force after this time (default 5000)", 0},
    {"lend-blocked", OPT_KEY + RMD_KEY_LEND_BLOCKED, "YES|NO", 0,
     "lend the cores of threads that sleep in the kernel (default yes)", 0},
    {"max-cores", OPT_KEY + RMD_KEY_MAX_CORES, "N", 0, "a user has at most N cores", 0},
    {"max-job-cores", OPT_KEY + RMD_KEY_MAX_JOB_CORES, "N", 0, "a launch has at most N cores", 0},
    {"socket-group", OPT_KEY + RMD_KEY_SOCKET_GROUP, "GROUP", 0,
     "the group that may use the socket, * for all users (default " GROUP
     ", if there is one)", 0},
    {"enforce", OPT_KEY + RMD_KEY_ENFORCE, "HOW", 0,
     "keep users to their cores by affinity (default), cpuset, or none", 0},
    {"enforce-on", OPT_KEY + RMD_KEY_ENFORCE_ON, "PROCESSES", 0,
     "on processes that have joined and their descendants (descendants, the default), or on all "
     "processes of a user with a process that has joined (user)", 0},
    {"cgroup", OPT_KEY + RMD_KEY_CGROUP, "DIR", 0,
     "where cpusets are made (default auto: below rmd's own control group)", 0},
    {"check-interval-ms", OPT_KEY + RMD_KEY_CHECK_INTERVAL, "MS", 0,
     "time between two periodic checks, in milliseconds (default 1000)", 0},
    {"log-level", OPT_KEY + RMD_KEY_LOG_LEVEL, "LEVEL", 0,
     "tell events from this level on: error, warning, notice, info (default of the service) or "
     "debug", 0},
    {"metrics", OPT_KEY + RMD_KEY_METRICS, "WHERE", 0,
     "answer HTTP GET /metrics there, for Prometheus: a path, @NAME or 127.0.0.1:PORT", 0},
    {"subuid-file", OPT_KEY + RMD_KEY_SUBUID, "FILE", 0,
     "the file of subordinate user IDs (default /etc/subuid), or none", 0},
    {"verbose", 'v', NULL, 0, "as --log-level=debug", 0},
    {"config", OPT_CONFIG, "FILE", 0,
     "the configuration of the service (default " CONFIG_FILE ", if it is there); options win", 0},
    {"check-config", OPT_CHECK_CONFIG, "FILE", 0,
     "print the errors of a configuration, and end: with status 0 if there are none", 0},
    {"foreground", OPT_FOREGROUND, NULL, 0,
     "stay in the foreground, as it always does: for init scripts and containers", 0},
    {"private", OPT_PRIVATE, NULL, 0, "serve one launcher: end when it ends", 0},
    {"node", OPT_NODE, NULL, 0,
     "serve one node of a launch: end when no process has been there for 2 seconds; CPUs of "
     "--cores that this node does not have do not matter",
     0},
    {"listen-fd", OPT_LISTEN_FD, "N", 0,
     "descriptor N is a socket that listens already, on the name of --socket", 0},
    {"ready-fd", OPT_READY_FD, "N", 0,
     "write \"ready CORES\", and \"uneven\" where cores have several speeds, to descriptor N when clients "
     "may connect; with --private, end when its other end is closed",
     0},
    {"procs", OPT_PROCS, "N", 0,
     "N processes will join; without it, the first process of each job tells how many", 0},
    {"sys-root", OPT_SYS_ROOT, "DIR", 0, "look for proc and sys in DIR instead of /", 0},
    {0}};

enum { GIVEN_MAX = 64 };

struct command_line {
    const char *config, *check, *sys_root;
    bool private, node;
    int ready_fd, listen_fd;
    unsigned procs;
    struct {
        enum rmd_key key;
        const char *value;
    } given[GIVEN_MAX]; /* what wins over the configuration */
    unsigned ngiven;
};

/* Options and settings are written at the start, the settings also when they are read again.  The
 * objects at the end are of the parts that main starts. */
static struct {
    struct command_line line;
    struct rmd_settings settings;
    struct inv_topology topology;
    struct rmd_source signals, linger; /* linger: the timer that ends a node's rmd */
    unsigned lock_tries; /* socket_path.h */
    struct rmd_persisted orders;
    struct rmd_machine_state machine;
    struct rmd_metrics_server metrics;
} rmd = {.line = {.sys_root = "", .ready_fd = -1, .listen_fd = -1},
         .lock_tries = RMD_PATH_LOCK_TRIES};

static unsigned parse_number(struct argp_state *state, const char *arg, unsigned least,
                             unsigned most)
{
    unsigned n = least;
    if (!rmd_number(arg, least, most, &n))
        argp_error(state, "'%s' is not a number from %u to %u", arg, least, most);
    return n;
}

static void give_setting(struct argp_state *state, enum rmd_key key, const char *value)
{
    char why[RMD_CONFIG_MESSAGE];
    struct rmd_settings unused = {0};
    if (!rmd_config_set(&unused, key, value, why))
        argp_error(state, "--%s: %s", rmd_key_name(key), why);
    if (rmd.line.ngiven == GIVEN_MAX)
        argp_error(state, "more than %d options", GIVEN_MAX);
    rmd.line.given[rmd.line.ngiven].key = key;
    rmd.line.given[rmd.line.ngiven++].value = value;
}

static bool is_given(enum rmd_key key)
{
    bool given = false;
    for (unsigned i = 0; i < rmd.line.ngiven; i++)
        given |= rmd.line.given[i].key == key;
    return given;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 's':
        give_setting(state, RMD_KEY_SOCKET, arg);
        return 0;
    case 'v':
        give_setting(state, RMD_KEY_LOG_LEVEL, "debug");
        return 0;
    case OPT_PRIVATE:
        rmd.line.private = true;
        return 0;
    case OPT_NODE:
        rmd.line.node = true;
        return 0;
    case OPT_LISTEN_FD:
        rmd.line.listen_fd = (int)parse_number(state, arg, 3, 1 << 20);
        return 0;
    case OPT_READY_FD:
        rmd.line.ready_fd = (int)parse_number(state, arg, 3, 1 << 20);
        return 0;
    case OPT_PROCS:
        rmd.line.procs = parse_number(state, arg, 1, 1 << 20);
        return 0;
    case OPT_CONFIG:
        rmd.line.config = arg;
        return 0;
    case OPT_CHECK_CONFIG:
        rmd.line.check = arg;
        return 0;
    case OPT_SYS_ROOT:
        rmd.line.sys_root = arg;
        return 0;
    case OPT_FOREGROUND:
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is no option", arg);
        return 0;
    case ARGP_KEY_END:
        if (is_given(RMD_KEY_CORES) && is_given(RMD_KEY_EMULATE_CORES))
            argp_error(state, "--cores and --emulate-cores exclude each other: use one");
        return 0;
    default:
        if (key < OPT_KEY || key >= OPT_KEY + RMD_KEYS)
            return ARGP_ERR_UNKNOWN;
        give_setting(state, (enum rmd_key)(key - OPT_KEY), arg);
        return 0;
    }
}

static bool is_service(void)
{
    return !rmd.line.private && !rmd.line.node;
}

/* Does rmd belong to a job, with which it ends? */
static bool has_job(void)
{
    return rmd.line.node || (rmd.line.private && rmd.line.ready_fd >= 0);
}

/* The configuration, and over it the command line.  False: has said why. */
static bool read_settings(struct rmd_settings *s)
{
    char why[RMD_CONFIG_MESSAGE];
    rmd_config_defaults(s);
    if (!is_service())
        s->log_level = RMD_WARNING;
    else if (rmd_config_load(s, rmd.line.config ? rmd.line.config : CONFIG_FILE, !rmd.line.config))
        return false;
    for (unsigned i = 0; i < rmd.line.ngiven; i++)
        rmd_config_set(s, rmd.line.given[i].key, rmd.line.given[i].value, why);
    return true;
}

/* --- reload */

/* Settings that cannot change while rmd runs stay as they are; logs those that differ. */
static void keep_unreloadable(struct rmd_settings *fresh)
{
    for (int k = 0; k < RMD_KEYS; k++) {
        if (rmd_key_reloadable((enum rmd_key)k))
            continue;
        if (strcmp(fresh->text[k], rmd.settings.text[k]) != 0)
            rmd_log(RMD_WARNING, "key '%s' cannot change while rmd runs: start it again",
                    rmd_key_name((enum rmd_key)k));
        strcpy(fresh->text[k], rmd.settings.text[k]);
    }
    fresh->smt = rmd.settings.smt;
    fresh->power_cap = rmd.settings.power_cap;
    fresh->temperature_limit = rmd.settings.temperature_limit;
    fresh->group = rmd.settings.group;
    fresh->gid = rmd.settings.gid;
    fresh->enforce = rmd.settings.enforce;
}

static void reload_settings(void)
{
    struct rmd_settings fresh;
    rmd_service_reloading();
    if (read_settings(&fresh)) {
        keep_unreloadable(&fresh);
        rmd.settings = fresh;
        rmd_log_set_level(rmd.settings.log_level);
        rmd_users_reconfigured();
        rmd_log(RMD_NOTICE, "the configuration has been read again");
    } else {
        rmd_error("the configuration has errors: the old one stays in force");
    }
    rmd_service_ready(rmd.topology.description);
}

static void handle_signal(struct rmd_source *source, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGHUP && is_service())
        reload_settings();
    else
        rmd_stop(0);
}

/* Before any thread is started, so that all inherit the mask. */
static int watch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    if (!has_job()) {
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that has become too large is an error of write */
    signal(SIGCHLD, SIG_IGN); /* rmd may be a container's first process: the kernel reaps orphans */
    sigprocmask(SIG_BLOCK, &set, NULL);
    rmd.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    rmd.signals.ready = handle_signal;
    return rmd.signals.fd < 0 ? -1 : rmd_watch(&rmd.signals, EPOLLIN);
}

/* Tell the launcher that clients may come, and notice when it goes. */
static int watch_launcher(void)
{
    if (rmd.line.ready_fd >= 0)
        return rmd_launcher_watch(rmd.line.ready_fd, rmd.line.private, &rmd.topology);
    return rmd.line.private ? prctl(PR_SET_PDEATHSIG, SIGTERM) : 0;
}

/* --- the end of a node's rmd */

static void linger_from_now(void)
{
    rmd_ring_at(&rmd.linger, inv_now_ns() + NODE_LINGER_S * UINT64_C(1000000000));
}

static void linger_expired(struct rmd_source *source, uint32_t events)
{
    (void)events;
    if (rmd_timer_rang(source) && !rmd_users_live())
        rmd_stop(0);
}

static int watch_emptiness(void)
{
    if (rmd_timer_open(&rmd.linger, linger_expired))
        return -1;
    linger_from_now();
    return 0;
}

static int find_cores(void)
{
    const char *cores = rmd.settings.text[RMD_KEY_CORES];
    const char *emulated = rmd.settings.text[RMD_KEY_EMULATE_CORES];
    bool first_only = rmd.settings.smt == RMD_SMT_FIRST;
    setenv("HWLOC_PLUGINS_PATH", "", 0); /* they find devices, and load the libraries of those: 10 ms */
    int failed = *emulated ? inv_topology_emulate(&rmd.topology, emulated, first_only)
                           : inv_topology_detect(&rmd.topology, *cores ? cores : NULL, first_only);
    if (failed && rmd.line.node && *cores && errno == ENODEV)
        failed = inv_topology_detect(&rmd.topology, NULL, first_only);
    if (failed && errno == EOVERFLOW)
        rmd_error("this kernel has more than %d possible CPUs: see LIMITS in rmd(8)", INV_MAX_CPUS);
    else if (failed)
        rmd_error("no CPU is left of --cores=%s: see the affinity mask of the process that starts "
                  "rmd (in a shell: taskset -cp $$)",
                  cores);
    else if (rmd.topology.unused)
        rmd_log(RMD_WARNING, "a core table has room for %d CPUs: %u more stay unused; --cores chooses",
                INV_MAX_CORES, rmd.topology.unused);
    return failed;
}

/* Cores of the dead are to be free at once even where every CPU is busy.  rmd runs for some
 * microseconds at a time, so it can ask for a short slice, which lets it run soon after it
 * wakes (Linux 6.12), and for a high priority, which only root gets.  Either may fail. */
static void lower_sched_latency(void)
{
    inv_slice_set(0, INV_SHORT_SLICE_NS);
    if (setpriority(PRIO_PROCESS, 0, -15))
        rmd_debug("running at the usual priority");
}

/* A descriptor for each process, and some for each user. */
static void raise_fd_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* A table is a file to the kernel.  The limit that the user set stays where it suffices, since
 * traces are written under it. */
static int raise_file_size_limit(void)
{
    const rlim_t needed = INV_TABLE_BYTES;
    struct rlimit files;
    if (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur >= needed)
        return 0; /* RLIM_INFINITY is the largest value */
    files.rlim_cur = needed;
    if (files.rlim_max >= needed && !setrlimit(RLIMIT_FSIZE, &files))
        return 0;
    rmd_error("the largest file allowed (RLIMIT_FSIZE) is smaller than a core table: allow %u KiB, "
              "or all by ulimit -f unlimited",
              (unsigned)((needed + 1023) / 1024));
    return -1;
}

/* A dead process's death is seen by pidfd only; there is no second way that does not poll. */
static int check_kernel(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (pidfd < 0) {
        rmd_error("this kernel has no pidfd_open (%s); Linux 5.3 or later is needed",
                  strerror(errno));
        return -1;
    }
    return close(pidfd);
}

/* If rmd is started with stderr closed, the next file that it opens must not get its log lines. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* --- start and end */

static int check_config(const char *path)
{
    struct rmd_settings checked;
    rmd_config_defaults(&checked);
    return rmd_config_load(&checked, path, false) ? 1 : 0;
}

static struct rmd_access access_of(bool several)
{
    struct rmd_access access = {several, rmd.settings.group, rmd.settings.gid};
    const struct group *usual = several ? getgrnam(GROUP) : NULL;
    if (access.group == RMD_GROUP_DEFAULT && usual) {
        access.group = RMD_GROUP_ONE;
        access.gid = usual->gr_gid;
    }
    return access;
}

static const char *socket_name(void)
{
    const char *name = rmd.settings.text[RMD_KEY_SOCKET];
    return *name ? name : SOCKET;
}

static int listen_for_clients(bool several, int handed_over)
{
    struct rmd_access access = access_of(several);
    int fd = rmd.line.listen_fd >= 0 ? rmd.line.listen_fd : handed_over;
    return fd >= 0 ? rmd_server_inherit(fd, &access)
                   : rmd_server_open(socket_name(), &access, &rmd.lock_tries);
}

/* Receives the descriptors that a former rmd on this socket has stored.  False: they are not as
 * expected, and rmd has logged that. */
static bool receive_stored(int *handed_over)
{
    if (!is_service())
        return true;
    if (!rmd_service_receive(handed_over, rmd_users_receive_stored))
        return false;
    if (!rmd_service_can_store()) {
        if (geteuid() == 0)
            rmd_server_make_directory(socket_name());
        rmd_fd_holder_find(socket_name(), rmd_users_receive_stored);
    }
    rmd_users_former_cores(&rmd.topology, rmd.line.sys_root);
    return true;
}

/* Takes over the tables that were received. */
static void take_over_tables(void)
{
    if (!rmd_service_can_store())
        rmd_fd_holder_start(socket_name(), &rmd.lock_tries);
    rmd_users_take_over();
}

static void store_table(uid_t uid, int table_fd, int state_fd)
{
    if (rmd_service_can_store())
        rmd_service_store(uid, table_fd, state_fd);
    else
        rmd_fd_holder_store(uid, table_fd, state_fd);
}

static void store_orders(int fd)
{
    if (rmd_service_can_store())
        rmd_service_store_orders(fd);
    else
        rmd_fd_holder_store_orders(fd);
}

static bool limit_temperature(void)
{
    unsigned ordered = rmd.machine.heat.ordered;
    unsigned degrees = !ordered ? rmd.settings.temperature_limit : ordered == RMD_PERSISTED_OFF ? 0 : ordered;
    if (!degrees || rmd_heat_keep_below(&rmd.machine.heat, degrees))
        return true;
    if (ordered) {
        rmd_log(RMD_WARNING, "the limit of %u degrees, which was ordered before, does not hold: no sensor tells the "
                             "temperature of the CPUs", degrees);
        return true;
    }
    rmd_error("--temperature-limit: no sensor tells the temperature of the CPUs (hwmon, thermal zones)");
    return false;
}

/* -1, and has said why: end() is to be called then, too. */
static int start_rmd(void)
{
    bool several = is_service() && geteuid() == 0;
    int handed_over = -1;
    const struct rmd_users_options users = {
        .procs_hint = rmd.line.procs,
        .sys_root = rmd.line.sys_root,
        .several = several,
        .leaves_to_checks = rmd.line.private,
        .emptied = rmd.line.node ? linger_from_now : NULL,
        .store = is_service() ? store_table : NULL,
        .orders = is_service() ? &rmd.orders : NULL,
        .machine = &rmd.machine,
    };
    rmd.orders.store = store_orders;
    if (has_job())
        rmd_launcher_outlive_signals(); /* first: the launcher counts on it */
    lower_sched_latency(); /* to find the cores takes a turn on each of them */
    if (check_kernel() || raise_file_size_limit() || find_cores())
        return -1;
    raise_fd_limit();
    bool good = !watch_signals();
    if (good && !receive_stored(&handed_over))
        return -1;
    rmd_speeds_find(&rmd.topology, rmd.line.sys_root);
    if (!good || rmd_users_open(&rmd.topology, &rmd.settings, &users) ||
        (rmd.line.node && watch_emptiness())) {
        rmd_error("cannot start: %s", strerror(errno));
        return -1;
    }
    if (is_service())
        take_over_tables();
    const char *metrics = rmd.settings.text[RMD_KEY_METRICS];
    if (listen_for_clients(several, handed_over) ||
        !rmd_machine_cap(&rmd.machine, rmd.line.sys_root, rmd.settings.power_cap, users.orders) ||
        !limit_temperature() ||
        (*metrics &&
         rmd_metrics_serve(&rmd.metrics, metrics, rmd_server_control(), &rmd.lock_tries)))
        return -1;
    if (watch_launcher()) {
        rmd_error("cannot reach the launcher: %s", strerror(errno));
        return -1;
    }
    return 0;
}

/* Ends all parts of rmd that have been started, also after an error in start_rmd. */
static void end_rmd(void)
{
    rmd_machine_close(&rmd.machine);
    rmd_server_close();
    rmd_metrics_close(&rmd.metrics);
    rmd_users_close();
    rmd_fd_holder_close(); /* last: the others have stored or dropped their descriptors by then */
}

int main(int argc, char **argv)
{
    static const struct argp argp = {.options = options, .parser = parse_option,
                                     .doc = "rmd - moves cores between the processes of a node"};
    argp_program_version = "rmd " PACKAGE_VERSION;
    open_standard_files();
    rmd_log_open();
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    if (rmd.line.check)
        return check_config(rmd.line.check);
    if (is_service())
        rmd_log_dated();
    rmd_log_no_wait();
    if (!read_settings(&rmd.settings))
        return 1;
    rmd_log_set_level(rmd.settings.log_level);
    if (start_rmd()) {
        end_rmd();
        return 1;
    }
    if (is_service()) {
        rmd_log(RMD_NOTICE, "serving %s", rmd.topology.description);
        rmd_service_ready(rmd.topology.description);
    }
    rmd_debug("%s, socket %s", rmd.topology.description, socket_name());
    int status = rmd_loop();
    if (is_service()) {
        rmd_log(RMD_NOTICE, "ending");
        rmd_service_stopping();
    }
    end_rmd();
    return status;
}
