/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * table.c - making and mapping the core table.
 *
 * The memory is a memfd: it has no name, so nothing outlives the last process that maps
 * it.  Its size is sealed: no process with the descriptor can shrink it under the others
 * (that would be a SIGBUS in rmd); and so are its seals: no process can add one after which the
 * others could not map it to write to it.
 */
#define _GNU_SOURCE
#include "libinvasive/table/table.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

_Static_assert(sizeof(struct inv_core) == 128, "a core has its own pair of cache lines");
_Static_assert(sizeof(struct inv_slot) % 64 == 0, "slots do not share cache lines");
_Static_assert(INV_PARKED_MAX == 64, "one bit of inv_slot.parked each");
_Static_assert(INV_MAX_SLOTS < 0xffff, "slot + 1 fits in the field of a core's word");

static struct inv_table *map_table(int fd, int prot)
{
    void *p = mmap(NULL, INV_TABLE_BYTES, prot, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Close without losing the errno of what went wrong. */
static int close_failed(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int inv_memory_resize(int fd, off_t bytes)
{
    struct rlimit most;
    if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY &&
        (rlim_t)bytes > most.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, bytes);
}

static void init_table(struct inv_table *t, unsigned ncores, const int *os_cpus, unsigned nslots,
                       enum inv_mode mode)
{
    t->version = INV_TABLE_VERSION;
    t->ncores = ncores;
    t->nslots = nslots;
    t->mode = mode;
    t->emulated = os_cpus == NULL;
    t->reclaim_bound_us = 1000;
    t->bytes = INV_TABLE_BYTES;
    atomic_init(&t->free_tokens, (int32_t)ncores);
    for (unsigned c = 0; c < ncores; c++) {
        inv_core_at(t, c)->os_cpu = os_cpus ? os_cpus[c] : -1;
        inv_core_at(t, c)->speed = INV_WHOLE_SPEED;
    }
    for (unsigned s = 0; s < nslots; s++) {
        struct inv_slot *slot = inv_slot_at(t, s);
        slot->rank = slot->size = -1;
        atomic_init(&slot->home, INV_NO_CORE);
        for (unsigned a = 0; a < INV_PARKED_MAX; a++)
            atomic_init(&slot->parked_workers[a].core, INV_NO_CORE);
    }
    t->magic = INV_TABLE_MAGIC;
}

static bool counts_fit(unsigned ncores, unsigned nslots, enum inv_mode mode)
{
    if (ncores >= 1 && ncores <= INV_MAX_CORES && nslots >= 1 && nslots <= INV_MAX_SLOTS &&
        (mode == INV_MODE_PINNED || mode == INV_MODE_ANONYMOUS))
        return true;
    errno = EINVAL;
    return false;
}

struct inv_table *inv_table_private(unsigned ncores, const int *os_cpus, unsigned nslots,
                                    enum inv_mode mode)
{
    if (!counts_fit(ncores, nslots, mode))
        return NULL;
    void *p = mmap(NULL, INV_TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    init_table(p, ncores, os_cpus, nslots, mode);
    return p;
}

int inv_table_create(unsigned ncores, const int *os_cpus, unsigned nslots, enum inv_mode mode,
                     struct inv_table **out)
{
    if (!counts_fit(ncores, nslots, mode))
        return -1;
    int fd = memfd_create("invasive-core-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (inv_memory_resize(fd, INV_TABLE_BYTES) != 0 || fcntl(fd, F_ADD_SEALS, TABLE_SEALS) != 0)
        return close_failed(fd);
    struct inv_table *t = map_table(fd, PROT_READ | PROT_WRITE);
    if (!t)
        return close_failed(fd);
    init_table(t, ncores, os_cpus, nslots, mode);
    *out = t;
    return fd;
}

static bool is_table(const struct inv_table *t)
{
    return t->magic == INV_TABLE_MAGIC && t->version == INV_TABLE_VERSION &&
           t->bytes == INV_TABLE_BYTES && t->ncores >= 1 && t->ncores <= INV_MAX_CORES &&
           t->nslots >= 1 && t->nslots <= INV_MAX_SLOTS && t->mode <= INV_MODE_ANONYMOUS;
}

static bool is_sealed(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    /* Without the seal the memory could go away while we look at it. */
    int seals = fcntl(fd, F_GET_SEALS);
    errno = EPROTO;
    return st.st_size == INV_TABLE_BYTES && seals >= 0 && (seals & F_SEAL_SHRINK);
}

struct inv_table *inv_table_map_unread(int fd)
{
    return is_sealed(fd) ? map_table(fd, PROT_READ | PROT_WRITE) : NULL;
}

struct inv_table *inv_table_map(int fd, bool writable)
{
    if (!is_sealed(fd))
        return NULL;
    struct inv_table *t = map_table(fd, writable ? PROT_READ | PROT_WRITE : PROT_READ);
    if (t && !is_table(t)) {
        inv_table_unmap(t);
        errno = EPROTO;
        return NULL;
    }
    return t;
}

void inv_table_unmap(struct inv_table *t)
{
    if (t)
        munmap(t, INV_TABLE_BYTES);
}
