/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * launcher.c - the job that an rmd with --private or --node belongs to, and ends with.
 *
 * Batch systems, container engines and service managers send signals to all processes of a job at
 * once: rmd gets them too.  The launcher asks rmd for the report and for the end of the trace when
 * the command has ended, so rmd must still be there.  Therefore these signals do not end rmd.  What
 * ends rmd is the end of the job: the launcher closes its descriptor, or no process is left
 * (--node).
 *
 * A launcher that is killed closes its descriptor too, and then rmd completes a trace.  In case
 * rmd hangs or is stopped, the kernel sends SIGCONT on the launcher's death, since that also
 * continues a stopped process, and an alarm ends rmd.
 */
#define _GNU_SOURCE
#include "rmd/serve/launcher.h"
#include "rmd/loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ENDING_S = 2 };

/* Written by rmd_launcher_watch; the handler of SIGCONT reads the two processes. */
static struct {
    pid_t self, launcher;
    struct rmd_source end; /* the launcher's descriptor */
} job;

static void end_within_seconds(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(ENDING_S);
}

static void handle_sigcont(int number)
{
    int error = errno;
    (void)number;
    if (getpid() == job.self && getppid() != job.launcher) /* not in a child of rmd */
        end_within_seconds();
    errno = error;
}

void rmd_launcher_outlive_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (int number = 1; number <= SIGRTMAX; number++) {
        bool fault = false;
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            fault |= number == faults[i];
        if (!fault)
            signal(number, SIG_IGN); /* fails for SIGKILL, SIGSTOP and the C library's own */
    }
}

static void handle_launcher_end(struct rmd_source *source, uint32_t events)
{
    (void)source;
    (void)events;
    end_within_seconds();
    rmd_stop(0);
}

/* The kernel kills rmd on the launcher's death until here (tools/invade/invade_rmd.c), so getppid() still
 * names the launcher. */
static int watch_death(void)
{
    const struct sigaction on_continue = {.sa_handler = handle_sigcont, .sa_flags = SA_RESTART};
    job.self = getpid();
    job.launcher = getppid();
    if (sigaction(SIGCONT, &on_continue, NULL) || prctl(PR_SET_PDEATHSIG, SIGCONT))
        return -1;
    if (getppid() != job.launcher)
        end_within_seconds();
    return 0;
}

int rmd_launcher_watch(int ready_fd, bool private, const struct inv_topology *topology)
{
    char text[32];
    int n = snprintf(text, sizeof text, "ready %u%s\n", topology->ncores,
                     inv_topology_uneven(topology) ? " uneven" : "");
    if (write(ready_fd, text, (size_t)n) != n)
        return -1;
    job.end = (struct rmd_source){ready_fd, handle_launcher_end};
    if (!private)
        return close(ready_fd);
    return watch_death() || rmd_watch(&job.end, EPOLLRDHUP); /* HUP and ERR come unasked */
}
