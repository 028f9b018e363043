/* SPDX-License-Identifier: GPL-3.0-or-later */
/* persisted_orders.c - see persisted_orders.h.  Two copies take turns, as in state.c: the valid
 * copy is never written. */
#define _GNU_SOURCE
#include "rmd/config/persisted_orders.h"
#include "rmd/loop/log.h"
#include "rmd/power/thermal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x7372656472646d72) /* "rmdrders" */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static struct rmd_persisted_memory *map_memory(int fd)
{
    void *p = mmap(NULL, sizeof(struct rmd_persisted_memory), PROT_READ | PROT_WRITE, MAP_SHARED,
                   fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void drop_memory(struct rmd_persisted *p)
{
    if (!p->memory)
        return;
    munmap(p->memory, sizeof *p->memory);
    close(p->fd);
    p->memory = NULL;
}

static bool make_memory(struct rmd_persisted *p)
{
    p->fd = memfd_create("invasive-rmd-orders", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->fd >= 0 && !inv_memory_resize(p->fd, sizeof *p->memory) &&
        !fcntl(p->fd, F_ADD_SEALS, SEALS))
        p->memory = map_memory(p->fd);
    if (p->memory) {
        p->memory->version = RMD_PERSISTED_VERSION;
        p->memory->bytes = (uint32_t)sizeof *p->memory;
        p->memory->magic = MAGIC;
        return true;
    }
    rmd_log(RMD_WARNING, "orders are not kept for a restart: %s", strerror(errno));
    if (p->fd >= 0)
        close(p->fd);
    return false;
}

static size_t bytes_of(const struct rmd_persisted_orders *s)
{
    return offsetof(struct rmd_persisted_orders, user) + s->nusers * sizeof s->user[0];
}

static bool has_orders(const struct rmd_persisted_orders *s)
{
    return s->nusers || s->ndrained || s->threshold || *s->policy.chosen;
}

void rmd_persisted_save(struct rmd_persisted *p, const struct rmd_persisted_orders *now)
{
    const struct rmd_power_knob *knob;
    bool any = has_orders(now) || rmd_persisted_power(p, &knob), fresh = any && !p->memory;
    if (!any && p->memory) {
        p->store(-1);
        drop_memory(p);
    }
    if (!any || (fresh && !make_memory(p)))
        return;
    uint32_t next = !atomic_load_explicit(&p->memory->valid, memory_order_relaxed);
    memcpy(&p->memory->copy[next], now, bytes_of(now));
    /* release: the next rmd, which reads `valid`, finds the copy complete */
    atomic_store_explicit(&p->memory->valid, next, memory_order_release);
    if (fresh)
        p->store(p->fd);
}

unsigned rmd_persisted_power(const struct rmd_persisted *p, const struct rmd_power_knob **knob)
{
    if (!p->memory)
        return 0;
    *knob = p->memory->knob;
    return atomic_load_explicit(&p->memory->nknobs, memory_order_relaxed);
}

/* One copy suffices: while it is written there is nothing to restore. */
void rmd_persisted_save_power(struct rmd_persisted *p, const struct rmd_power_knob *knob,
                              unsigned count)
{
    bool fresh = count && !p->memory;
    if ((!count && !p->memory) || (fresh && !make_memory(p)))
        return;
    atomic_store(&p->memory->nknobs, 0);
    if (count)
        memcpy(p->memory->knob, knob, count * sizeof *knob);
    /* release: as in rmd_persisted_save */
    atomic_store_explicit(&p->memory->nknobs, count, memory_order_release);
    if (fresh)
        p->store(p->fd);
    if (!count && !has_orders(&p->memory->copy[atomic_load(&p->memory->valid)])) {
        p->store(-1);
        drop_memory(p);
    }
}

/* --- of a former rmd */

static bool has_names(const struct rmd_persisted_policy *p)
{
    return memchr(p->chosen, '\0', sizeof p->chosen) &&
           memchr(p->configured, '\0', sizeof p->configured);
}

static bool is_threshold(uint32_t t)
{
    return !t || t == RMD_PERSISTED_OFF || (t >= RMD_THERMAL_LEAST && t <= RMD_THERMAL_MOST);
}

static bool is_plausible(const struct rmd_persisted_memory *m)
{
    uint32_t valid = atomic_load(&m->valid);
    if (m->magic != MAGIC || m->version != RMD_PERSISTED_VERSION || m->bytes != sizeof *m ||
        valid > 1)
        return false;
    const struct rmd_persisted_orders *s = &m->copy[valid];
    uint32_t nknobs = atomic_load(&m->nknobs);
    if (nknobs > RMD_POWER_KNOBS || s->nusers > RMD_PERSISTED_USERS ||
        s->ndrained > INV_MAX_CORES || s->emulated > 1 || !is_threshold(s->threshold) || !has_names(&s->policy))
        return false;
    bool good = true;
    for (unsigned i = 0; i < nknobs; i++)
        good &= m->knob[i].kind < RMD_POWER_KINDS;
    for (unsigned i = 0; i < s->ndrained; i++)
        good &= s->drained[i] >= 0;
    for (unsigned i = 0; i < s->nusers; i++) {
        const struct rmd_persisted_user *u = &s->user[i];
        good &= u->cores <= INV_MAX_CORES && u->job_cores <= INV_MAX_CORES &&
                u->own_cores <= INV_MAX_CORES && u->own_job_cores <= INV_MAX_CORES &&
                has_names(&u->policy);
    }
    return good;
}

const struct rmd_persisted_orders *rmd_persisted_load(struct rmd_persisted *p, int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    bool ours = !fstat(fd, &st) && st.st_size == sizeof *p->memory && seals >= 0 &&
                (seals & F_SEAL_SHRINK);
    struct rmd_persisted_memory *m = ours ? map_memory(fd) : NULL;
    if (m && is_plausible(m)) {
        drop_memory(p);
        p->memory = m;
        p->fd = fd;
        return &m->copy[atomic_load(&m->valid)];
    }
    if (m)
        munmap(m, sizeof *m);
    close(fd);
    errno = EPROTO;
    return NULL;
}

/* --- entries */

struct rmd_persisted_policy rmd_persisted_policy(const struct rmd_policy *chosen,
                                                 const struct rmd_policy *configured)
{
    struct rmd_persisted_policy p = {{0}, {0}};
    if (chosen) {
        snprintf(p.chosen, sizeof p.chosen, "%s", chosen->name);
        snprintf(p.configured, sizeof p.configured, "%s", configured->name);
    }
    return p;
}

const struct rmd_policy *rmd_persisted_chosen(const struct rmd_persisted_policy *was,
                                              const struct rmd_policy *configured)
{
    if (!*was->chosen || strcmp(was->configured, configured->name) != 0)
        return NULL;
    const struct rmd_policy *p = rmd_policy_named(was->chosen);
    if (!p)
        rmd_log(RMD_WARNING, "this version has no policy %s, which was chosen", was->chosen);
    return p;
}

static int cpu_number(const struct inv_topology *t, unsigned core)
{
    return t->emulated ? (int)core : t->os_cpu[core];
}

void rmd_persisted_set_drained(struct rmd_persisted_orders *s, const struct inv_topology *t,
                               const bool drained[])
{
    s->emulated = t->emulated;
    s->ndrained = 0;
    for (unsigned c = 0; c < t->ncores; c++)
        if (drained[c])
            s->drained[s->ndrained++] = cpu_number(t, c);
}

static bool was_drained(const struct rmd_persisted_orders *was, int cpu)
{
    for (unsigned i = 0; i < was->ndrained; i++)
        if (was->drained[i] == cpu)
            return true;
    return false;
}

bool rmd_persisted_get_drained(const struct rmd_persisted_orders *was, const struct inv_topology *t,
                               const struct rmd_units *units, bool drained[])
{
    bool any = false;
    if (was->emulated != (uint32_t)t->emulated)
        return false;
    for (unsigned c = 0; c < t->ncores; c++) {
        if (!was_drained(was, cpu_number(t, c)))
            continue;
        any = true;
        for (unsigned k = units->first[units->of[c]]; k < units->first[units->of[c] + 1]; k++)
            drained[k] = true;
    }
    return any;
}
