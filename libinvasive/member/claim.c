/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * claim.c - the public interface (include/invasive.h): what a program that knows its needs
 * says to the resource manager, and what it owns and holds.
 *
 * A constraint is a few words in this process's slot, followed by a new constraint_seq and a
 * ring of rmd's bell.  rmd answers with the same number in decided_seq, a futex word.  No
 * message, no descriptor; a constraint that has not changed is not written again.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "invasive.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/uncancelled.h"
#include "libinvasive/hold/want.h"
#include "libinvasive/member/join.h"
#include "libinvasive/process/state.h"
#include "libinvasive/process/thread.h"
#include "libinvasive/table/scalability.h"
#include "libinvasive/table/trace.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

static const int64_t decision_limit_ns = 1000000000;
/* How long to spin for a decision: it takes some microseconds once rmd is awake, and to sleep
 * meanwhile would cost another wake-up.  Less in anonymous mode, where another process may need the
 * core. */
enum { DECISION_SPIN_NS = 100000, ANONYMOUS_SPIN_NS = 5000, SPIN_LOOKS = 16 };

/* Constraints are written by one thread at a time; decisions are awaited outside the lock. */
static struct {
    pthread_mutex_t lock;
    /* The words in the slot may be of a constraint that has no number yet.  Writer: write_constraint,
     * under the lock */
    _Atomic bool writing;
} announcing = {.lock = PTHREAD_MUTEX_INITIALIZER};

void inv_claims_forget(void)
{
    announcing.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&announcing.writing, false);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool valid_amount(double amount)
{
    return isfinite(amount) && amount >= 0;
}

static bool constraint_is_valid(const struct inv_constraint *c)
{
    return valid_amount(c->workload) && valid_amount(c->iteration_s) &&
           c->min_cores <= inv_domain_cores() &&
           (c->max_cores == 0 || c->min_cores <= c->max_cores) &&
           inv_scalability_valid(&c->scalability);
}

/* A constraint, and whether its workload was measured (table.h). */
struct announced {
    struct inv_constraint constraint;
    bool measured;
};

static bool is_announced(struct inv_slot *slot, const struct inv_constraint *c, bool measured)
{
    return atomic_load_explicit(&slot->min_cores, memory_order_relaxed) == c->min_cores &&
           atomic_load_explicit(&slot->max_cores, memory_order_relaxed) == c->max_cores &&
           atomic_load_explicit(&slot->workload_bits, memory_order_relaxed) ==
               bits_of(c->workload) &&
           atomic_load_explicit(&slot->workload_measured, memory_order_relaxed) == measured &&
           atomic_load_explicit(&slot->iteration_bits, memory_order_relaxed) ==
               bits_of(c->iteration_s) &&
           inv_scalability_is_written(slot, &c->scalability);
}

/* Tell rmd that there is something new.  seq_cst: partner is listen_to_bell (rmd/domain/bell.c), which
 * says that it is not busy any more before it looks at the bell once more and sleeps.  One of the
 * two sees the other. */
static void ring_manager(bool hurry)
{
    struct inv_table *t = inv_process.table;
    if (hurry)
        atomic_fetch_add(&t->rmd_hurry, 1);
    atomic_fetch_add(&t->rmd_bell, 1);
    if (!atomic_load(&t->rmd_busy))
        inv_futex_wake(&t->rmd_bell, INT_MAX, true);
    else if (hurry)
        inv_futex_wake(&t->rmd_hurry, 1, true);
}

static bool has_range(struct inv_slot *slot)
{
    return atomic_load_explicit(&slot->min_cores, memory_order_relaxed) ||
           atomic_load_explicit(&slot->max_cores, memory_order_relaxed);
}

/* Writes the events of a new constraint, before the constraint is in the slot: the end of a range
 * is an event, too. */
static void trace_constraint(struct inv_slot *slot, const struct inv_constraint *c)
{
    struct inv_table *t = inv_process.table;
    if (c->min_cores || c->max_cores || has_range(slot))
        inv_trace_write(t, INV_TRACE_RANGE, c->min_cores | (uint64_t)c->max_cores << 32);
    inv_trace_write(t, INV_TRACE_WORKLOAD, bits_of(c->workload));
    if (c->iteration_s > 0)
        inv_trace_write(t, INV_TRACE_ITERATION, bits_of(c->iteration_s));
    for (unsigned i = 0; i < inv_scalability_points(&c->scalability); i++) {
        uint32_t speedup;
        float value = c->scalability.point[i].speedup;
        memcpy(&speedup, &value, sizeof speedup);
        inv_trace_write(t, INV_TRACE_SPEEDUP,
                        speedup | (uint64_t)c->scalability.point[i].cores << 32);
    }
}

/* Write the constraint if it is new.  The caller has the lock.  Returns its number. */
static uint32_t write_constraint(struct inv_slot *slot, const struct inv_constraint *c,
                                 bool measured, enum inv_blocking blocking)
{
    if (is_announced(slot, c, measured))
        return atomic_load_explicit(&slot->constraint_seq, memory_order_relaxed);
    if (inv_traced())
        trace_constraint(slot, c);
    inv_assert(!atomic_load_explicit(&announcing.writing, memory_order_relaxed)); /* under the lock */
    atomic_store_explicit(&announcing.writing, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* partner: is_in_force */
    atomic_store_explicit(&slot->min_cores, c->min_cores, memory_order_relaxed);
    atomic_store_explicit(&slot->max_cores, c->max_cores, memory_order_relaxed);
    atomic_store_explicit(&slot->workload_bits, bits_of(c->workload), memory_order_relaxed);
    atomic_store_explicit(&slot->workload_measured, measured, memory_order_relaxed);
    atomic_store_explicit(&slot->iteration_bits, bits_of(c->iteration_s), memory_order_relaxed);
    inv_scalability_write(slot, &c->scalability);
    /* release: partner is rmd's acquire load of constraint_seq.  If rmd reads the values while
     * they are being written it has the old number, and the bell makes it read again. */
    uint32_t seq = atomic_fetch_add_explicit(&slot->constraint_seq, 1, memory_order_release) + 1;
    atomic_store_explicit(&announcing.writing, false, memory_order_release); /* partner: is_in_force */
    if (blocking != INV_BLOCKING) /* else await_decision does */
        ring_manager(false);
    return seq;
}

static uint32_t announce(const struct inv_constraint *c, enum inv_blocking blocking)
{
    INV_UNCANCELLED;
    struct inv_slot *slot = inv_own_slot();
    pthread_mutex_lock(&announcing.lock);
    uint32_t seq = write_constraint(slot, c, false, blocking);
    pthread_mutex_unlock(&announcing.lock);
    return seq;
}

/* Has rmd decided on constraint `seq` or a later one?  acquire: partner is rmd's release store,
 * after it has written the owners. */
static bool is_decided(struct inv_slot *slot, uint32_t seq, uint32_t *seen)
{
    *seen = atomic_load_explicit(&slot->decided_seq, memory_order_acquire);
    return (int32_t)(*seen - seq) >= 0;
}

static bool spin_for_decision(struct inv_slot *slot, uint32_t seq, uint64_t start)
{
    uint64_t patience = inv_process.anonymous ? ANONYMOUS_SPIN_NS : DECISION_SPIN_NS;
    uint32_t seen;
    do
        for (unsigned i = 0; i < SPIN_LOOKS; i++) {
            if (is_decided(slot, seq, &seen))
                return true;
            inv_cpu_relax();
        }
    while (inv_now_ns() - start < patience);
    return false;
}

static bool await_decision(uint32_t seq)
{
    struct inv_slot *slot = inv_own_slot();
    uint32_t seen;
    if (is_decided(slot, seq, &seen))
        return true;
    uint64_t start = inv_now_ns(), end = start + (uint64_t)decision_limit_ns, now;
    ring_manager(true); /* also for what was announced without hurry */
    if (spin_for_decision(slot, seq, start))
        return true;
    while (!is_decided(slot, seq, &seen)) {
        if ((now = inv_now_ns()) >= end)
            return false;
        inv_futex_wait(&slot->decided_seq, seen, (int64_t)(end - now), true);
    }
    return true;
}

static struct inv_claim unmanaged_claim(void)
{
    unsigned cores = inv_domain_cores();
    return (struct inv_claim){.owned_cores = cores, .held_cores = cores, .managed = false};
}

/* The claim of a process in anonymous mode, where no process owns a core. */
static struct inv_claim claim_of_tokens(void)
{
    int32_t tokens = atomic_load_explicit(&inv_own_slot()->tokens, memory_order_relaxed);
    return (struct inv_claim){.held_cores = tokens > 0 ? (unsigned)tokens : 0, .managed = true};
}

struct inv_claim inv_claim_now(void)
{
    if (!inv_has_manager())
        return unmanaged_claim();
    if (inv_process.anonymous)
        return claim_of_tokens();
    struct inv_claim claim = claim_of_tokens();
    for (unsigned core = 0; core < inv_process.ncores; core++) {
        inv_word w = atomic_load_explicit(&inv_core_at(inv_process.table, core)->word,
                                          memory_order_relaxed);
        claim.owned_cores += inv_word_owner(w) == inv_own_name();
        claim.held_cores += inv_word_holder(w) == inv_own_name();
    }
    return claim;
}

double inv_core_speed(void)
{
    if (inv_hold < 0 || !inv_has_manager() || !inv_core_valid(inv_process.table, inv_hold))
        return 1;
    unsigned speed = inv_core_at(inv_process.table, (unsigned)inv_hold)->speed;
    return speed > 0 && speed < INV_WHOLE_SPEED ? (double)speed / INV_WHOLE_SPEED : 1;
}

/* Errors are reported in errno alone; nothing is changed by a constraint that is not valid. */
static int request_cores(const struct inv_constraint *constraint, enum inv_blocking blocking,
                         struct inv_claim *claim)
{
    static const struct inv_constraint none;
    const struct inv_constraint *c = constraint ? constraint : &none;
    int error = 0;
    if (!constraint_is_valid(c))
        error = EINVAL;
    else if (inv_has_manager()) {
        uint32_t seq = announce(c, blocking);
        if (blocking == INV_BLOCKING && !await_decision(seq))
            error = ETIMEDOUT;
    }
    if (claim)
        *claim = inv_claim_now();
    if (error)
        errno = error;
    return error ? -1 : 0;
}

int inv_invade(const struct inv_constraint *constraint, enum inv_blocking blocking,
               struct inv_claim *claim)
{
    inv_join(-1, -1, -1);
    return request_cores(constraint, blocking, claim);
}

/* Is this constraint the announced one and, for a blocking caller, decided?  Takes no lock and
 * writes nothing.  A thread that reads a word of a constraint that another thread is writing also
 * sees `writing` or, after that, the new number: acquire, partner is write_constraint. */
static bool is_in_force(const struct inv_constraint *c, enum inv_blocking blocking)
{
    struct inv_slot *slot = inv_own_slot();
    uint32_t seen;
    if (!is_announced(slot, c, false))
        return false;
    if (blocking != INV_BLOCKING)
        return true;
    atomic_thread_fence(memory_order_acquire);
    return !atomic_load_explicit(&announcing.writing, memory_order_acquire) &&
           is_decided(slot, atomic_load_explicit(&slot->constraint_seq, memory_order_relaxed),
                      &seen);
}

int inv_reinvade(const struct inv_constraint *constraint, enum inv_blocking blocking,
                 struct inv_claim *claim)
{
    if (!constraint || !inv_has_manager() || !is_in_force(constraint, blocking))
        return inv_invade(constraint, blocking, claim);
    if (claim)
        *claim = inv_claim_now();
    return 0;
}

int inv_retreat(void)
{
    if (!inv_has_manager())
        return 0;
    announce(&(struct inv_constraint){.max_cores = 1}, INV_NONBLOCKING);
    inv_want(false);
    return 0;
}

/* The constraint in force, as this process has written it. */
static struct announced read_announced(struct inv_slot *slot)
{
    struct announced a = {
        .measured = atomic_load_explicit(&slot->workload_measured, memory_order_relaxed)};
    struct inv_constraint *c = &a.constraint;
    c->min_cores = atomic_load_explicit(&slot->min_cores, memory_order_relaxed);
    c->max_cores = atomic_load_explicit(&slot->max_cores, memory_order_relaxed);
    uint64_t bits = atomic_load_explicit(&slot->workload_bits, memory_order_relaxed);
    memcpy(&c->workload, &bits, sizeof bits);
    bits = atomic_load_explicit(&slot->iteration_bits, memory_order_relaxed);
    memcpy(&c->iteration_s, &bits, sizeof bits);
    inv_scalability_read(slot, &c->scalability);
    return a;
}

/* Updates the field whose argument is not NULL, and announces the constraint.
 *   measured  of the workload */
static int announce_part(const double *workload, bool measured,
                         const struct inv_scalability *scalability)
{
    if (!inv_join(-1, -1, -1))
        return 0;
    INV_UNCANCELLED;
    struct inv_slot *slot = inv_own_slot();
    pthread_mutex_lock(&announcing.lock);
    struct announced a = read_announced(slot);
    inv_assert((workload == NULL) != (scalability == NULL));
    if (workload) {
        a.constraint.workload = *workload;
        a.measured = measured;
    } else
        a.constraint.scalability = *scalability;
    write_constraint(slot, &a.constraint, a.measured, INV_NONBLOCKING);
    pthread_mutex_unlock(&announcing.lock);
    return 0;
}

static int announce_workload(double workload, bool measured)
{
    if (!valid_amount(workload)) {
        errno = EINVAL;
        return -1;
    }
    return announce_part(&workload, measured, NULL);
}

int inv_announce_workload(double workload) { return announce_workload(workload, false); }

int inv_announce_measured_workload(double workload) { return announce_workload(workload, true); }

int inv_announce_scalability(const struct inv_scalability *scalability)
{
    static const struct inv_scalability unknown;
    if (scalability && !inv_scalability_valid(scalability)) {
        errno = EINVAL;
        return -1;
    }
    return announce_part(NULL, false, scalability ? scalability : &unknown);
}

const char *inv_version(void)
{
    return PACKAGE_VERSION;
}
