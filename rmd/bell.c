/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bell.c - a thread that sleeps on the futex table->rmd_bell and turns each change into
 * an event of the loop, because epoll cannot wait for a futex.
 *
 * A process that announces a workload every millisecond must not keep rmd busy on a core
 * that the application needs: after an event the thread pauses, and what was rung
 * meanwhile is one event more.
 */
#define _GNU_SOURCE
#include "bell.h"
#include "futex.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000 };

static void *listen_to_bell(void *arg)
{
    struct rmd_bell *bell = arg;
    _Atomic uint32_t *word = &bell->table->rmd_bell;
    uint32_t seen = 0;
    while (!atomic_load(&bell->stop)) { /* partner: rmd_bell_stop, before it rings */
        /* acquire: partner is the ringer's increment, after it wrote its constraint */
        uint32_t now = atomic_load_explicit(word, memory_order_acquire);
        if (now == seen) {
            inv_futex_wait(word, seen, -1, true);
            continue;
        }
        seen = now;
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        if (write(bell->source.fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
            continue; /* the counter is full: the event is there already */
        nanosleep(&pause, NULL);
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
    atomic_fetch_add(&bell->table->rmd_bell, 1);
    inv_futex_wake(&bell->table->rmd_bell, INT_MAX, true);
    pthread_join(bell->thread, NULL);
    close(bell->source.fd);
    bell->running = false;
}
