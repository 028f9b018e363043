/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blocked.c - see blocked.h.
 *
 * Another thread than the holder may compute on a core: a thread that joins the program's own
 * threads sleeps while these compute.  If the threads of a process use more processor time than the
 * cores that the process still holds have, rmd returns a core that it has lent, and lends none for
 * a while.
 */
#define _GNU_SOURCE
#include "rmd/domain/blocked.h"
#include "libinvasive/base/assertion.h"
#include "libinvasive/base/cpus.h"
#include "libinvasive/base/now.h"
#include "libinvasive/base/slice.h"
#include "libinvasive/table/core.h"
#include "rmd/domain/domain_inside.h"
#include "rmd/host/enforce.h"
#include "rmd/loop/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    LOOK_NS = 1500000,
    SOON_NS = 400000,      /* pause if a thread seems to sleep */
    LENT_NS = 1000000,     /* pause while a core is lent, whose thread may run again */
    COST_PART = 50,        /* the processor time of a look is at most 1/COST_PART of the pause
                              after it.  Not its wall time: rmd may wait for a CPU, as behind a
                              borrower that it has woken, while a thread waits for its core */
    UNWANTED_LOOKS = 50,   /* after this many looks at which no process wants a core, rmd stops
                              looking */
    /* After each FRUITLESS_LOOKS looks without a loan the pause doubles, FRUITLESS_DOUBLINGS times
     * at most: a look interrupts a thread that computes, and the threads that wait for that one. */
    FRUITLESS_LOOKS = 3, FRUITLESS_DOUBLINGS = 6,
    WORTH_NS = 4000000, /* a loan that is used for this long makes rmd look often again */
    PATIENCE_NS = 20000000, PATIENCE_MOST_NS = 2000000000,
};
/* A thread runs if it used more than the part RUNS of the time between two looks, or was ready at
 * both.  A thread that sleeps at both and used less than SELDOM, as a writer to a slow pipe, needs
 * no core of its own: for so short a time it runs beside the borrower. */
static const double RUNS = 0.3, SELDOM = 0.1;

static bool others_want(struct rmd_domain *d, unsigned slot)
{
    return inv_others_want(d->table, slot);
}

/* --- processor time of processes */

static void read_processor_times(struct rmd_domain *d)
{
    /* Members are mostly in the first slots: the others are not fetched from memory at each
     * look. */
    for (unsigned s = 0, seen = 0; seen < d->live && s < INV_MAX_SLOTS; s++) {
        if (!d->procs[s].used)
            continue;
        seen++;
        uint64_t ran = rmd_process_ran(d->procs[s].pid), before = d->blocked.process[s].ran_ns;
        d->blocked.process[s].delta_ns = before && ran > before ? ran - before : 0;
        d->blocked.process[s].ran_ns = ran;
        d->blocked.process[s].held = 0;
    }
    for (unsigned c = 0; rmd_domain_owns_cores(d) && c < d->topology.ncores; c++) {
        unsigned holder = inv_word_holder(atomic_load(&inv_core_at(d->table, c)->word));
        if (inv_slot_valid(d->table, (long)holder - 1))
            d->blocked.process[holder - 1].held++;
    }
}

/* Do threads of the process compute without a core?  Its `held` cores are taken for busy.  but_ns:
 * processor time of a thread that does not count. */
static bool computes_beside(struct rmd_domain *d, unsigned slot, uint64_t elapsed, unsigned held, uint64_t but_ns)
{
    double ran = (double)d->blocked.process[slot].delta_ns - (double)but_ns;
    return ran > ((double)held + RUNS) * (double)elapsed;
}

static void keep_for_a_while(struct rmd_domain *d, unsigned slot, uint64_t now)
{
    uint64_t *patience = &d->blocked.process[slot].patience_ns;
    *patience = *patience < PATIENCE_NS              ? PATIENCE_NS
                : *patience * 2 > PATIENCE_MOST_NS ? (uint64_t)PATIENCE_MOST_NS
                                                     : *patience * 2;
    d->blocked.process[slot].not_before_ns = now + *patience;
}

/* --- cores with owners */

/* Moves the thread of another process, which has lost the core, away from it. */
static void move_off(struct rmd_domain *d, unsigned core, unsigned slot, pid_t tid)
{
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (c != core && d->grant[c] == RMD_GRANTED && d->topology.os_cpu[c] >= 0)
            inv_cpus_add(&cpus, (size_t)d->topology.os_cpu[c]);
    bool pins = slot < INV_MAX_SLOTS && d->procs[slot].used &&
                 atomic_load_explicit(&inv_slot_at(d->table, slot)->pins, memory_order_relaxed);
    if (pins && inv_cpus_count(&cpus))
        rmd_move_thread(d->procs[slot].pid, d->procs[slot].pidfd.fd, tid, &cpus);
}

/* Sets the time slices of the thread whose core is lent to the shortest; before: to the former
 * length. */
static void set_slice(struct rmd_domain *d, struct rmd_blocked_holder *h, bool before)
{
    const struct rmd_process *p = &d->procs[h->slot];
    uint64_t slice_ns = before ? h->slice_ns : INV_SHORT_SLICE_NS;
    if (p->used && slice_ns)
        h->slice_ns = rmd_set_slice(p->pid, p->pidfd.fd, h->thread.tid, slice_ns);
    if (before)
        h->slice_ns = 0;
}

/* The thread's core is not lent any more. */
static void forget_loan(struct rmd_domain *d, struct rmd_blocked_holder *h)
{
    if (h->lent)
        set_slice(d, h, true);
    h->lent = h->asleep = h->awake = false;
}

static void end_loan(struct rmd_domain *d, unsigned core)
{
    struct rmd_blocked_holder *h = &d->blocked.holder[core];
    int32_t user = atomic_load_explicit(&inv_core_at(d->table, core)->holder_tid, memory_order_relaxed);
    unsigned evicted = INV_MAX_SLOTS;
    inv_assert(h->lent && h->thread.tid > 0 && d->procs[h->slot].used); /* both exist still */
    forget_loan(d, h);
    if (inv_core_return_to(d->table, core, h->slot, h->thread.tid, &evicted) && evicted != INV_MAX_SLOTS)
        move_off(d, core, evicted, user);
}

static void watch_lender(struct rmd_domain *d, unsigned core, uint64_t now, uint64_t elapsed)
{
    struct rmd_blocked_holder *h = &d->blocked.holder[core];
    if (atomic_load(&inv_core_at(d->table, core)->absent_tid) != h->thread.tid) {
        forget_loan(d, h); /* it has come to a scheduling point */
        return;
    }
    uint64_t ran = rmd_thread_ran(&h->thread);
    bool ready = !rmd_thread_sleeps(&h->thread),
         beside = computes_beside(d, h->slot, elapsed, d->blocked.process[h->slot].held, ran);
    if (beside)
        keep_for_a_while(d, h->slot, now);
    if (beside || (double)ran > RUNS * (double)elapsed || (ready && h->awake))
        end_loan(d, core);
    else
        h->awake = ready;
}

static void record_loan(struct rmd_blocked *b)
{
    b->fruitless = 0;
    b->lent_ns = inv_now_ns();
}

static void lend_core(struct rmd_domain *d, unsigned core)
{
    struct rmd_blocked_holder *h = &d->blocked.holder[core];
    inv_assert(d->blocked.looking && !h->lent && h->slice_ns == 0); /* no loan is left */
    inv_assert(h->asleep && d->procs[h->slot].used && !d->procs[h->slot].stopped);
    h->lent = inv_core_lend_for(d->table, core, h->slot, h->thread.tid);
    h->awake = false;
    if (!h->lent)
        return;
    record_loan(&d->blocked);
    set_slice(d, h, false);
    inv_core_offer(d->table, core, INV_MAX_SLOTS);
}

/* The thread has borrowed the core.  rmd moves it away at once, as an owner that evicts it does,
 * and it finds at its next scheduling point that it has no core.  holder_tid is cleared first: the
 * thread may wake up and borrow the core again as soon as the core is free, and then writes its
 * number there anew. */
static void take_borrowed(struct rmd_domain *d, unsigned core, const struct rmd_blocked_holder *h)
{
    int32_t tid = h->thread.tid;
    inv_assert(h == &d->blocked.borrower[core] && !h->lent && tid > 0); /* never returned to it */
    if (!atomic_compare_exchange_strong(&inv_core_at(d->table, core)->holder_tid, &tid, 0) ||
        !inv_core_seize(d->table, core, h->slot))
        return;
    d->blocked.fruitless = 0;
    move_off(d, core, h->slot, h->thread.tid);
    inv_core_offer(d->table, core, INV_MAX_SLOTS);
}

/* Follows the thread `tid`.  False: it does not exist any more.  *again: it is the thread of the
 * last look. */
static bool follow_thread(struct rmd_domain *d, struct rmd_blocked_holder *h, unsigned slot, pid_t tid, bool *again)
{
    inv_assert(!h->lent && tid > 0); /* while the core is lent, the entry names the absent thread */
    bool known = h->thread.tid == tid && h->slot == slot;
    *again = known && h->look == d->blocked.looks - 1;
    h->look = d->blocked.looks;
    h->slot = slot;
    return known || rmd_thread_follow(&h->thread, d->procs[slot].pid, tid);
}

/* Looks at the core's holder.  True: the thread seems to sleep, and the next look will tell.  idle:
 * a CPU was idle a moment ago, so how long the thread has run before does not matter. */
static bool watch_holder(struct rmd_domain *d, unsigned core, uint64_t now, uint64_t elapsed, bool idle)
{
    inv_word w = atomic_load(&inv_core_at(d->table, core)->word);
    unsigned slot = inv_word_holder(w) - 1, owner = inv_word_owner(w);
    bool borrowed = owner != slot + 1 && owner != INV_ELSEWHERE, again;
    struct rmd_blocked_holder *h = borrowed ? &d->blocked.borrower[core] : &d->blocked.holder[core];
    int32_t tid = borrowed ? atomic_load(&inv_core_at(d->table, core)->holder_tid) : inv_core_thread(d->table, core);
    bool held = slot < INV_MAX_SLOTS && d->procs[slot].used && (borrowed || owner == slot + 1) &&
                !inv_word_handed(w) && tid > 0 && !h->lent;
    unsigned others = held && d->blocked.process[slot].held ? d->blocked.process[slot].held - 1 : 0;
    if (!held || (!idle && computes_beside(d, slot, elapsed, others, 0)) || !follow_thread(d, h, slot, tid, &again))
        return false;
    uint64_t ran = rmd_thread_ran(&h->thread);
    bool before = again && h->asleep;
    h->asleep = (idle || !again || (double)ran <= RUNS * (double)elapsed) && rmd_thread_sleeps(&h->thread);
    if (!h->asleep || !before || (double)ran > SELDOM * (double)elapsed)
        return h->asleep;
    if (!others_want(d, slot) || now < d->blocked.process[slot].not_before_ns || d->procs[slot].stopped ||
        computes_beside(d, slot, elapsed, others, 0))
        return false;
    borrowed ? take_borrowed(d, core, h) : lend_core(d, core);
    return false;
}

/* --- tokens: a process all of whose threads sleep needs none */

static void lend_tokens(struct rmd_domain *d, unsigned slot)
{
    inv_assert(!d->blocked.process[slot].tokens_lent);
    if (!rmd_domain_lend_tokens(d, slot))
        return;
    d->blocked.process[slot].tokens_lent = true;
    record_loan(&d->blocked);
}

static void take_tokens_back(struct rmd_domain *d, unsigned slot)
{
    inv_assert(d->blocked.process[slot].tokens_lent && d->procs[slot].used);
    rmd_domain_end_token_loan(d, slot);
    d->blocked.process[slot].tokens_lent = false;
}

/* As watch_holder. */
static bool watch_tokens(struct rmd_domain *d, unsigned slot, uint64_t elapsed, bool idle)
{
    struct rmd_process *p = &d->procs[slot];
    struct rmd_blocked_holder *h = &d->blocked.holder[slot]; /* of its first thread: no core has one */
    if (p->stopped)
        return false; /* check.c */
    bool before = h->thread.tid == p->pid && h->asleep,
         seldom = (double)d->blocked.process[slot].delta_ns <= SELDOM * (double)elapsed;
    if (h->thread.tid != p->pid) {
        h->slot = slot;
        rmd_thread_follow(&h->thread, p->pid, p->pid);
    }
    h->asleep = (idle || seldom) && h->thread.tid && rmd_thread_sleeps(&h->thread);
    if (d->blocked.process[slot].tokens_lent) {
        if ((double)d->blocked.process[slot].delta_ns > RUNS * (double)elapsed || (!h->asleep && !before))
            take_tokens_back(d, slot);
        return false;
    }
    if (h->asleep && before && seldom && others_want(d, slot))
        lend_tokens(d, slot);
    return h->asleep && !before;
}

/* --- looks */

static bool cores_are_wanted(struct rmd_domain *d)
{
    return inv_others_want(d->table, INV_MAX_SLOTS);
}

static void stop_looking(struct rmd_domain *d)
{
    struct rmd_blocked *b = &d->blocked;
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        if (b->holder[c].lent)
            end_loan(d, c);
        rmd_thread_unfollow(&b->holder[c].thread);
        rmd_thread_unfollow(&b->borrower[c].thread);
    }
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        if (b->process[s].tokens_lent)
            take_tokens_back(d, s);
    memset(b->process, 0, sizeof b->process);
    b->looking = b->watching = false;
    rmd_ring_at(&b->timer, 0);
    if (b->idle_cpu)
        rmd_idle_cpu_pause(b->idle_cpu);
}

/* Does another process use the lent core?  If not, rmd stops looking when no process wants a
 * core. */
static bool core_is_used(struct rmd_domain *d, unsigned core)
{
    return d->blocked.holder[core].lent &&
           inv_word_holder(atomic_load(&inv_core_at(d->table, core)->word)) != INV_NOBODY;
}

static bool tokens_are_used(struct rmd_domain *d, unsigned slot)
{
    return d->blocked.process[slot].tokens_lent &&
           atomic_load(&d->table->free_tokens) < d->procs[slot].loan;
}

/* Returns whether a core or a token is lent and used. */
static bool watch_cores_and_tokens(struct rmd_domain *d, uint64_t now, uint64_t elapsed, bool idle, bool *soon)
{
    bool any = false;
    d->blocked.looks++;
    read_processor_times(d);
    for (unsigned c = 0; elapsed && rmd_domain_owns_cores(d) && c < d->topology.ncores; c++) {
        if (d->blocked.holder[c].lent)
            watch_lender(d, c, now, elapsed);
        *soon |= watch_holder(d, c, now, elapsed, idle);
        any |= core_is_used(d, c);
    }
    for (unsigned s = 0, seen = 0; elapsed && !rmd_domain_owns_cores(d) && seen < d->live && s < INV_MAX_SLOTS; s++)
        if (d->procs[s].used) {
            seen++;
            *soon |= watch_tokens(d, s, elapsed, idle);
            any |= tokens_are_used(d, s);
        }
    return any;
}

static void watch_for_idle_cpu(struct rmd_blocked *b, bool anew)
{
    if (!b->idle_cpu || (b->watching && !anew))
        return;
    b->watching = true;
    rmd_idle_cpu_watch(b->idle_cpu, anew);
}

/* idle: a CPU was idle a moment ago. */
static void watch_and_set_timer(struct rmd_domain *d, bool idle)
{
    struct rmd_blocked *b = &d->blocked;
    uint64_t now = inv_now_ns(), ran = inv_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool soon = false, lent = watch_cores_and_tokens(d, now, b->looked_ns ? now - b->looked_ns : 0, idle, &soon);
    b->looked_ns = now;
    bool worth = lent && now - b->lent_ns >= WORTH_NS;
    if (worth)
        b->lent_ns = now;
    soon = soon && !b->soon; /* not again and again: threads that sleep for less than that lend nothing */
    b->soon = soon;
    b->fruitless += !lent && b->fruitless < FRUITLESS_LOOKS * FRUITLESS_DOUBLINGS;
    b->unwanted = cores_are_wanted(d) || lent ? 0 : b->unwanted + 1;
    if (b->unwanted >= UNWANTED_LOOKS) {
        stop_looking(d);
        rmd_blocked_reconsider(d);
        return;
    }
    uint64_t ended = inv_now_ns(),
             least = soon ? 0 : (inv_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran) * COST_PART,
             pause = soon ? SOON_NS : lent ? LENT_NS : (uint64_t)LOOK_NS << b->fruitless / FRUITLESS_LOOKS;
    rmd_ring_at(&b->timer, ended + (least > pause ? least : pause));
    if (!soon)
        watch_for_idle_cpu(b, worth);
}

static void handle_timer(struct rmd_source *timer, uint32_t events)
{
    struct rmd_domain *d = (void *)((char *)timer - offsetof(struct rmd_domain, blocked.timer));
    (void)events;
    if (rmd_timer_rang(timer) && d->blocked.looking)
        watch_and_set_timer(d, false);
}

static void handle_idle_cpu(struct rmd_source *idle, uint32_t events)
{
    struct rmd_domain *d = (void *)((char *)idle - offsetof(struct rmd_domain, blocked.idle));
    uint64_t count;
    (void)events;
    if (read(idle->fd, &count, sizeof count) < 0 || !d->blocked.watching)
        return;
    d->blocked.watching = false;
    if (cores_are_wanted(d))
        watch_and_set_timer(d, true);
    else
        watch_for_idle_cpu(&d->blocked, false);
}

/* Without the watch rmd looks, too, but later. */
static void open_idle_watch(struct rmd_domain *d)
{
    struct rmd_blocked *b = &d->blocked;
    struct inv_cpus cpus;
    inv_cpus_clear(&cpus);
    for (unsigned c = 0; c < d->topology.ncores; c++)
        if (d->topology.os_cpu[c] >= 0)
            inv_cpus_add(&cpus, (size_t)d->topology.os_cpu[c]);
    b->idle.ready = handle_idle_cpu;
    b->idle_cpu = rmd_idle_cpu_open(&cpus, &b->idle.fd);
    if (!b->idle_cpu || rmd_watch(&b->idle, EPOLLIN))
        rmd_log(RMD_WARNING, "cores of threads that sleep in the kernel are lent late: rmd cannot watch for "
                             "idle CPUs: %s", strerror(errno));
}

static void close_idle_watch(struct rmd_blocked *b)
{
    rmd_idle_cpu_close(b->idle_cpu);
    b->idle_cpu = NULL;
    if (b->idle.fd < 0)
        return;
    rmd_unwatch(&b->idle);
    close(b->idle.fd);
    b->idle.fd = -1;
}

void rmd_blocked_reconsider(struct rmd_domain *d)
{
    struct rmd_blocked *b = &d->blocked;
    if (!d->table || b->timer.fd < 0)
        return;
    if (d->live < 2 || !d->rules.lend_blocked) {
        atomic_store(&d->table->unwatched, 0);
        if (b->looking)
            stop_looking(d);
        return;
    }
    if (b->looking)
        return;
    /* seq_cst: partner is inv_want_set, which says that its process wants a core and then looks here */
    atomic_store(&d->table->unwatched, 1);
    if (!cores_are_wanted(d))
        return;
    atomic_store(&d->table->unwatched, 0);
    b->looking = true;
    b->unwanted = b->fruitless = 0;
    b->soon = false;
    b->looked_ns = 0;
    if (!b->idle_cpu)
        open_idle_watch(d);
    rmd_ring_at(&b->timer, inv_now_ns() + SOON_NS);
}

void rmd_blocked_forget(struct rmd_domain *d, unsigned slot)
{
    struct rmd_blocked *b = &d->blocked;
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        struct rmd_blocked_holder *h = &b->holder[c];
        inv_assert(!h->lent || h->thread.tid > 0); /* else the loan would outlive the member */
        if (b->borrower[c].slot == slot)
            rmd_thread_unfollow(&b->borrower[c].thread);
        if (h->slot != slot || !h->thread.tid)
            continue;
        if (h->lent)
            atomic_store(&inv_core_at(d->table, c)->absent_tid, 0); /* nothing is returned to it */
        forget_loan(d, h);
        rmd_thread_unfollow(&h->thread);
    }
    memset(&b->process[slot], 0, sizeof b->process[slot]);
}

/* A former rmd may have been killed while it took a core from a borrower (take_borrowed): its process
 * holds the core, and no thread of the process knows.  The core is seized.  A thread that has just got
 * a core, and has not written its number yet, loses the core as any evicted thread does. */
static void take_core_without_thread(struct rmd_domain *d, unsigned core)
{
    inv_word w = atomic_load(&inv_core_at(d->table, core)->word);
    long slot = (long)inv_word_holder(w) - 1;
    if (!d->topology.emulated && inv_slot_valid(d->table, slot) && !inv_word_handed(w) &&
        inv_core_thread(d->table, core) == 0)
        inv_core_seize(d->table, core, (unsigned)slot);
}

void rmd_blocked_open(struct rmd_domain *d)
{
    struct rmd_blocked *b = &d->blocked;
    b->timer.fd = b->idle.fd = -1;
    b->idle_cpu = NULL;
    b->looking = b->watching = false;
    for (unsigned c = 0; c < INV_MAX_CORES; c++) {
        b->holder[c] = b->borrower[c] = (struct rmd_blocked_holder){.thread = RMD_FOLLOWED_NONE};
        struct inv_core *core = inv_core_at(d->table, c);
        if (!inv_word_returned(atomic_load(&core->word)))
            atomic_store(&core->absent_tid, 0); /* lent by a former rmd */
        take_core_without_thread(d, c);
    }
    memset(b->process, 0, sizeof b->process);
    if (!d->topology.emulated && rmd_timer_open(&b->timer, handle_timer))
        rmd_log(RMD_WARNING, "cores of threads that sleep in the kernel are not lent: no timer: %s",
                strerror(errno));
}

void rmd_blocked_close(struct rmd_domain *d)
{
    if (d->blocked.looking)
        stop_looking(d);
    close_idle_watch(&d->blocked);
    rmd_timer_close(&d->blocked.timer);
}
