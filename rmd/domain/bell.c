/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bell.c - a thread that sleeps on the futex table->rmd_bell and turns each change into
 * an event of the loop, because epoll cannot wait for a futex.
 *
 * While the loop is idle the thread does the work itself.  Waking the loop's thread would take
 * longer than the work, and a process may be waiting for the answer.
 *
 * A process that announces a workload every millisecond must not keep rmd busy on a core that the
 * application needs.  So the thread pauses after an event, and all rings of the pause are one
 * event.  A blocking invade ends the pause.  Whatever processes write to the table, the events of a
 * bell take at most a tenth of a processor (rate_limit.h): the thread backs off before the next
 * event.  BURST_NS of processor time are free at first, and after a quiet time.
 *
 * A process that maps the table can also keep the thread asleep: it can restore the value that the
 * thread has seen, or have the kernel move the sleepers to another word (FUTEX_REQUEUE).  That
 * harms its own user only.  But rmd waits for the end of the thread, so a signal ends its sleep
 * then.
 */
#define _GNU_SOURCE
#include "rmd/domain/bell.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "rmd/host/rate_limit.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000, BURST_NS = 20000000 };
enum { AWAKE = SIGURG, AGAIN_NS = 1000000 }; /* rmd_bell_stop */

/* Of the events of one bell. */
struct rate_limit {
    uint64_t spent_ns; /* processor time so far */
    uint64_t due_ns;   /* of the leaky bucket */
};

/* Waits until the limit allows another event.  Returns how long it waited. */
static uint64_t back_off(struct rmd_bell *bell, struct rate_limit *limit)
{
    /* relaxed: a number; what the loop's thread adds later counts later */
    uint64_t elsewhere = atomic_load_explicit(&bell->elsewhere_ns, memory_order_relaxed);
    uint64_t spent = rmd_rate_limit_clock() + elsewhere, now = inv_now_ns();
    limit->due_ns = rmd_rate_limit_add(limit->due_ns, now, spent - limit->spent_ns, BURST_NS);
    inv_assert(spent >= limit->spent_ns); /* clocks do not go back */
    limit->spent_ns = spent;
    if (limit->due_ns <= now)
        return 0;
    inv_futex_wait(&bell->stop, 0, (int64_t)(limit->due_ns - now), false);
    return limit->due_ns - now;
}

/* Pauses, at most until rmd_hurry is not `hurry` any more: a process is in a hurry then. */
static void pause_for_events(struct rmd_bell *bell, uint32_t hurry, struct rate_limit *limit)
{
    uint64_t paused = back_off(bell, limit);
    if (paused < PAUSE_NS)
        inv_futex_wait(&bell->table->rmd_hurry, hurry, (int64_t)(PAUSE_NS - paused), true);
}

static void handle_event(struct rmd_bell *bell)
{
    bool more = true;
    if (bell->at_once && rmd_loop_enter()) {
        more = bell->at_once(bell);
        rmd_loop_leave();
    }
    /* When the counter is full the event is there already. */
    if (more && write(bell->source.fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return;
}

static void ignore_signal(int signal) { (void)signal; }

/* A signal ends a sleep only if there is a handler, which need do nothing. */
static void allow_wakeup_signal(void)
{
    static const struct sigaction no_restart = {.sa_handler = ignore_signal};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, AWAKE);
    sigaction(AWAKE, &no_restart, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void listen_to_bell(struct rmd_bell *bell)
{
    struct inv_table *table = bell->table;
    struct rate_limit limit = {0};
    uint32_t seen = 0;
    while (!atomic_load(&bell->stop)) { /* partner: rmd_bell_stop, before its signal */
        /* seq_cst: partner is the ringer, which looks at rmd_busy after its increment (claim.c) */
        atomic_store(&table->rmd_busy, 0);
        uint32_t now = atomic_load(&table->rmd_bell);
        if (now == seen) {
            inv_futex_wait(&table->rmd_bell, seen, -1, true);
            if (atomic_load(&table->rmd_bell) == seen)
                back_off(bell, &limit); /* a process has woken the thread without ringing */
            continue;
        }
        atomic_store(&table->rmd_busy, 1);
        uint32_t hurry = atomic_load(&table->rmd_hurry);
        seen = atomic_load(&table->rmd_bell);
        handle_event(bell);
        pause_for_events(bell, hurry, &limit);
    }
}

static void *run_thread(void *arg)
{
    struct rmd_bell *bell = arg;
    allow_wakeup_signal();
    listen_to_bell(bell);
    atomic_store(&bell->ended, 1); /* partner: rmd_bell_stop */
    inv_futex_wake(&bell->ended, 1, false);
    return NULL;
}

int rmd_bell_start(struct rmd_bell *bell, struct inv_table *table)
{
    inv_assert(!bell->running);
    bell->table = table;
    atomic_store(&bell->stop, 0);
    atomic_store(&bell->ended, 0);
    atomic_store(&bell->elsewhere_ns, 0);
    bell->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->source.fd < 0)
        return -1;
    int error = pthread_create(&bell->thread, NULL, run_thread, bell);
    if (error) {
        close(bell->source.fd);
        errno = error;
        return -1;
    }
    bell->running = true;
    return 0;
}

void rmd_bell_take(struct rmd_bell *bell)
{
    uint64_t count;
    bell->taken_ns = rmd_rate_limit_clock();
    if (read(bell->source.fd, &count, sizeof count) < 0)
        return; /* spurious: nothing was rung */
}

void rmd_bell_done(struct rmd_bell *bell)
{
    atomic_fetch_add_explicit(&bell->elsewhere_ns, rmd_rate_limit_clock() - bell->taken_ns,
                              memory_order_relaxed); /* partner: back_off */
}

void rmd_bell_stop(struct rmd_bell *bell)
{
    if (!bell->running)
        return;
    atomic_store(&bell->stop, 1);
    inv_futex_wake(&bell->stop, 1, false);
    while (!atomic_load(&bell->ended)) {
        /* again and again: it may have looked at `stop`, and not be asleep yet */
        pthread_kill(bell->thread, AWAKE);
        inv_futex_wait(&bell->ended, 0, AGAIN_NS, false);
    }
    pthread_join(bell->thread, NULL);
    close(bell->source.fd);
    bell->running = false;
}
