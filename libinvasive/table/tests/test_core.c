/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_core.c - each transition of core.h on its own, the table's checks and the arrival board, in
 * one thread.  What threads do to one another is test_core_stress.c's, all interleavings
 * are the model's.
 */
#define _GNU_SOURCE
#include "libinvasive/table/arrival_board.h"
#include "libinvasive/table/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(cond)                                                                          \
    do {                                                                                     \
        if (!(cond)) {                                                                       \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);             \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static struct inv_table *table(unsigned ncores, enum inv_mode mode)
{
    struct inv_table *t;
    int fd = inv_table_create(ncores, NULL, 4, mode, &t);
    CHECK(fd >= 0);
    close(fd);
    for (unsigned s = 0; s < 4; s++)
        atomic_store(&inv_slot_at(t, s)->state, INV_SLOT_LIVE);
    return t;
}

static unsigned holder(struct inv_table *t, unsigned core)
{
    return inv_word_holder(atomic_load(&inv_core_at(t, core)->word));
}
static bool reserved(struct inv_table *t, unsigned core)
{
    return inv_word_reclaim(atomic_load(&inv_core_at(t, core)->word));
}

/* A parked worker of a process that wants a core. */
static void park(struct inv_table *t, unsigned slot, unsigned entry)
{
    inv_want_set(t, slot, true);
    atomic_fetch_or(&inv_slot_at(t, slot)->parked, UINT64_C(1) << entry);
}
static bool woken(struct inv_table *t, unsigned slot, unsigned entry, int core)
{
    struct inv_slot *s = inv_slot_at(t, slot);
    struct inv_parked *worker = &s->parked_workers[entry];
    bool is = !(atomic_load(&s->parked) >> entry & 1) && atomic_load(&worker->bell) == 1 &&
              atomic_load(&worker->core) == core;
    atomic_store(&worker->bell, 0);
    return is;
}

static void test_table(void)
{
    struct inv_table *t, *seen;
    int cpus[2] = {0, 1};
    CHECK(inv_table_create(0, NULL, 4, INV_MODE_PINNED, &t) == -1 && errno == EINVAL);
    CHECK(inv_table_create(2, NULL, INV_MAX_SLOTS + 1, INV_MODE_PINNED, &t) == -1);
    int fd = inv_table_create(2, cpus, 4, INV_MODE_PINNED, &t);
    CHECK(fd >= 0 && !t->emulated && inv_core_at(t, 1)->os_cpu == 1);
    CHECK(ftruncate(fd, 4096) == -1 && errno == EPERM);
    CHECK((seen = inv_table_map(fd, false)) != NULL && seen->ncores == 2);
    inv_table_unmap(seen);
    t->nslots = 100000;
    CHECK(inv_table_map(fd, true) == NULL && errno == EPROTO);
    close(fd);
    inv_table_unmap(t);
    int other = memfd_create("other", MFD_CLOEXEC);
    CHECK(other >= 0 && ftruncate(other, INV_TABLE_BYTES) == 0);
    CHECK(inv_table_map(other, true) == NULL && errno == EPROTO);
    close(other);
}

static void test_transitions(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    unsigned victim = 99;
    CHECK(inv_core_own(t, 0, 0) == -1 && inv_core_own(t, 0, 1) == 0 && inv_core_own(t, 0, 0) == 1);
    CHECK(inv_core_borrow(t, 0, 1) && !inv_core_borrow(t, 0, 0) && !inv_core_lend(t, 0, 0));
    CHECK(inv_core_reclaim(t, 0, 1) == INV_RECLAIM_NOT_OWNER);
    CHECK(inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED && reserved(t, 0));
    CHECK(inv_core_lend(t, 0, 1) && reserved(t, 0) && !inv_core_borrow(t, 0, 1));
    CHECK(inv_core_borrow(t, 0, 0) && !reserved(t, 0));
    CHECK(inv_core_reclaim(t, 0, 0) == INV_RECLAIM_HELD && !inv_core_evict(t, 0, 0, &victim));
    CHECK(inv_core_lend(t, 0, 0) && inv_core_borrow(t, 0, 2));
    CHECK(inv_core_evict(t, 0, 0, &victim) && victim == 2 && holder(t, 0) == 1);
    CHECK(!inv_core_lend(t, 0, 2));
    CHECK(inv_core_lend(t, 0, 0) && inv_core_borrow(t, 0, 2));
    CHECK(inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED && !inv_core_reclaim_cancel(t, 0, 0));
    CHECK(!reserved(t, 0) && inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED);
    CHECK(inv_core_lend(t, 0, 2) && inv_core_reclaim_cancel(t, 0, 0) && inv_core_borrow(t, 0, 3));
    struct inv_counters *c = &inv_slot_at(t, 2)->counters, *o = &inv_slot_at(t, 0)->counters;
    CHECK(atomic_load(&c->borrows) == 2 && atomic_load(&c->borrowed_ns) > 0);
    CHECK(atomic_load(&o->evictions) == 1 && atomic_load(&o->reclaims) == 3);
    CHECK(atomic_load(&o->lends) == 2 &&
          atomic_load(&o->lent_used_ns) >= atomic_load(&c->borrowed_ns));
    inv_table_unmap(t);
}

static void test_offer(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    park(t, 2, 5);
    inv_core_offer(t, 0, 1);
    CHECK(woken(t, 2, 5, 0));
    park(t, 2, 5), park(t, 3, 63), park(t, 1, 1);
    inv_core_offer(t, 0, 2);
    CHECK(woken(t, 2, 5, 0));
    inv_core_offer(t, 0, 2);
    CHECK(woken(t, 3, 63, 0));
    park(t, 3, 63), park(t, 0, 0);
    inv_core_offer(t, 0, 2); /* the owner before the others */
    CHECK(woken(t, 0, 0, 0));
    atomic_store(&inv_slot_at(t, 3)->state, INV_SLOT_DEAD);
    inv_core_offer(t, 0, 2); /* not to the dead */
    CHECK(woken(t, 1, 1, 0));
    inv_table_unmap(t);
}

/* The core is held by 1 and belongs to 0, which rings for it while it sleeps. */
static void test_ring(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    struct inv_slot *s = inv_slot_at(t, 0);
    inv_core_own(t, 0, 0);
    CHECK(inv_core_borrow(t, 0, 1));
    inv_ring(t, 0);
    CHECK(atomic_load(&s->bell) == 1 && !reserved(t, 0));
    atomic_store(&s->home, 0), atomic_store(&s->sleepers, 1);
    inv_ring(t, 0);
    CHECK(atomic_load(&s->bell) == 2 && reserved(t, 0));
    park(t, 2, 0);
    CHECK(inv_core_lend(t, 0, 1));
    inv_core_offer(t, 0, 1);
    CHECK(holder(t, 0) == 1 && atomic_load(&s->bell) == 3 && !reserved(t, 0));
    CHECK(inv_core_lend(t, 0, 0));
    inv_ring(t, 0);
    CHECK(holder(t, 0) == 1 && atomic_load(&s->bell) == 5);
    CHECK(!inv_core_claim(t, 0, 1) && inv_core_claim(t, 0, 0) && !inv_core_claim(t, 0, 0));
    CHECK(inv_core_lend(t, 0, 0));
    inv_ring(t, 0);
    CHECK(holder(t, 0) == 1 && inv_core_forgo(t, 0, 0) && holder(t, 0) == 0);
    CHECK(inv_core_forgo(t, 0, 0) && inv_core_borrow(t, 0, 1) && !inv_core_forgo(t, 0, 0));
    inv_table_unmap(t);
}

/* Core 0 of process 0, which 1 computes on, goes to another domain and comes back. */
static void test_another_domain(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    uint32_t bell = atomic_load(&inv_slot_at(t, 0)->bell);
    CHECK(inv_core_borrow(t, 0, 1) && !inv_core_withdraw(t, 0) && !inv_core_is_free(t, 0));
    CHECK(atomic_load(&inv_slot_at(t, 0)->bell) != bell); /* it may be about to wait for it */
    CHECK(reserved(t, 0) && inv_core_reclaim(t, 0, 0) == INV_RECLAIM_NOT_OWNER);
    park(t, 2, 0);
    CHECK(atomic_load(&t->rmd_bell) == 0 && inv_core_lend(t, 0, 1));
    inv_core_offer(t, 0, 1);
    CHECK(atomic_load(&t->rmd_bell) == 1 && inv_core_is_free(t, 0) && !woken(t, 2, 0, 0));
    CHECK(!inv_core_borrow(t, 0, 0) && !inv_core_borrow(t, 0, 1) && !inv_core_borrow(t, 0, 2));
    inv_core_admit(t, 0);
    inv_core_offer(t, 0, INV_MAX_SLOTS);
    CHECK(woken(t, 2, 0, 0) && inv_core_borrow(t, 0, 2));
    CHECK(!inv_core_withdraw(t, 0));
    inv_core_admit(t, 0); /* asked back: the holder keeps it */
    CHECK(holder(t, 0) == 3 && !reserved(t, 0) && !inv_core_withdraw(t, 0));
    inv_core_expel(t, 0);
    CHECK(inv_core_is_free(t, 0) && !inv_core_lend(t, 0, 2) && !inv_core_borrow(t, 0, 2));
    inv_table_unmap(t);
}

static void test_stale_reservation_is_dropped(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    CHECK(inv_core_borrow(t, 0, 1) && inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED);
    park(t, 2, 0);
    CHECK(inv_core_lend(t, 0, 1));
    inv_core_offer(t, 0, 1);
    CHECK(!reserved(t, 0) && woken(t, 2, 0, 0));
    inv_table_unmap(t);
}

static void test_new_owner_that_wants_has_asked(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    CHECK(inv_core_borrow(t, 0, 0));
    park(t, 1, 3);
    CHECK(inv_core_own(t, 0, 1) == 0 && reserved(t, 0));
    CHECK(inv_core_own(t, 0, 0) == 1 && !reserved(t, 0) && inv_core_lend(t, 0, 0));
    CHECK(inv_core_own(t, 0, 1) == 0); /* also without a holder, when a process might take it */
    CHECK(!inv_core_borrow(t, 0, 2));
    inv_core_offer(t, 0, INV_MAX_SLOTS);
    CHECK(woken(t, 1, 3, 0) && inv_core_borrow(t, 0, 1));
    inv_table_unmap(t);
}

/* 0 has parked while its core was another's for a moment, and 1 computes there. */
static void test_owner_that_gets_its_core_back_has_asked(void)
{
    const uint64_t members[INV_SLOT_WORDS] = {7};
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 2);
    CHECK(inv_core_borrow(t, 0, 1));
    park(t, 0, 3);
    CHECK(inv_core_repair(t, 0, 1, members) && reserved(t, 0) && holder(t, 0) == 2);
    CHECK(!inv_core_repair(t, 0, 1, members) && inv_core_lend(t, 0, 1));
    inv_core_offer(t, 0, 1);
    CHECK(woken(t, 0, 3, 0));
    /* nor does it help to have asked before the word was overwritten */
    CHECK(inv_core_borrow(t, 0, 0) && inv_core_lend(t, 0, 0) && inv_core_borrow(t, 0, 1));
    park(t, 0, 3);
    CHECK(inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED);
    uint32_t bell = atomic_load(&inv_slot_at(t, 3)->bell);
    atomic_store(&inv_core_at(t, 0)->word, inv_word_next(0, 2, 4, false));
    CHECK(inv_core_repair(t, 0, 1, members) && reserved(t, 0));
    CHECK(atomic_load(&inv_slot_at(t, 3)->bell) != bell); /* the seeming owner may wait */
    inv_table_unmap(t);
}

/* An rmd that was killed has made 0 the owner, and not asked. */
static void test_rescue_asks_for_owners(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    CHECK(inv_core_borrow(t, 0, 1));
    park(t, 0, 3);
    inv_rescue(t);
    CHECK(reserved(t, 0) && holder(t, 0) == 2);
    inv_table_unmap(t);
}

static void test_reap(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    unsigned freed = 0;
    inv_core_own(t, 0, 1), inv_core_own(t, 1, 0);
    CHECK(inv_core_borrow(t, 0, 1) && inv_core_borrow(t, 1, 1));
    CHECK(inv_core_reclaim(t, 1, 0) == INV_RECLAIM_ASKED);
    inv_want_set(t, 1, true);
    park(t, 0, 0), park(t, 2, 0);
    atomic_store(&inv_slot_at(t, 1)->state, INV_SLOT_DEAD);
    inv_slot_reap(t, 1, &freed);
    CHECK(freed == 2 && holder(t, 0) == 0 && holder(t, 1) == 0 && !inv_want_get(t, 1));
    CHECK(woken(t, 0, 0, 0) || woken(t, 0, 0, 1));
    CHECK(inv_word_owner(atomic_load(&inv_core_at(t, 0)->word)) == INV_NOBODY);
    inv_table_unmap(t);
}

/* --- threads that sleep in the kernel: threads 70 and 71 of process 0, thread 80 of process 1 */

static _Atomic int32_t *holder_tid(struct inv_table *t) { return &inv_core_at(t, 0)->holder_tid; }
static int32_t absent(struct inv_table *t) { return atomic_load(&inv_core_at(t, 0)->absent_tid); }

static void hold_as(struct inv_table *t, unsigned slot, int32_t tid)
{
    CHECK(inv_core_borrow(t, 0, slot));
    atomic_store(holder_tid(t), tid);
}

/* Core 0 is process 0's, and thread 70 holds it. */
static struct inv_table *table_with_holder(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    hold_as(t, 0, 70);
    return t;
}

/* rmd has lent the core for thread 70. */
static struct inv_table *table_with_absent(void)
{
    struct inv_table *t = table_with_holder();
    CHECK(inv_core_lend_for(t, 0, 0, 70) && holder(t, 0) == 0 && absent(t) == 70);
    return t;
}

static void test_core_is_lent_for_its_own_thread_only(void)
{
    struct inv_table *t = table_with_holder();
    CHECK(!inv_core_lend_for(t, 0, 0, 71) && !inv_core_lend_for(t, 0, 1, 80));
    CHECK(holder(t, 0) == 1 && absent(t) == 0 && inv_core_thread(t, 0) == 70);
    CHECK(inv_core_lend_for(t, 0, 0, 70) && holder(t, 0) == 0);
    CHECK(absent(t) == 70 && inv_core_thread(t, 0) == 70);
    CHECK(atomic_load(&inv_slot_at(t, 0)->counters.lends) == 1);
    CHECK(!inv_core_lend_for(t, 0, 0, 70)); /* it is free already */
    hold_as(t, 1, 80);
    CHECK(!inv_core_lend_for(t, 0, 0, 70) && !inv_core_lend_for(t, 0, 1, 80));
    inv_table_unmap(t);

    t = table(1, INV_MODE_PINNED);
    inv_core_own(t, 0, 0);
    atomic_store(holder_tid(t), 70);
    atomic_store(&inv_slot_at(t, 0)->home, 0), atomic_store(&inv_slot_at(t, 0)->sleepers, 1);
    inv_core_offer(t, 0, INV_MAX_SLOTS);
    inv_ring(t, 0); /* handed to a thread in MPI that has not begun to hold it */
    CHECK(holder(t, 0) == 1 && !inv_core_lend_for(t, 0, 0, 70) && absent(t) == 0);
    inv_table_unmap(t);
}

static void test_return_without_borrower(void)
{
    struct inv_table *t = table_with_absent();
    unsigned evicted = 99;
    CHECK(inv_core_return_to(t, 0, 0, 70, &evicted) && evicted == INV_MAX_SLOTS);
    CHECK(holder(t, 0) == 1 && absent(t) == 70 && inv_core_thread(t, 0) == 70);
    CHECK(!inv_core_borrow(t, 0, 1) && !inv_core_borrow(t, 0, 0));
    /* it sleeps again, and has not noticed anything */
    CHECK(inv_core_lend_for(t, 0, 0, 70) && holder(t, 0) == 0 && absent(t) == 70);
    CHECK(inv_core_return_to(t, 0, 0, 70, &evicted) && evicted == INV_MAX_SLOTS);
    inv_table_unmap(t);
}

static void test_return_evicts_borrower(void)
{
    struct inv_table *t = table_with_absent();
    unsigned evicted = 99;
    hold_as(t, 1, 80);
    CHECK(inv_core_reclaim(t, 0, 0) == INV_RECLAIM_ASKED);
    CHECK(inv_core_return_to(t, 0, 0, 70, &evicted) && evicted == 1);
    CHECK(holder(t, 0) == 1 && !reserved(t, 0) && !inv_core_lend(t, 0, 1));
    CHECK(atomic_load(holder_tid(t)) == 80 && inv_core_thread(t, 0) == 70);
    /* thread 70 is known to hold it although holder_tid names the one that is evicted */
    CHECK(inv_core_lend_for(t, 0, 0, 70));
    inv_table_unmap(t);
}

static void test_nothing_is_returned_that_is_not_the_threads_any_more(void)
{
    unsigned evicted = 99;
    struct inv_table *t = table_with_absent();
    CHECK(!inv_core_return_to(t, 0, 0, 71, &evicted) && absent(t) == 70); /* another thread */
    CHECK(inv_core_own(t, 0, 2) == 0);
    CHECK(!inv_core_return_to(t, 0, 0, 70, &evicted) && absent(t) == 0 && holder(t, 0) == 0);
    inv_table_unmap(t);

    t = table_with_absent();
    hold_as(t, 0, 71); /* another thread of the owner has it */
    CHECK(!inv_core_return_to(t, 0, 0, 70, &evicted) && absent(t) == 0);
    CHECK(holder(t, 0) == 1 && inv_core_thread(t, 0) == 71);
    inv_table_unmap(t);

    t = table_with_absent();
    hold_as(t, 1, 80);
    CHECK(!inv_core_end_absence(t, 0, 0, 70, false));
    CHECK(!inv_core_return_to(t, 0, 0, 70, &evicted) && holder(t, 0) == 2);
    CHECK(inv_core_lend(t, 0, 1) && evicted == 99);
    inv_table_unmap(t);
}

static void test_absence_ends_with_the_core(void)
{
    unsigned evicted;
    struct inv_table *t = table_with_absent();
    hold_as(t, 1, 80);
    CHECK(inv_core_return_to(t, 0, 0, 70, &evicted));
    CHECK(!inv_core_end_absence(t, 0, 0, 71, false) && absent(t) == 70);
    CHECK(inv_core_end_absence(t, 0, 0, 70, false) && absent(t) == 0);
    CHECK(holder(t, 0) == 1 && atomic_load(holder_tid(t)) == 70);
    CHECK(!inv_core_end_absence(t, 0, 0, 70, true)); /* once */
    CHECK(inv_core_lend(t, 0, 0));
    inv_table_unmap(t);

    t = table_with_absent(); /* free */
    CHECK(inv_core_end_absence(t, 0, 0, 70, false) && holder(t, 0) == 1);
    CHECK(absent(t) == 0 && atomic_load(holder_tid(t)) == 70 && inv_core_lend(t, 0, 0));
    inv_table_unmap(t);

    t = table_with_holder(); /* rmd has only begun to lend it */
    atomic_store(&inv_core_at(t, 0)->absent_tid, 70);
    CHECK(inv_core_end_absence(t, 0, 0, 70, true) && absent(t) == 0 && holder(t, 0) == 1);
    CHECK(atomic_load(holder_tid(t)) == 70);
    inv_table_unmap(t);
}

/* The word moves all the same, so that what rmd is about to do with it fails. */
static void test_absence_ends_without_the_core(void)
{
    struct inv_table *t = table_with_absent();
    _Atomic inv_word *word = &inv_core_at(t, 0)->word;
    hold_as(t, 1, 80);
    inv_word before = atomic_load(word);
    CHECK(!inv_core_end_absence(t, 0, 0, 70, false) && absent(t) == 0);
    CHECK(holder(t, 0) == 2 && inv_word_epoch(atomic_load(word)) != inv_word_epoch(before));
    CHECK(atomic_load(holder_tid(t)) == 80);
    inv_table_unmap(t);

    t = table_with_absent(); /* another thread of the process has it */
    hold_as(t, 0, 71);
    CHECK(!inv_core_end_absence(t, 0, 0, 70, false) && absent(t) == 0);
    CHECK(holder(t, 0) == 1 && atomic_load(holder_tid(t)) == 71);
    inv_table_unmap(t);

    t = table_with_absent(); /* free, but another process's */
    CHECK(inv_core_own(t, 0, 2) == 0);
    CHECK(!inv_core_end_absence(t, 0, 0, 70, false) && absent(t) == 0 && holder(t, 0) == 0);
    inv_table_unmap(t);
}

/* It looks for threads that sleep while a process wants a core. */
static void test_first_wish_wakes_rmd_once(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    inv_want_set(t, 0, true);
    CHECK(atomic_load(&t->rmd_bell) == 0); /* it looks already */
    inv_want_set(t, 0, false);
    atomic_store(&t->unwatched, 1);
    inv_want_set(t, 1, false);
    CHECK(atomic_load(&t->rmd_bell) == 0 && atomic_load(&t->unwatched) == 1);
    inv_want_set(t, 1, true);
    inv_want_set(t, 2, true);
    CHECK(atomic_load(&t->rmd_bell) == 1 && atomic_load(&t->unwatched) == 0);
    inv_table_unmap(t);
}

static void test_tokens(void)
{
    struct inv_table *t = table(2, INV_MODE_ANONYMOUS);
    CHECK(inv_token_take(t, 0) && inv_token_take(t, 1) && !inv_token_take(t, 2));
    inv_token_force(t, 2);
    park(t, 3, 0);
    CHECK(inv_token_overdrawn(t));
    inv_token_return(t, 2);
    CHECK(!inv_token_overdrawn(t) && !woken(t, 3, 0, INV_NO_CORE));
    inv_token_return(t, 0);
    CHECK(woken(t, 3, 0, INV_NO_CORE) && inv_token_take(t, 3));
    park(t, 0, 0);
    atomic_store(&inv_slot_at(t, 3)->state, INV_SLOT_DEAD);
    inv_slot_reap(t, 3, NULL);
    CHECK(atomic_load(&t->free_tokens) == 1 && woken(t, 0, 0, INV_NO_CORE));
    /* nonsense that the dead one has left is not counted down: that takes seconds */
    park(t, 0, 0), park(t, 1, 0);
    atomic_store(&t->free_tokens, 0);
    atomic_store(&inv_slot_at(t, 2)->tokens, INT32_MAX);
    atomic_store(&inv_slot_at(t, 2)->state, INV_SLOT_DEAD);
    inv_slot_reap(t, 2, NULL);
    CHECK(woken(t, 0, 0, INV_NO_CORE) && woken(t, 1, 0, INV_NO_CORE));
    inv_table_unmap(t);
}

/* The protocol in model/tokens.pml. */
static void test_tokens_that_somebody_waits_for(void)
{
    struct inv_table *t = table(2, INV_MODE_ANONYMOUS);
    for (unsigned s = 0; s < 4; s++)
        inv_token_force(t, s);
    park(t, 0, 0);
    inv_token_return(t, 0); /* its last one: its parked worker may take one although none is free */
    CHECK(inv_token_overdrawn(t) && woken(t, 0, 0, INV_NO_CORE));
    inv_token_force(t, 0);
    park(t, 0, 0), park(t, 1, 0);
    inv_token_force(t, 1);
    inv_token_return(t, 1); /* not its last one */
    CHECK(!woken(t, 0, 0, INV_NO_CORE) && !woken(t, 1, 0, INV_NO_CORE));
    /* a process that dies between returning one and waking another has none; others wait for it */
    atomic_store(&t->free_tokens, 1);
    atomic_store(&inv_slot_at(t, 3)->tokens, 0);
    atomic_store(&inv_slot_at(t, 3)->state, INV_SLOT_DEAD);
    inv_slot_reap(t, 3, NULL);
    CHECK(woken(t, 0, 0, INV_NO_CORE) && !woken(t, 1, 0, INV_NO_CORE));
    /* what a process has returned, its last one, while it was said not to want any */
    atomic_store(&t->free_tokens, -1);
    atomic_store(&inv_slot_at(t, 1)->tokens, 0);
    inv_rescue(t);
    CHECK(woken(t, 1, 0, INV_NO_CORE));
    inv_table_unmap(t);
}

/* Of a process without a core, beside those that have one. */
static void test_only_token(void)
{
    struct inv_table *t = table(2, INV_MODE_PINNED);
    atomic_store(&t->free_tokens, 0);
    CHECK(!inv_token_overdrawn(t) && inv_token_take_only(t, 0) && !inv_token_take_only(t, 0));
    CHECK(inv_token_overdrawn(t) && inv_token_take_only(t, 1));
    park(t, 0, 0), park(t, 2, 0);
    inv_token_return(t, 0); /* its parked worker may take it again, and no other one is woken */
    CHECK(woken(t, 0, 0, INV_NO_CORE) && !woken(t, 2, 0, INV_NO_CORE));
    atomic_store(&inv_slot_at(t, 1)->state, INV_SLOT_DEAD);
    inv_slot_reap(t, 1, NULL);
    CHECK(!inv_token_overdrawn(t) && atomic_load(&t->free_tokens) == 0);
    inv_table_unmap(t);
}

static void test_arrival_board(void)
{
    struct inv_table *t = table(1, INV_MODE_PINNED);
    int a = inv_arrival_board_alloc(t, 3), b = inv_arrival_board_alloc(t, 130);
    int c = inv_arrival_board_alloc(t, 1);
    CHECK(a == 0 && b == 3 && c == 133 && inv_arrival_board_alloc(t, INV_ARRIVAL_LINES) == -1);
    atomic_store(&inv_arrival_line_at(t, 50)->count, 7);
    inv_arrival_board_free(t, b, 130);
    CHECK(inv_arrival_board_alloc(t, 131) == 134 && inv_arrival_board_alloc(t, 130) == 3);
    CHECK(atomic_load(&inv_arrival_line_at(t, 50)->count) == 0);
    CHECK(inv_arrival_board_alloc(t, INV_ARRIVAL_LINES - 134 - 131) == 265);
    CHECK(inv_arrival_board_alloc(t, 1) == -1);
    inv_arrival_board_free(t, 4095, 1);
    CHECK(inv_arrival_board_alloc(t, 1) == 4095);
    inv_table_unmap(t);
}

int main(void)
{
    test_table();
    test_transitions();
    test_offer();
    test_ring();
    test_another_domain();
    test_stale_reservation_is_dropped();
    test_new_owner_that_wants_has_asked();
    test_owner_that_gets_its_core_back_has_asked();
    test_rescue_asks_for_owners();
    test_reap();
    test_core_is_lent_for_its_own_thread_only();
    test_return_without_borrower();
    test_return_evicts_borrower();
    test_nothing_is_returned_that_is_not_the_threads_any_more();
    test_absence_ends_with_the_core();
    test_absence_ends_without_the_core();
    test_first_wish_wakes_rmd_once();
    test_tokens();
    test_tokens_that_somebody_waits_for();
    test_only_token();
    test_arrival_board();
    puts("core: all transitions as documented");
    return 0;
}
