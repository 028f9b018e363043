/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * invade_call.c - what a call of the public interface costs.
 *
 * Run under `invade`, as its only program.  Calls that change nothing are timed in bunches.  A
 * blocking invade with another workload is timed one by one, with some computing between two of
 * them, so that the resource manager sleeps; and so are the same question and answer between two
 * processes by System V message queues, as in the paper (5.3), and by bare futexes.
 */
#define _GNU_SOURCE
#include "invasive.h"
#include "two.h"

#include <sys/ipc.h>
#include <sys/msg.h>

enum { BUNCH = 100000, BUNCHES = 20, TRIPS = 400, GAP_NS = 300000 };
enum { TO_MANAGER = 1, TO_CLIENT = 2 };

struct message {
    long type;
    struct inv_constraint constraint;
};
enum { MESSAGE_BYTES = sizeof(struct message) - sizeof(long) };

struct shared {
    _Atomic uint32_t question, answer;
    int queue;
};
static struct shared *sh;

/* --- the manager's side of the other two */

static void serve_queue(void)
{
    struct message m;
    while (msgrcv(sh->queue, &m, MESSAGE_BYTES, TO_MANAGER, 0) >= 0) {
        m.type = TO_CLIENT;
        if (msgsnd(sh->queue, &m, MESSAGE_BYTES, 0))
            break;
    }
}

static void serve_futex(void)
{
    for (uint32_t seen = 0;; seen++) {
        while (atomic_load(&sh->question) == seen)
            inv_futex_wait(&sh->question, seen, -1, true);
        atomic_store(&sh->answer, seen + 1);
        inv_futex_wake(&sh->answer, 1, true);
    }
}

/* --- calls */

static struct inv_constraint constraint = {.workload = 1};

static void fail(const char *call)
{
    perror(call);
    exit(1);
}

static void ask_futex(void)
{
    uint32_t number = atomic_fetch_add(&sh->question, 1) + 1, seen;
    inv_futex_wake(&sh->question, 1, true);
    while ((seen = atomic_load(&sh->answer)) != number)
        inv_futex_wait(&sh->answer, seen, -1, true);
}

static void ask_queue(void)
{
    struct message m = {TO_MANAGER, constraint};
    if (msgsnd(sh->queue, &m, MESSAGE_BYTES, 0) ||
        msgrcv(sh->queue, &m, MESSAGE_BYTES, TO_CLIENT, 0) < 0)
        fail("message queue");
}

/* Another workload each time, of the same order: rmd decides, and moves nothing. */
static void ask_rmd(void)
{
    struct inv_claim claim;
    constraint.workload = constraint.workload < 2 ? 2 : 1;
    if (inv_reinvade(&constraint, INV_BLOCKING, &claim))
        fail("inv_reinvade");
}

static void tell_rmd(void)
{
    constraint.workload = constraint.workload < 2 ? 2 : 1;
    if (inv_reinvade(&constraint, INV_NONBLOCKING, NULL))
        fail("inv_reinvade");
}

/* A message that the manager has not read yet when it would be sent: the least that a
 * non-blocking invade by message needs, which looks whether one has come. */
static void look_into_queue(void)
{
    struct message m;
    if (msgrcv(sh->queue, &m, MESSAGE_BYTES, TO_CLIENT, IPC_NOWAIT) >= 0)
        fail("an unexpected message");
}

static void reinvade(void)
{
    inv_reinvade(&constraint, INV_NONBLOCKING, NULL);
}

static void reinvade_for_claim(void)
{
    struct inv_claim claim;
    inv_reinvade(&constraint, INV_NONBLOCKING, &claim);
}

static void reinvade_blocking(void)
{
    inv_reinvade(&constraint, INV_BLOCKING, NULL);
}

/* The quickest of some bunches, in nanoseconds a call. */
static double bunch_ns(void (*call)(void), unsigned count)
{
    double best = 1e9;
    for (unsigned b = 0; b < BUNCHES; b++) {
        uint64_t start = two_now_ns();
        for (unsigned i = 0; i < count; i++)
            call();
        double ns = (double)(two_now_ns() - start) / count;
        best = ns < best ? ns : best;
    }
    return best;
}

static void trips(const char *name, void (*call)(void))
{
    static double us[TRIPS];
    for (unsigned i = 0; i < TRIPS; i++) {
        two_busy_ns(GAP_NS);
        uint64_t start = two_now_ns();
        call();
        us[i] = (double)(two_now_ns() - start) * 1e-3;
    }
    printf("%s_us %.2f\n%s_p95_us %.2f\n", name, two_quantile(us, TRIPS, 0.5), name,
           two_quantile(us, TRIPS, 0.95));
}

static void trips_to(const char *name, void (*call)(void), int fd)
{
    pid_t pid = two_start(name, fd);
    two_sleep_ns(20000000);
    trips(name, call);
    two_stop(pid);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        sh = two_attach(argv[2], sizeof *sh);
        if (strcmp(argv[1], "futex") == 0)
            serve_futex();
        serve_queue();
        return 0;
    }
    int fd;
    struct inv_claim claim;
    sh = two_share(sizeof *sh, &fd);
    if (inv_invade(&constraint, INV_BLOCKING, &claim) || !claim.managed) {
        fprintf(stderr, "invade_call: run me under invade\n");
        return 1;
    }
    sh->queue = msgget(IPC_PRIVATE, 0600);
    if (sh->queue < 0)
        fail("msgget");
    printf("reinvade_ns %.2f\n", bunch_ns(reinvade, BUNCH));
    printf("reinvade_claim_ns %.2f\n", bunch_ns(reinvade_for_claim, BUNCH));
    printf("reinvade_blocking_ns %.2f\n", bunch_ns(reinvade_blocking, BUNCH));
    printf("sysv_look_ns %.2f\n", bunch_ns(look_into_queue, BUNCH / 10));
    trips("tell", tell_rmd);
    trips_to("futex", ask_futex, fd);
    trips_to("sysv", ask_queue, fd);
    trips("blocking", ask_rmd);
    msgctl(sh->queue, IPC_RMID, NULL);
    return 0;
}
