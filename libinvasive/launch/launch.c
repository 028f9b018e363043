/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * launch.c - starting the resource manager of a node from the first process that finds none.
 *
 * The starter binds and listens, and rmd inherits the socket: a process that comes meanwhile
 * either cannot bind, or connects and is answered when rmd is ready.  Were rmd to bind, every
 * rank of a node would start one.
 *
 * This process is a user's program.  rmd must not be its child, since the program may wait for any
 * child, and the program must not notice the end of a child that it has not made.  A fork would run
 * the program's fork handlers and copy page tables of any size.  So this process makes a clone,
 * which makes another clone; both share its memory while it is stopped.  The first clone ends
 * without a signal, and only this function waits for it.  The second clone then has no parent in
 * the program, and becomes rmd.
 */
#define _GNU_SOURCE
#include "libinvasive/launch/launch.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/environment.h"
#include "libinvasive/base/hash.h"
#include "libinvasive/launch/step.h"
#include "libinvasive/table/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    READY_FD = 3,
    LISTEN_FD = 4,
    ABOVE_FD = 5, /* descriptors of this file are this or higher, and are moved to those two in
                     rmd */
    READY_TIMEOUT_MS = 10000,
    STACK_BYTES = 1 << 16,
    OLD_KERNEL_FDS = 65536, /* to be closed one by one before Linux 5.9 */
};

/* --- what the environment says */

static bool parse_words(struct inv_launch *l, char *text)
{
    char *rest = text, *word;
    l->nwords = 0;
    while ((word = strsep(&rest, "/")) != NULL) {
        if (l->nwords == INV_LAUNCH_WORDS)
            return false;
        if (*word)
            l->word[l->nwords++] = word;
    }
    return true;
}

bool inv_launch_parse(struct inv_launch *l, const char *text)
{
    l->socket[0] = '\0';
    l->nwords = 0;
    if (!text || strlen(text) >= sizeof l->text)
        return false;
    strcpy(l->text, text);
    char *node = strchr(l->text, '/'), *end;
    if (!node || node == l->text || node - l->text >= (ptrdiff_t)sizeof l->socket - 1)
        return false;
    *node++ = '\0';
    l->node = strtoull(node, &end, 16);
    if (end == node || (*end && *end != '/') || !parse_words(l, *end ? end + 1 : end))
        return false;
    snprintf(l->socket, sizeof l->socket, "@%s", l->text);
    return true;
}

/* The first bytes of a small file; "" when there are none. */
static void read_file(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, bytes - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

uint64_t inv_boot_hash(void)
{
    char boot[64];
    read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    return inv_hash_text(INV_HASH_BASIS, boot);
}

uint64_t inv_node_id(void)
{
    struct stat net;
    uint64_t hash = inv_boot_hash();
    if (!stat("/proc/self/ns/net", &net))
        hash = inv_hash(hash, &net.st_ino, sizeof net.st_ino);
    return hash ? hash : 1;
}

/* The process that made the socket PMI_FD: MPICH's proxy on this node, Slurm's step daemon. */
static pid_t pmi_server(void)
{
    const char *text = inv_getenv("PMI_FD");
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (!text || getsockopt(atoi(text), SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return 0;
    return peer.pid;
}

/* When a process was started, in clock ticks: pid and start time identify a process for good. */
static unsigned long long start_time(pid_t pid)
{
    char path[32], text[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    read_file(path, text, sizeof text);
    const char *after_name = strrchr(text, ')');
    if (after_name)
        sscanf(after_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks);
    return ticks;
}

bool inv_job_name(char *name, size_t bytes)
{
    static const char *const sets[][2] = {
        {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"}, /* Open MPI, and what else has PMIx */
        {"SLURM_JOB_ID", "SLURM_STEP_ID"},
        {"PMI_PORT", "PMI_ID"}, /* MPICH with -pmi-port; PMI_ID shows that we are a rank */
    };
    pid_t server = pmi_server();
    uint64_t hash = INV_HASH_BASIS;
    if (server > 0) {
        unsigned long long ticks = start_time(server);
        hash = inv_hash(inv_hash(hash, &server, sizeof server), &ticks, sizeof ticks);
        snprintf(name, bytes, "%016llx", (unsigned long long)hash);
        return true;
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const char *job = inv_getenv(sets[i][0]), *more = inv_getenv(sets[i][1]);
        if (!job || !more)
            continue;
        hash = inv_hash_text(hash, job);
        if (i < 2)
            hash = inv_hash_text(inv_hash(hash, "", 1), more);
        snprintf(name, bytes, "%016llx", (unsigned long long)hash);
        return true;
    }
    return false;
}

static uint64_t find_mark(void)
{
    char name[32];
    if (inv_job_name(name, sizeof name))
        return inv_hash_text(INV_HASH_BASIS, name) | 1;
    const char *text = inv_getenv("INVASIVE_LAUNCH");
    return text && *text ? inv_hash(INV_HASH_BASIS, text, strcspn(text, "/")) | 1 : 0;
}

/* MPI_Finalize closes the socket that tells a job, and its number may be another one's then. */
uint64_t inv_launch_mark(void)
{
    /* Writers: threads that call this function. */
    static struct {
        _Atomic uint64_t mark; /* two threads at once find the same; partners: each other */
        _Atomic bool found;
    } answer;
    if (!atomic_load(&answer.found)) {
        atomic_store(&answer.mark, find_mark());
        atomic_store(&answer.found, true);
    }
    return atomic_load(&answer.mark);
}

/* --- starting it */

struct start {
    const char *rmd;
    char **argv, **envp;
    int ready, listener;
    bool has_mask;
    struct inv_cpus mask;
    char *stack; /* of the second clone */
};

/* A message that needs no memory and no lock, in any C library. */
static const char *error_text(int error)
{
#ifdef __GLIBC__
    return strerrordesc_np(error);
#else
    return strerror(error);
#endif
}

/* In the second clone.  Only system calls: we share the memory of a process that may be in the
 * middle of anything. */
static int become_rmd(void *argument)
{
    struct start *s = argument;
    sigset_t none;
    setsid();
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    if (s->has_mask)
        inv_cpus_set(0, &s->mask);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(s->ready, 2) < 0 ||
        dup2(s->ready, READY_FD) < 0 || dup2(s->listener, LISTEN_FD) < 0 || chdir("/"))
        _exit(1);
    if (syscall(SYS_close_range, ABOVE_FD, ~0u, 0)) /* glibc has it since 2.34, musl not */
        for (int fd = ABOVE_FD; fd < OLD_KERNEL_FDS; fd++)
            close(fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execve, s->rmd, s->argv, s->envp); /* not our own execve of spawn.c */
    const char *why = error_text(errno);
    ssize_t ignored = write(READY_FD, why, strlen(why));
    (void)ignored;
    _exit(1);
}

static int detach_child(void *argument)
{
    struct start *s = argument;
    clone(become_rmd, s->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
    _exit(0);
}

/* Copies the environment without the variables of ranks: an rmd with these would look for a
 * resource manager, as a managed process does. */
static void copy_environment(char **to)
{
    static const char *const not_ours[] = {"LD_PRELOAD=", "INVASIVE", "PMI", "OMPI_", "MPI"};
    for (char **from = environ; from && *from; from++) {
        bool keep = true;
        for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
            keep = keep && strncmp(*from, not_ours[i], strlen(not_ours[i])) != 0;
        if (keep)
            *to++ = *from;
    }
    *to = NULL;
}

static int spawn_rmd(struct start *s)
{
    sigset_t all, mask;
    char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return -1;
    s->stack = stacks + STACK_BYTES;
    /* No handler may run in the clones: it would write to this process's memory. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid_t child = clone(detach_child, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, s);
    int error = errno;
    while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    munmap(stacks, 2 * STACK_BYTES);
    errno = error;
    return child > 0 ? 0 : -1;
}

/* Waits until rmd writes "ready CORES".  False: *why has what rmd has written before it ended. */
static bool wait_ready(int fd, char *why, size_t why_bytes)
{
    size_t n = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        int ready = poll(&p, 1, READY_TIMEOUT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready != 1) {
            snprintf(why, why_bytes, "it did not become ready in 10 seconds");
            return false;
        }
        ssize_t got = read(fd, why + n, why_bytes - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        inv_assert(n < why_bytes);
        why[n] = '\0';
        if (!strncmp(why, "ready ", 6))
            return true;
    }
    why[n] = '\0';
    why[strcspn(why, "\n")] = '\0';
    if (!n)
        snprintf(why, why_bytes, "it ended at once");
    return false;
}

static int move_descriptor_up(int fd)
{
    int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ABOVE_FD);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return up;
}

/* A listening socket; -1 with errno EADDRINUSE when the name is taken. */
static int listen_on(const char *name)
{
    struct sockaddr_un address;
    socklen_t size = inv_socket_address(&address, name);
    int fd = move_descriptor_up(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 1024))) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The CPUs that rmd may use: this process may be bound to a part of them. */
static bool find_cpus(struct inv_cpus *cpus)
{
    pid_t launcher = pmi_server();
    return inv_step_cpus(cpus) || !inv_cpus_get(launcher > 0 ? launcher : getppid(), cpus);
}

/* With the listening socket and the pipe's writing end, which are closed here. */
static int start_rmd(const struct inv_launch *l, const char *rmd, int listener, int ready)
{
    char socket_arg[128];
    char *argv[INV_LAUNCH_WORDS + 6] = {(char *)"rmd", (char *)"--node",
                                          (char *)"--ready-fd=3", (char *)"--listen-fd=4",
                                          socket_arg};
    size_t count = 0;
    while (environ && environ[count])
        count++;
    /* become_rmd moves both to lower numbers, one after the other */
    inv_assert(listener >= ABOVE_FD && ready >= ABOVE_FD && l->nwords <= INV_LAUNCH_WORDS);
    struct start s = {.rmd = rmd,
                      .argv = argv,
                      .envp = calloc(count + 1, sizeof *s.envp),
                      .ready = ready,
                      .listener = listener};
    s.has_mask = find_cpus(&s.mask);
    snprintf(socket_arg, sizeof socket_arg, "--socket=%s", l->socket);
    for (int i = 0; i < l->nwords; i++)
        argv[5 + i] = (char *)l->word[i];
    int failed = -1;
    if (s.envp) {
        copy_environment(s.envp);
        failed = spawn_rmd(&s);
    }
    int error = errno;
    free(s.envp);
    close(listener);
    close(ready);
    errno = error;
    return failed;
}

enum inv_started inv_launch_start(const struct inv_launch *l, const char *rmd, char *why,
                                  size_t why_bytes)
{
    int ready[2], listener = listen_on(l->socket);
    if (listener < 0 && errno == EADDRINUSE)
        return INV_START_RACED;
    if (listener < 0 || pipe2(ready, O_CLOEXEC)) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        if (listener >= 0)
            close(listener);
        return INV_START_FAILED;
    }
    ready[1] = move_descriptor_up(ready[1]);
    bool good = false;
    if (ready[1] < 0 || start_rmd(l, rmd, listener, ready[1]))
        snprintf(why, why_bytes, "%s", strerror(errno));
    else
        good = wait_ready(ready[0], why, why_bytes);
    close(ready[0]);
    return good ? INV_STARTED : INV_START_FAILED;
}
