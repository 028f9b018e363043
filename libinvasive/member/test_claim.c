/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * test_claim.c - what include/invasive.h promises, one line per promise.  Runs unmanaged and
 * under `invade`; argv[1] says which is expected.  Prints what did not hold.
 */
#define _GNU_SOURCE
#include "invasive.h"
#include "libinvasive/base/test_check.h"
#include "libinvasive/process.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int invade(unsigned min, unsigned max, double workload, enum inv_blocking blocking)
{
    struct inv_constraint c = {.min_cores = min, .max_cores = max, .workload = workload};
    return inv_invade(&c, blocking, NULL);
}

static void test_invalid_constraints(void)
{
    unsigned cores = inv_domain_cores();
    CHECK(invade(2, 1, 0, INV_NONBLOCKING) == -1 && errno == EINVAL);
    CHECK(invade(cores + 1, 0, 0, INV_NONBLOCKING) == -1 && errno == EINVAL);
    CHECK(invade(0, 0, -1, INV_NONBLOCKING) == -1 && errno == EINVAL);
    CHECK(invade(0, 0, NAN, INV_NONBLOCKING) == -1 && errno == EINVAL);
    CHECK(inv_announce_workload(INFINITY) == -1 && errno == EINVAL);
    CHECK(inv_announce_workload(-1) == -1 && errno == EINVAL);
}

static void test_unmanaged(void)
{
    struct inv_cpus mask;
    inv_cpus_get(0, &mask);
    struct inv_claim claim = {0};
    CHECK(inv_invade(NULL, INV_BLOCKING, &claim) == 0 && !claim.managed);
    CHECK(claim.owned_cores == (unsigned)inv_cpus_count(&mask));
    CHECK(claim.held_cores == claim.owned_cores);
    CHECK(inv_announce_workload(3) == 0 && inv_retreat() == 0);
    CHECK(!inv_claim_now().managed);
}

/* rmd converts a measured workload, so the same figure from the program is another constraint. */
static void test_measured(struct inv_slot *slot, const struct inv_constraint *own)
{
    const struct inv_scalability graph = {{{1, 1}, {2, 1.5F}}};
    CHECK(!atomic_load(&slot->workload_measured));
    CHECK(inv_announce_measured_workload(-1) == -1 && errno == EINVAL);
    CHECK(inv_announce_measured_workload(own->workload) == 0);
    CHECK(atomic_load(&slot->workload_measured));
    CHECK(inv_announce_scalability(&graph) == 0 && atomic_load(&slot->workload_measured));
    CHECK(inv_announce_scalability(NULL) == 0 && atomic_load(&slot->workload_measured));
    CHECK(inv_reinvade(own, INV_NONBLOCKING, NULL) == 0 && !atomic_load(&slot->workload_measured));
}

static void test_managed(void)
{
    struct inv_claim claim = {0};
    CHECK(inv_invade(NULL, INV_NONBLOCKING, &claim) == 0 && claim.managed);
    if (!claim.managed)
        return;
    struct inv_slot *slot = inv_own_slot();

    const struct inv_constraint five = {.min_cores = 1, .workload = 5};
    const struct inv_constraint six = {.min_cores = 1, .max_cores = 1, .workload = 6};
    CHECK(inv_invade(&five, INV_BLOCKING, &claim) == 0);
    CHECK(atomic_load(&slot->decided_seq) == atomic_load(&slot->constraint_seq));
    CHECK(claim.owned_cores == inv_domain_cores() && claim.held_cores >= 1);

    uint32_t seq = atomic_load(&slot->constraint_seq);
    uint32_t bell = atomic_load(&inv_process.table->rmd_bell);
    for (int i = 0; i < 100; i++)
        CHECK(inv_reinvade(&five, i % 2 ? INV_BLOCKING : INV_NONBLOCKING, &claim) == 0);
    CHECK(inv_announce_workload(5) == 0);
    CHECK(invade(2, 1, 0, INV_BLOCKING) == -1);
    CHECK(atomic_load(&slot->constraint_seq) == seq);
    CHECK(atomic_load(&inv_process.table->rmd_bell) == bell);

    CHECK(inv_announce_workload(6) == 0 && atomic_load(&slot->constraint_seq) == seq + 1);
    CHECK(atomic_load(&slot->min_cores) == 1);
    CHECK(inv_reinvade(&six, INV_BLOCKING, &claim) == 0);
    CHECK(claim.owned_cores == 1);
    test_measured(slot, &six);
    CHECK(inv_retreat() == 0 && atomic_load(&slot->max_cores) == 1);
    CHECK(inv_claim_now().held_cores >= 1);
}

/* Announces two constraints in turn, and the same again, which is to change nothing. */
static void *announce_in_turn(void *workload)
{
    for (int i = 0; i < 40; i++) {
        struct inv_constraint c = {.workload = *(double *)workload + i / 2 % 2};
        CHECK(inv_reinvade(&c, INV_BLOCKING, NULL) == 0);
    }
    return NULL;
}

static void test_two_threads(void)
{
    struct inv_slot *slot = inv_own_slot();
    double workload[2] = {3, 7};
    pthread_t other;
    CHECK(pthread_create(&other, NULL, announce_in_turn, &workload[1]) == 0);
    announce_in_turn(&workload[0]);
    pthread_join(other, NULL);
    CHECK(atomic_load(&slot->decided_seq) == atomic_load(&slot->constraint_seq));
    const struct inv_constraint last = {.workload = 5};
    uint32_t seq = atomic_load(&slot->constraint_seq);
    CHECK(inv_reinvade(&last, INV_BLOCKING, NULL) == 0);
    CHECK(atomic_load(&slot->decided_seq) == seq + 1);
}

int main(int argc, char **argv)
{
    bool managed = argc > 1 && strcmp(argv[1], "managed") == 0;
    if (managed) {
        test_managed();
        test_two_threads();
    } else
        test_unmanaged();
    test_invalid_constraints();
    unsigned major, minor, patch;
    CHECK(sscanf(inv_version(), "%u.%u.%u", &major, &minor, &patch) == 3);
    if (failures == 0)
        puts("claims: as documented");
    return failures != 0;
}
