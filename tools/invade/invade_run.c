/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_run.c - the command, as if the shell had started it itself.
 *
 * The command runs in invade's process group, so that the terminal's signals reach it directly;
 * invade passes on signals that reach only itself.  When the command stops, invade stops; when it
 * ends, invade ends the same way; when invade is killed, the kernel kills the command.
 */
#define _GNU_SOURCE
#include "invade.h"
#include "libinvasive/base/now.h"
#include "libinvasive/launch/preload.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NS_PER_S = 1000000000,
    /* from SIGTERM to the report of a command that still runs: SIGKILL may follow after 2 s */
    PATIENCE_NS = NS_PER_S,
};

/* The signals that invade changes, and how its caller had them: the command gets them so.  Writers:
 * invade_take_signals, at the start; record_ending_signal writes told_by. */
static struct {
    struct changed_signal {
        int number;
        void (*ours)(int);
        struct sigaction callers;
    } changed[3];
    sigset_t callers_mask;
    int told_by; /* the first signal that has told invade to end; 0: none */
} signals = {.changed = {
    {.number = SIGCHLD, .ours = SIG_DFL},
    /* A full pipe, or a file as large as allowed, is an error of a report, not invade's end. */
    {.number = SIGPIPE, .ours = SIG_IGN},
    {.number = SIGXFSZ, .ours = SIG_IGN},
}};

void invade_take_signals(void)
{
    sigprocmask(SIG_BLOCK, NULL, &signals.callers_mask);
    for (size_t i = 0; i < sizeof signals.changed / sizeof *signals.changed; i++) {
        const struct sigaction action = {.sa_handler = signals.changed[i].ours};
        sigaction(signals.changed[i].number, &action, &signals.changed[i].callers);
    }
}

void invade_exec(const struct invade_options *o)
{
    char **command = o->command;
    size_t bytes = inv_preload_room(environ);
    void *room = bytes ? malloc(bytes) : NULL;
    char *const *envp = inv_preload_environment(command[0], true, environ, room, "invade");
    for (size_t i = 0; i < sizeof signals.changed / sizeof *signals.changed; i++)
        sigaction(signals.changed[i].number, &signals.changed[i].callers, NULL);
    execvpe(command[0], command, envp);
    int error = errno;
    invade_say("%s: %s", command[0], strerror(error));
    if (o->after_report)
        invade_say("is %s the file of the report? Write --report=%s", command[0], command[0]);
    if (o->after_compare)
        invade_say("is %s the number of runs? Write --compare=%s", command[0], command[0]);
    if (o->after_learn)
        invade_say("is %s the file to learn in? Write --learn=%s", command[0], command[0]);
    _exit(error == ENOENT ? INVADE_NOT_FOUND : INVADE_CANNOT_RUN);
}

/* The signals that are passed on: all but those that concern invade itself: faults, its children,
 * and the use of the terminal by a background process, which stops invade as it should. */
static void passed_on(sigset_t *set)
{
    static const int ours[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
                               SIGABRT, SIGPIPE, SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ};
    sigfillset(set);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigdelset(set, ours[i]);
}

/* Has the terminal sent the signal?  Then the command has got it, too. */
static bool from_terminal(const siginfo_t *info)
{
    switch (info->si_signo) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGHUP:
    case SIGWINCH:
        return info->si_code == SI_KERNEL;
    default:
        return false;
    }
}

/* Stop as the default action would, or go on where SIGTSTP is ignored. */
static void stop_here(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    raise(SIGTSTP); /* blocked: it comes with the next line */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void pass_on(const siginfo_t *info, pid_t child)
{
    if (!from_terminal(info)) {
        if (info->si_code == SI_QUEUE)
            sigqueue(child, info->si_signo, info->si_value);
        else
            kill(child, info->si_signo);
    }
    if (info->si_signo == SIGTSTP)
        stop_here();
}

/* Notes a signal that ends a program.  A signal that invade's caller ignores, as nohup does,
 * arrives here, too, since it is blocked. */
static void record_ending_signal(int number)
{
    struct sigaction action;
    if (signals.told_by ||
        (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT))
        return;
    if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
        signals.told_by = number;
}

static pid_t start(const struct invade_options *o, invade_become become)
{
    pid_t launcher = getpid(), child = fork();
    if (child)
        return child;
    /* If invade is killed the command must end, as it would have without invade. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(INVADE_FAILED);
    sigprocmask(SIG_SETMASK, &signals.callers_mask, NULL);
    become(o);
}

/* The next signal of the set; 0 when `until_ns` has passed, which is 0 for never. */
static int next_signal(const sigset_t *set, siginfo_t *info, uint64_t until_ns)
{
    for (;;) {
        uint64_t now = inv_now_ns(), left = until_ns > now ? until_ns - now : 0;
        const struct timespec patience = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        int number = sigtimedwait(set, info, until_ns ? &patience : NULL);
        if (number > 0)
            return number;
        if (errno == EAGAIN)
            return 0;
        /* EINTR: we were stopped and go on */
    }
}

int invade_run(const struct invade_options *o, invade_become become,
               void (*told_to_end)(void *), void *argument)
{
    uint64_t tell_at_ns = 0;
    bool told = false;
    sigset_t set;
    passed_on(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t child = start(o, become);
    if (child < 0) {
        invade_say("cannot start %s: %s", o->command[0], strerror(errno));
        return W_EXITCODE(INVADE_FAILED, 0);
    }
    for (;;) {
        siginfo_t info;
        int status, number = next_signal(&set, &info, told ? 0 : tell_at_ns);
        if (!number) {
            told = true;
            told_to_end(argument);
        } else if (number != SIGCHLD) {
            record_ending_signal(number);
            pass_on(&info, child);
            if (number == SIGTERM && !tell_at_ns)
                tell_at_ns = inv_now_ns() + PATIENCE_NS;
        } else if (waitpid(child, &status, WNOHANG) == child) {
            return status;
        }
    }
}

/* Handles a signal that came while no command ran, so that it was for invade only. */
static void take_alone(int number)
{
    record_ending_signal(number);
    if (number == SIGTSTP)
        stop_here();
}

int invade_end_signal(void)
{
    siginfo_t info;
    sigset_t set;
    int number;
    passed_on(&set);
    sigdelset(&set, SIGCHLD);
    while ((number = next_signal(&set, &info, 1)) > 0) /* in the past: those that are here */
        take_alone(number);
    return signals.told_by;
}

bool invade_reap(uint64_t patience_ns)
{
    uint64_t until_ns = inv_now_ns() + patience_ns;
    sigset_t set;
    passed_on(&set);
    while (!signals.told_by) {
        siginfo_t info;
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        int number = pid < 0 ? 0 : next_signal(&set, &info, until_ns);
        if (!number)
            return pid < 0;
        if (number != SIGCHLD)
            take_alone(number);
    }
    return false;
}

void invade_give_signals_back(void) { sigprocmask(SIG_SETMASK, &signals.callers_mask, NULL); }

void invade_end_as(int status)
{
    if (!WIFSIGNALED(status))
        exit(WEXITSTATUS(status));
    /* No core dump of invade: the command's has been written already. */
    const struct rlimit none = {0, 0};
    int number = WTERMSIG(status);
    sigset_t set;
    fflush(NULL);
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number);
}
