/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * domain_table.c - the core table of a domain, from its making to its end.
 *
 * The table is made when the first process joins, since the number of processes is known only then.
 * More processes than cores: there are anonymous tokens.  Else cores have owners.  An empty domain
 * gets a new table when the next process needs the other mode.
 */
#define _GNU_SOURCE
#include "libinvasive/base/assertion.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/loop/log.h"
#include "rmd/domain/replaced.h"
#include "rmd/domain/state.h"
#include "rmd/domain/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int make_table(struct rmd_domain *d, enum inv_mode mode, struct inv_table **table)
{
    const struct inv_topology *topology = &d->topology;
    int fd = inv_table_create(topology->ncores, topology->emulated ? NULL : topology->os_cpu,
                              INV_MAX_SLOTS, mode, table);
    if (fd >= 0) {
        for (unsigned c = 0; c < topology->ncores; c++) {
            inv_core_at(*table, c)->apart = topology->apart[c];
            inv_core_at(*table, c)->speed = topology->speed[c];
        }
        (*table)->reclaim_bound_us = d->rules.reclaim_bound_us;
        atomic_store(&(*table)->owner_moves, d->moves);
        atomic_store(&(*table)->rmd_pid, (uint32_t)getpid());
    }
    return fd;
}

static void drop_table(struct rmd_domain *d)
{
    if (!d->table)
        return;
    rmd_trace_table(d, -1);
    if (d->calls.table_changed)
        d->calls.table_changed(d->calls.context, -1, -1);
    rmd_unwatch(&d->bell.source);
    rmd_bell_stop(&d->bell);
    rmd_replaced_unwatch(d);
    rmd_blocked_close(d);
    rmd_suspension_close(d);
    inv_table_unmap(d->table);
    close(d->table_fd);
    d->table = NULL;
    rmd_state_drop(d);
}

void rmd_domain_mend_head(struct rmd_domain *d)
{
    size_t constant = offsetof(struct inv_table, wanting);
    if (!memcmp(d->table, d->header, constant))
        return;
    rmd_domain_log_repaired(d, "the head of the core table");
    memcpy(d->table, d->header, constant);
}

static struct rmd_domain *domain_of(struct rmd_bell *bell)
{
    return (void *)((char *)bell - offsetof(struct rmd_domain, bell));
}

/* By the bell's thread: all but cores on their way to another domain, which may end a table. */
static bool handle_bell_at_once(struct rmd_bell *bell)
{
    struct rmd_domain *d = domain_of(bell);
    rmd_blocked_reconsider(d);
    rmd_domain_answer_constraints(d);
    return d->calls.core_left && memchr(d->grant, RMD_REVOKING, d->topology.ncores);
}

static void handle_bell(struct rmd_source *source, uint32_t events)
{
    (void)events;
    struct rmd_domain *d = domain_of((struct rmd_bell *)source);
    rmd_bell_take(&d->bell);
    if (d->calls.core_left)
        d->calls.core_left(d->calls.context);
    rmd_blocked_reconsider(d);
    rmd_domain_answer_constraints(d);
    rmd_bell_done(&d->bell);
}

int rmd_domain_use_table(struct rmd_domain *d, struct inv_table *table, int fd)
{
    memcpy(d->header, table, offsetof(struct inv_table, wanting));
    d->bell.at_once = handle_bell_at_once;
    if (rmd_bell_start(&d->bell, table)) {
        int saved = errno;
        inv_table_unmap(table);
        close(fd);
        errno = saved;
        return -1;
    }
    d->table = table;
    d->table_fd = fd;
    rmd_trace_table(d, fd);
    d->bell.source.ready = handle_bell;
    rmd_replaced_watch(d);
    rmd_blocked_open(d);
    if (!rmd_watch(&d->bell.source, EPOLLIN))
        return 0;
    int saved = errno;
    drop_table(d);
    errno = saved;
    return -1;
}

static void create_state(struct rmd_domain *d)
{
    if (!d->saves_state)
        return;
    if (rmd_state_make(d)) {
        rmd_log(RMD_WARNING, "cannot note what a restart would need: %s", strerror(errno));
        return;
    }
    rmd_state_head(d);
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        rmd_state_save_grant(d, c);
    rmd_state_save(d);
}

static int open_table(struct rmd_domain *d, enum inv_mode mode)
{
    inv_assert(!d->live); /* no process is in the table of before */
    drop_table(d);
    struct inv_table *table;
    int fd = make_table(d, mode, &table);
    if (fd < 0 || rmd_domain_use_table(d, table, fd))
        return -1;
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        d->owner[c] = RMD_NO_OWNER;
    memset(d->resting, 0, sizeof d->resting);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->grant[c] != RMD_GRANTED)
            inv_core_withdraw(table, c);
    d->tokens = mode == INV_MODE_ANONYMOUS ? d->granted : 0;
    atomic_store(&table->free_tokens, (int32_t)d->tokens);
    create_state(d);
    if (d->calls.table_changed)
        d->calls.table_changed(d->calls.context, fd, d->state ? d->state_fd : -1);
    return 0;
}

int rmd_domain_fit_table(struct rmd_domain *d, unsigned expected)
{
    unsigned units = d->due > d->units_granted ? d->due : d->units_granted;
    enum inv_mode mode = expected > units ? INV_MODE_ANONYMOUS : INV_MODE_PINNED;
    if (d->table && (d->live || d->table->mode == (uint32_t)mode))
        return 0;
    rmd_debug("%u process%s expected on %u cores: %s", expected, expected == 1 ? "" : "es", units,
              mode == INV_MODE_PINNED ? "pinned" : "anonymous tokens");
    return open_table(d, mode);
}

int rmd_domain_open(struct rmd_domain *d)
{
    d->table = NULL;
    d->table_fd = d->closed_files.fd = d->blocked.timer.fd = d->blocked.idle.fd =
        d->suspension.timer.fd = -1;
    rmd_units_of(&d->units, &d->topology, d->smt);
    d->header = calloc(1, sizeof *d->header);
    return d->header ? 0 : -1;
}

void rmd_domain_close(struct rmd_domain *d)
{
    rmd_trace_close(d);
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used) { /* the loop, or a list, would come back to what is freed */
            rmd_domain_unwatch(d, s);
            rmd_energy_leave(&d->shared->energy, &d->procs[s].energy, 0);
        }
    drop_table(d);
    free(d->header);
    rmd_reports_free(&d->shared->reports, &d->dead);
}

struct rmd_domain *rmd_domain_new(const struct rmd_domain_options *options)
{
    struct rmd_domain *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->topology = *options->topology;
    d->smt = options->smt;
    d->shared = options->shared;
    d->uid = options->uid;
    d->procs_hint = options->procs_hint;
    d->delivered = options->delivered;
    d->saves_state = options->saves_state;
    d->leaves_to_checks = options->leaves_to_checks;
    d->calls = options->calls;
    if (!rmd_domain_open(d))
        return d;
    free(d);
    return NULL;
}

void rmd_domain_free(struct rmd_domain *d)
{
    rmd_domain_close(d);
    free(d);
}

void rmd_domain_drop_empty_table(struct rmd_domain *d)
{
    if (!d->live)
        drop_table(d);
}

int rmd_domain_observe(struct rmd_domain *d)
{
    struct inv_table *empty = NULL;
    int fd = d->table ? d->table_fd : make_table(d, INV_MODE_PINNED, &empty);
    if (fd < 0)
        return -1;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int observer = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    if (!d->table) {
        inv_table_unmap(empty);
        close(fd);
    }
    errno = saved;
    return observer;
}
