/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * trace_hammer.c - SOCKET THREADS STEPS SEED: joins the domain, and its threads take, lend, ask for
 * and evict cores at random as fast as they can, each so many steps, for test_trace.py.  Prints
 * "joined" and, when it has not been killed before, how often its threads have held a core.
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct inv_table *table;
static unsigned me;
static unsigned long steps;
static _Atomic unsigned long taken;

static bool join(const char *name)
{
    struct inv_request request = inv_request_of(INV_JOIN);
    struct inv_reply reply;
    int fd = inv_socket_connect(name, 20), table_fd = -1;
    snprintf(request.program, sizeof request.program, "hammer");
    if (fd < 0 || !inv_socket_ask(fd, &request, sizeof request, &reply, &table_fd) ||
        reply.status != INV_OK)
        return false;
    close(fd);
    me = reply.slot;
    table = inv_table_map(table_fd, true);
    close(table_fd);
    atomic_store(&inv_trace_ring, me);
    return table != NULL;
}

/* The core is ours after it, or was. */
static bool step(unsigned core, unsigned what)
{
    unsigned evicted;
    switch (what % 8) {
    case 0:
    case 1:
        return inv_core_borrow(table, core, me);
    case 2:
        return inv_core_reclaim(table, core, me) == INV_RECLAIM_GOT;
    case 3:
        return what % 64 == 3 && inv_core_evict(table, core, me, &evicted);
    case 4:
        inv_core_reclaim_cancel(table, core, me);
        return false;
    default:
        if (inv_core_lend(table, core, me))
            inv_core_offer(table, core, me);
        return false;
    }
}

static void *hammer(void *seed)
{
    unsigned x = (unsigned)(uintptr_t)seed;
    for (unsigned long i = 0; i < steps; i++) {
        x = x * 1664525 + 1013904223;
        taken += step((x >> 8) % table->ncores, x >> 20);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[64];
    unsigned threads = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
    unsigned seed = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
    if (threads < 1 || threads > 64 || !join(argv[1]))
        return 1;
    steps = strtoul(argv[3], NULL, 10);
    printf("joined\n");
    fflush(stdout);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, hammer, (void *)(uintptr_t)(seed * 64 + i)))
            return 1;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%lu\n", taken);
    return 0;
}
