/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * state.c - see state.h.  The state is a memfd, sealed like a table; its writer holds the loop's
 * turn (loop.h).
 */
#define _GNU_SOURCE
#include "rmd/domain/state.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/host/procstat.h"
#include "rmd/policy/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static struct rmd_state *map_state(int fd)
{
    void *p = mmap(NULL, sizeof(struct rmd_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

int rmd_state_make(struct rmd_domain *d)
{
    int fd = memfd_create("invasive-rmd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct rmd_state *s = NULL;
    if (fd >= 0 && !inv_memory_resize(fd, sizeof *s) && !fcntl(fd, F_ADD_SEALS, SEALS))
        s = map_state(fd);
    if (!s) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        errno = saved;
        return -1;
    }
    s->version = RMD_STATE_VERSION;
    s->table_version = INV_TABLE_VERSION;
    s->bytes = sizeof *s;
    s->asked = d->topology.asked;
    for (unsigned c = 0; c < d->topology.ncores; c++) {
        s->os_cpu[c] = d->topology.emulated ? -1 : d->topology.os_cpu[c];
        s->apart[c] = d->topology.apart[c];
    }
    s->magic = RMD_STATE_MAGIC;
    d->state = s;
    d->state_fd = fd;
    return 0;
}

void rmd_state_drop(struct rmd_domain *d)
{
    if (!d->state)
        return;
    rmd_state_unmap(d->state);
    close(d->state_fd);
    d->state = NULL;
}

void rmd_state_unmap(struct rmd_state *s)
{
    if (s)
        munmap(s, sizeof *s);
}

static void save_process(struct rmd_state_process *to, const struct rmd_process *p)
{
    *to = (struct rmd_state_process){.pid = p->used ? p->pid : 0,
                                     .rank = p->rank,
                                     .size = p->size,
                                     .local_rank = p->local_rank,
                                     .local_size = p->local_size,
                                     .loan = p->loan,
                                     .stopped = p->stopped,
                                     .wanted = p->wanted,
                                     .locks = p->locks,
                                     .suspended = p->suspended,
                                     .least = p->order.least,
                                     .most = p->order.most,
                                     .priority = p->priority,
                                     .start_ticks = p->start_ticks,
                                     .job = p->job,
                                     .mark = p->mark,
                                     .launch = p->launch,
                                     .start_ns = p->start_ns,
                                     .settled_ns = p->settled_ns,
                                     .owned_ns = p->owned_ns,
                                     .energy_uj = p->energy.energy_uj};
}

/* No two are pinned to the same core. */
static void save_pins(struct rmd_state_copy *to, const struct rmd_domain *d)
{
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        to->pinned_to[c] = -1;
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        for (unsigned c = 0; d->procs[s].order.pinned && c < d->topology.ncores; c++)
            if (inv_set_has(d->procs[s].order.cores, c))
                to->pinned_to[c] = (int16_t)s;
}

void rmd_state_save(struct rmd_domain *d)
{
    if (!d->state)
        return;
    uint32_t next = !atomic_load_explicit(&d->state->valid, memory_order_relaxed);
    struct rmd_state_copy *to = &d->state->copy[next];
    to->joined = d->joined;
    to->expected = d->expected;
    to->tokens = d->tokens;
    to->jobs = d->jobs;
    to->newest_job = d->newest_job;
    to->newest_launch = d->newest_launch;
    to->moves = d->moves;
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        to->owner[c] = d->owner[c];
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        save_process(&to->process[s], &d->procs[s]);
    save_pins(to, d);
    /* release: the next rmd, which reads `valid`, finds the copy complete */
    atomic_store_explicit(&d->state->valid, next, memory_order_release);
}

/* seq_cst: in the order of what is done to the words, also for the compiler */
void rmd_state_save_grant(struct rmd_domain *d, unsigned core)
{
    if (d->state)
        atomic_store(&d->state->grant[core], d->grant[core]);
}

void rmd_state_head(struct rmd_domain *d)
{
    if (d->state)
        memcpy(d->state->head, d->header, RMD_HEAD_BYTES);
}

/* seq_cst: while it is being written there is no group, and the process moves after it */
void rmd_state_set_group(struct rmd_domain *d, unsigned slot, const char *group)
{
    if (!d->state)
        return;
    bool fits = group && strlen(group) < RMD_STATE_GROUP;
    atomic_store(&d->state->grouped[slot], 0);
    if (!fits)
        return;
    strcpy(d->state->group[slot], group);
    atomic_store(&d->state->grouped[slot], 1);
}

const char *rmd_state_saved_group(const struct rmd_domain *d, unsigned slot)
{
    return d->state && atomic_load(&d->state->grouped[slot]) ? d->state->group[slot] : NULL;
}

/* --- of a former rmd */

static bool is_plausible_process(const struct rmd_state_process *p)
{
    return p->pid >= 0 && p->loan >= 0 && p->loan <= INV_MAX_CORES && p->least <= INV_MAX_CORES &&
           p->most <= INV_MAX_CORES && p->priority <= RMD_PRIORITY_MOST;
}

static bool is_plausible(const struct rmd_state *s)
{
    uint32_t valid = atomic_load(&s->valid);
    if (s->magic != RMD_STATE_MAGIC || s->version != RMD_STATE_VERSION || s->bytes != sizeof *s ||
        s->table_version != INV_TABLE_VERSION || valid > 1)
        return false;
    const struct rmd_state_copy *copy = &s->copy[valid];
    bool good = copy->tokens <= INV_MAX_CORES && copy->expected <= INV_MAX_SLOTS;
    for (unsigned c = 0; c < INV_MAX_CORES; c++)
        good &= copy->owner[c] >= RMD_NO_OWNER && copy->owner[c] < INV_MAX_SLOTS &&
                copy->pinned_to[c] >= -1 && copy->pinned_to[c] < INV_MAX_SLOTS &&
                atomic_load(&s->grant[c]) <= RMD_GRANTED;
    for (unsigned i = 0; i < INV_MAX_SLOTS; i++)
        good &= is_plausible_process(&copy->process[i]) &&
                memchr(s->group[i], '\0', RMD_STATE_GROUP) != NULL;
    return good;
}

struct rmd_state *rmd_state_map(int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return NULL;
    int seals = fcntl(fd, F_GET_SEALS);
    struct rmd_state *s =
        st.st_size == sizeof *s && seals >= 0 && (seals & F_SEAL_SHRINK) ? map_state(fd) : NULL;
    if (s && is_plausible(s))
        return s;
    rmd_state_unmap(s);
    errno = EPROTO;
    return NULL;
}

bool rmd_state_lives(const struct rmd_state_process *p)
{
    struct rmd_procstat now;
    return p->pid > 0 && rmd_procstat(p->pid, &now) && now.start_ticks == p->start_ticks &&
           now.state != 'Z';
}

unsigned rmd_state_living(const struct rmd_state *s)
{
    const struct rmd_state_copy *copy = &s->copy[atomic_load(&s->valid)];
    unsigned n = 0;
    for (unsigned i = 0; i < INV_MAX_SLOTS; i++)
        n += rmd_state_lives(&copy->process[i]);
    return n;
}
