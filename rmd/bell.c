/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bell.c - a thread that sleeps on the futex table->rmd_bell and turns each change into
 * an event of the loop, because epoll cannot wait for a futex.
 *
 * While the loop is idle the thread does the work itself: to wake the loop's thread for it
 * would take longer than the work, and somebody may be waiting for the answer.
 *
 * A process that announces a workload every millisecond must not keep rmd busy on a core
 * that the application needs: after an event the thread pauses, and what was rung
 * meanwhile is one event more.  A blocking invade ends the pause; so many of these in a row, and
 * not more than one in 100 us for long, whatever a process does to the table.
 */
#define _GNU_SOURCE
#include "bell.h"
#include "futex.h"
#include "now.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000, HURRIES_MOST = 64, HURRY_NS = 100000 };

/* How many pauses may be cut short. */
struct hurries {
    unsigned left;
    uint64_t since_ns; /* none has been added since */
};

static void add_hurries(struct hurries *h)
{
    uint64_t now = inv_now_ns(), more = (now - h->since_ns) / HURRY_NS;
    if (more == 0)
        return;
    h->since_ns = now;
    h->left = more < HURRIES_MOST - h->left ? h->left + (unsigned)more : HURRIES_MOST;
}

/* Until somebody is in a hurry, who was not when the event was taken. */
static void pause_for_events(struct rmd_bell *bell, uint32_t hurry, struct hurries *h)
{
    add_hurries(h);
    if (h->left == 0) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        return;
    }
    if (inv_futex_wait(&bell->table->rmd_hurry, hurry, PAUSE_NS, true) != -ETIMEDOUT)
        h->left--;
}

static void handle(struct rmd_bell *bell)
{
    bool rest = true;
    if (bell->at_once && rmd_loop_enter()) {
        rest = bell->at_once(bell);
        rmd_loop_leave();
    }
    /* When the counter is full the event is there already. */
    if (rest && write(bell->source.fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return;
}

static void *listen_to_bell(void *arg)
{
    struct rmd_bell *bell = arg;
    struct inv_table *table = bell->table;
    struct hurries hurries = {HURRIES_MOST, inv_now_ns()};
    uint32_t seen = 0;
    while (!atomic_load(&bell->stop)) { /* partner: rmd_bell_stop, before it rings */
        /* seq_cst: partner is the ringer, which looks at rmd_busy after its increment (claim.c) */
        atomic_store(&table->rmd_busy, 0);
        uint32_t now = atomic_load(&table->rmd_bell);
        if (now == seen) {
            inv_futex_wait(&table->rmd_bell, seen, -1, true);
            continue;
        }
        atomic_store(&table->rmd_busy, 1);
        uint32_t hurry = atomic_load(&table->rmd_hurry);
        seen = atomic_load(&table->rmd_bell);
        handle(bell);
        pause_for_events(bell, hurry, &hurries);
    }
    return NULL;
}

int rmd_bell_start(struct rmd_bell *bell, struct inv_table *table)
{
    bell->table = table;
    atomic_store(&bell->stop, false);
    bell->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->source.fd < 0)
        return -1;
    int error = pthread_create(&bell->thread, NULL, listen_to_bell, bell);
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
    if (read(bell->source.fd, &count, sizeof count) < 0)
        return; /* spurious: nothing was rung */
}

void rmd_bell_stop(struct rmd_bell *bell)
{
    if (!bell->running)
        return;
    atomic_store(&bell->stop, true);
    atomic_fetch_add(&bell->table->rmd_hurry, 1);
    atomic_fetch_add(&bell->table->rmd_bell, 1);
    inv_futex_wake(&bell->table->rmd_hurry, INT_MAX, true);
    inv_futex_wake(&bell->table->rmd_bell, INT_MAX, true);
    pthread_join(bell->thread, NULL);
    close(bell->source.fd);
    bell->running = false;
}
