/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * site_stats.c - call-site statistics, see site_stats.h.
 *
 * A call site is a return address and the function that was called.  Both make one key of 64 bits.
 * A hash table of the process (open addressing, bounded, never emptied) maps it to the site's
 * number in the record.  Sites for which there is no room share number 0.
 */
#define _GNU_SOURCE
#include "mpi-shim/measure/clock.h"
#include "libinvasive/base/assertion.h"
#include "mpi-shim/measure/site_stats.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <time.h>

enum { MAP = 1024, PROBES = 32 }; /* MAP: a power of two */
enum { SITE_OTHER = 0 };          /* no room */
enum { ADDRESS_BITS = 48, BEFORE_US = 10, UNASKED_US = 50 };
enum { TRACED_US = 10 }; /* the shortest wait that is in a trace */
enum { PUBLISH_NS = 1000000 }; /* the least time between two updates, which take a system call */

_Static_assert(SHIM_CALLS < 1 << (64 - ADDRESS_BITS), "a function's number fits beside an address");

/* Which site has which number.  Written by the thread that finds a new one. */
static struct {
    uint64_t key[INV_SITES];   /* by number; written before the number is in the map */
    _Atomic uint32_t map[MAP]; /* numbers of sites; 0 free; written once */
} sites;

/* State of the calling thread, which alone writes it. */
static __thread struct {
    unsigned here; /* number of its latest call's site */
    bool main;
    /* the wait whose CPU time has been read (its start, ticks), when, and the CPU time */
    uint64_t wait_start, asked_ticks, cpu_ns;
} thread __attribute__((tls_model("initial-exec")));

static void add_to(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* --- naming a site, once */

static void copy_name(char *to, size_t room, const char *from)
{
    size_t length = from ? strlen(from) : 0;
    if (length >= room) { /* keep the end of a name, which differs more than its beginning */
        from += length - (room - 1);
        length = room - 1;
    }
    memcpy(to, from ? from : "", length);
    to[length] = '\0';
}

/* "Recv" */
static const char *name_of(enum shim_call call)
{
    const struct shim_symbol *f = shim_symbols;
    while (f->name && f->call != (int)call)
        f++;
    return f->name ? f->name + strlen("PMPI_") : "";
}

static void name_site(struct inv_site *s, enum shim_call call, const void *address)
{
    Dl_info info;
    struct link_map *module = NULL;
    copy_name(s->function, sizeof s->function, name_of(call));
    s->offset = (uintptr_t)address;
    if (dladdr1(address, &info, (void **)&module, RTLD_DL_LINKMAP) && module) {
        copy_name(s->symbol, sizeof s->symbol, info.dli_sname);
        s->offset -= module->l_addr;
        inv_record_name_module(s->module, module->l_name);
    }
    /* release: partner is the acquire load in the readers of records */
    atomic_store_explicit(&s->named, 1, memory_order_release);
}

/* --- looking one up */

/* A new number; SITE_OTHER when none is left. */
static uint32_t new_number(struct inv_record *r)
{
    if (atomic_load_explicit(&r->sites, memory_order_relaxed) >= INV_SITES)
        return SITE_OTHER;
    uint32_t number = atomic_fetch_add_explicit(&r->sites, 1, memory_order_relaxed);
    return number < INV_SITES ? number : SITE_OTHER;
}

/* The site's number, a new one at its first call; SITE_OTHER if there is no room.  When two threads
 * make the first call at once, the number of one of them stays unused. */
static uint32_t find_site(struct inv_record *r, enum shim_call call, const void *address)
{
    uint64_t where = (uintptr_t)address, key = where | (uint64_t)call << ADDRESS_BITS;
    unsigned first = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 54);
    uint32_t mine = SITE_OTHER;
    if (!where || where >> ADDRESS_BITS)
        return SITE_OTHER;
    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic uint32_t *at = &sites.map[(first + i) % MAP];
        /* acquire: partner is the exchange below, after its site's key was written */
        uint32_t found = atomic_load_explicit(at, memory_order_acquire);
        if (!found && mine == SITE_OTHER) {
            if ((mine = new_number(r)) == SITE_OTHER)
                return SITE_OTHER;
            sites.key[mine] = key;
        }
        if (!found && atomic_compare_exchange_strong_explicit(
                          at, &found, mine, memory_order_release, memory_order_acquire)) {
            name_site(&r->site[mine], call, address);
            return mine;
        }
        if (sites.key[found] == key)
            return found;
    }
    return SITE_OTHER;
}

void shim_site_stats_count_call(enum shim_call call, const void *address)
{
    struct inv_record *r = inv_own_sites();
    if (!r || !atomic_load_explicit(&r->sites, memory_order_relaxed))
        return; /* before shim_site_stats_start */
    thread.here = find_site(r, call, address);
    inv_assert(thread.here < INV_SITES);
    add_to(&r->site[thread.here].calls, 1);
}

unsigned shim_site_stats_current(void) { return thread.here; }
void shim_site_stats_set_current(unsigned here) { thread.here = here; }

/* --- waits */

/* CPU time is read only once a wait has lasted a while, since that is a system call.  Until then
 * the thread has most likely run all the time. */
void shim_site_stats_wait_lasts(uint64_t start)
{
    if (!inv_own_record() || thread.wait_start == start)
        return;
    thread.wait_start = start;
    thread.asked_ticks = shim_ticks();
    thread.cpu_ns = shim_thread_cpu_ns();
}

void shim_site_stats_wait_sleeps(uint64_t start)
{
    struct inv_record *r = inv_own_record();
    shim_site_stats_wait_lasts(start);
    if (inv_traced())
        inv_trace_write(inv_process.table, INV_TRACE_SLEEP, thread.here);
    if (!r || !thread.main)
        return;
    atomic_store_explicit(&r->waiting_site, thread.here, memory_order_relaxed);
    atomic_store_explicit(&r->waiting_since_ns, inv_now_ns(), memory_order_relaxed);
}

void shim_site_stats_wait_woke(void)
{
    struct inv_record *r = inv_own_record();
    if (r && thread.main)
        atomic_store_explicit(&r->waiting_since_ns, 0, memory_order_relaxed);
}

static uint64_t limit_ticks(uint64_t ticks, uint64_t us)
{
    return ticks < us * shim_clock.us ? ticks : us * shim_clock.us;
}

/* The CPU time that the wait took.  If it was not read, the wait was short, or the thread slept. */
static uint64_t used_cpu_ns(uint64_t start, uint64_t end)
{
    if (thread.wait_start != start)
        return shim_ticks_to_ns(limit_ticks(end - start, UNASKED_US));
    uint64_t before = shim_ticks_to_ns(limit_ticks(thread.asked_ticks - start, BEFORE_US));
    uint64_t burnt = before + shim_thread_cpu_ns() - thread.cpu_ns;
    uint64_t all = shim_ticks_to_ns(end - start);
    return burnt < all ? burnt : all;
}

void shim_site_stats_add_wait(uint64_t start, uint64_t end, bool slept)
{
    struct inv_record *r = inv_own_record();
    if (!r || !atomic_load_explicit(&r->sites, memory_order_relaxed))
        return; /* a wait of set-up, before shim_site_stats_start */
    inv_assert(thread.here < INV_SITES);
    struct inv_site *s = &r->site[thread.here];
    uint64_t ticks = end - start;
    add_to(&s->waited_ticks, ticks);
    if (slept)
        add_to(&s->slept, 1);
    uint64_t longest = atomic_load_explicit(&s->longest_ticks, memory_order_relaxed);
    while (ticks > longest && !atomic_compare_exchange_weak_explicit(
                                  &s->longest_ticks, &longest, ticks, memory_order_relaxed,
                                  memory_order_relaxed))
        ;
    add_to(&r->spun_ns, used_cpu_ns(start, end));
}

void shim_site_stats_trace_wait(uint64_t start, uint64_t end, bool slept)
{
    uint64_t most = (UINT64_C(1) << 48) - 1, ns = shim_ticks_to_ns(end - start);
    if (slept || end - start >= TRACED_US * shim_clock.us)
        inv_trace_write(inv_process.table, INV_TRACE_WAIT,
                        (ns < most ? ns : most) | (uint64_t)thread.here << 48);
}

/* --- the whole */

void shim_site_stats_start(uint64_t job)
{
    struct inv_record *r = inv_own_sites();
    if (!r)
        return;
    thread.main = true;
    if (!atomic_load_explicit(&r->sites, memory_order_relaxed)) /* else a session begins again */
        atomic_store_explicit(&r->sites, SITE_OTHER + 1, memory_order_relaxed);
    atomic_store_explicit(&r->job, job, memory_order_relaxed);
    atomic_store_explicit(&r->ticks_per_ms, shim_clock.us * 1000, memory_order_relaxed);
    inv_record_restart();
}

_Static_assert((int)SHIM_CLASSES == (int)INV_CLASSES, "the record has room for all classes");

static void store_relaxed(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static void copy_classes(struct inv_record *r, const struct shim_iteration_class *from,
                         unsigned count)
{
    inv_assert(count <= INV_CLASSES);
    for (unsigned i = 0; i < count; i++) {
        struct inv_class *to = &r->class[i];
        store_relaxed(&to->sites, from[i].sites);
        store_relaxed(&to->count, from[i].count);
        store_relaxed(&to->length_ns, from[i].length_ns);
        store_relaxed(&to->useful_ns, from[i].useful_ns);
        store_relaxed(&to->wait_ns, from[i].wait_ns);
        store_relaxed(&to->core_ns, from[i].core_ns);
    }
    atomic_store_explicit(&r->classes, count, memory_order_relaxed);
}

static void publish_record(struct inv_record *r, uint64_t now,
                           const struct shim_iteration_class *classes, unsigned count)
{
    copy_classes(r, classes, count);
    store_relaxed(&r->counted_ns, now);
    inv_record_publish();
}

void shim_site_stats_publish(const struct shim_iteration_class *classes, unsigned count)
{
    struct inv_record *r = inv_own_record();
    uint64_t now = r ? inv_now_ns() : 0;
    if (r && now - atomic_load_explicit(&r->counted_ns, memory_order_relaxed) > PUBLISH_NS)
        publish_record(r, now, classes, count);
}

void shim_site_stats_stop(const struct shim_iteration_class *classes, unsigned count)
{
    struct inv_record *r = inv_own_record();
    if (r)
        publish_record(r, inv_now_ns(), classes, count);
    inv_record_stop();
}
