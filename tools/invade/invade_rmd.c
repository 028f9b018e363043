/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_rmd.c - the resource manager of this run: one that is there, or a private one.
 *
 * A private rmd ends with invade, however invade ends: it watches the other end of invade's control
 * socket, which no process inherits, and the kernel kills it when invade dies.  Of invade's
 * descriptors it gets only stderr, so that it holds no pipe open whose reader waits for the end.
 * It has a session of its own, so that the terminal's Ctrl-C does not reach it.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_FD = 3, READY_TIMEOUT_MS = 10000 };

bool invade_use(struct invade_manager *m, const char *name)
{
    /* waits: else invade would start a private rmd with the same cores */
    struct inv_table *table = rmd_client_await(name);
    if (!table)
        return false;
    strcpy(m->socket, name); /* it fits: it is a socket's */
    m->ncores = table->ncores;
    m->emulated = table->emulated;
    m->uneven = false;
    for (unsigned c = 1; c < table->ncores && c < INV_MAX_CORES; c++)
        m->uneven |= inv_core_at(table, c)->speed != inv_core_at(table, 0)->speed;
    m->pid = 0;
    m->control = -1;
    inv_table_unmap(table);
    return true;
}

/* Becomes rmd, in the child.  invade has no threads, so any function may be called here. */
static void become_rmd(const char *rmd, char *const argv[], int control, pid_t launcher)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(INVADE_FAILED);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(control, READY_FD) < 0)
        _exit(INVADE_FAILED);
    close_range(READY_FD + 1, ~0u, 0);
    if (chdir("/"))
        _exit(INVADE_FAILED);
    execv(rmd, argv);
    _exit(errno == ENOENT ? INVADE_NOT_FOUND : INVADE_CANNOT_RUN);
}

/* Wait for "ready CORES\n", or "ready CORES uneven\n". */
static bool wait_ready(struct invade_manager *m)
{
    char line[32] = "";
    struct pollfd p = {.fd = m->control, .events = POLLIN};
    if (poll(&p, 1, READY_TIMEOUT_MS) != 1)
        return false;
    ssize_t n = read(m->control, line, sizeof line - 1);
    m->uneven = strstr(line, "uneven") != NULL;
    return n > 0 && sscanf(line, "ready %u", &m->ncores) == 1 && m->ncores > 0;
}

static void make_name(struct invade_manager *m)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint64_t)time(NULL);
    snprintf(m->socket, sizeof m->socket, "@invasive-%u-%d-%016llx", (unsigned)getuid(),
             (int)getpid(), (unsigned long long)random);
}

static void explain(const char *rmd, int status)
{
    const char *why = "it did not become ready in 10 seconds";
    if (WIFEXITED(status) && WEXITSTATUS(status) == INVADE_NOT_FOUND)
        why = "no such file";
    else if (WIFEXITED(status) && WEXITSTATUS(status) == INVADE_CANNOT_RUN)
        why = "it cannot be executed";
    else if (WIFEXITED(status))
        why = "it gave up";
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        why = strsignal(WTERMSIG(status));
    invade_say("cannot start %s (%s). Running unmanaged.", rmd, why);
}

/* A pair of descriptors that do not get in the way of 0 to 3 in the child. */
static bool control_pair(int pair[2])
{
    int low[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low))
        return false;
    for (int i = 0; i < 2; i++) {
        pair[i] = fcntl(low[i], F_DUPFD_CLOEXEC, READY_FD + 1);
        close(low[i]);
    }
    return pair[0] >= 0 && pair[1] >= 0;
}

bool invade_start(struct invade_manager *m, const char *rmd, const struct invade_options *o)
{
    m->emulated = o->emulate;
    char socket_arg[128], emulate[INV_LAUNCH_BYTES], policy[64], smt[16], bound[48];
    char *argv[9] = {(char *)"rmd", (char *)"--private", (char *)"--ready-fd=3", socket_arg};
    int argc = 4, pair[2];
    make_name(m);
    snprintf(socket_arg, sizeof socket_arg, "--socket=%s", m->socket);
    snprintf(emulate, sizeof emulate, "--emulate-cores=%s", o->emulate ? o->emulate : "");
    snprintf(policy, sizeof policy, "--policy=%s", o->policy ? o->policy : "workload");
    snprintf(smt, sizeof smt, "--smt=%s", o->smt ? o->smt : "each");
    snprintf(bound, sizeof bound, "--reclaim-bound-us=%u", o->reclaim_bound_us);
    argv[argc++] = policy;
    if (o->emulate)
        argv[argc++] = emulate;
    if (o->smt)
        argv[argc++] = smt;
    if (o->reclaim_bound_us)
        argv[argc++] = bound;
    if (!control_pair(pair)) {
        invade_say("cannot start rmd: %s. Running unmanaged.", strerror(errno));
        return false;
    }
    pid_t launcher = getpid();
    m->pid = fork();
    if (m->pid == 0)
        become_rmd(rmd, argv, pair[1], launcher);
    close(pair[1]);
    m->control = pair[0];
    if (m->pid > 0 && wait_ready(m))
        return true;
    int status = 0;
    close(m->control);
    if (m->pid > 0) {
        /* rmd has ended by itself, or is of no use any more. */
        kill(m->pid, SIGKILL);
        waitpid(m->pid, &status, 0);
    }
    explain(rmd, status);
    m->pid = 0;
    m->control = -1;
    return false;
}

/* rmd ends by itself when invade closes its end of the socket.  invade does not wait for an rmd
 * that hangs. */
void invade_stop(struct invade_manager *m)
{
    const struct timespec patience = {.tv_sec = 2};
    sigset_t child;
    if (m->pid <= 0)
        return;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    close(m->control);
    while (waitpid(m->pid, NULL, WNOHANG) == 0)
        if (sigtimedwait(&child, NULL, &patience) < 0 && errno == EAGAIN)
            kill(m->pid, SIGKILL);
    sigprocmask(SIG_UNBLOCK, &child, NULL);
    m->pid = 0;
}
