/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/*
 * region.c - the struct of a parallel region: the registry, the gate, and thread numbers (region.h).
 */
#include "region.h"
#include "process.h"
#include <string.h>

struct gomp_registry gomp_registry;

struct gomp_region *gomp_region_alloc (void)
{
    gomp_spinlock_lock(&gomp_registry.lock);
    struct gomp_region **list = gomp_registry.free_registered ? &gomp_registry.free_registered : &gomp_registry.free_others, *region = *list;
    if (region)
        *list = region->next_free;
    gomp_spinlock_unlock(&gomp_registry.lock);
    if (!region) {
        region = gomp_aligned_alloc(__alignof__(*region), sizeof *region);
        memset(region, 0, sizeof *region);
    }
    return region;
}

void gomp_region_free (struct gomp_region *region)
{
    struct gomp_region **list = region->registered ? &gomp_registry.free_registered : &gomp_registry.free_others;
    gomp_spinlock_lock(&gomp_registry.lock);
    region->next_free = *list;
    *list = region;
    gomp_spinlock_unlock(&gomp_registry.lock);
}

bool gomp_region_register (struct gomp_region *region)
{
    if (region->registered)
        return true;
    gomp_spinlock_lock(&gomp_registry.lock);
    for (unsigned i = 0; i < GOMP_REGIONS_REGISTERED && !region->registered; i++)
        if (!atomic_load_explicit(&gomp_registry.region[i], memory_order_relaxed)) {
            inv_assert(atomic_load_explicit(&region->gate, memory_order_relaxed) == 0);
            region->tickets.number = i;
            atomic_store_explicit(&gomp_registry.region[i], region, memory_order_release);
            if (i >= gomp_registry.high)
                atomic_store_explicit(&gomp_registry.high, i + 1, memory_order_release);
            region->registered = true;
        }
    gomp_spinlock_unlock(&gomp_registry.lock);
    return region->registered;
}

void gomp_regions_forget (void)
{
    memset(&gomp_registry, 0, sizeof gomp_registry);
}

/* --- which region */

struct gomp_region *gomp_region_around (const struct gomp_team *team)
{
    while (team && !team->barrier.region)
        team = team->prev_ts.team;
    return team ? team->barrier.region : NULL;
}

bool gomp_region_is_within (struct gomp_region *region, const struct gomp_region *of)
{
    while (region && region != of)
        region = atomic_load_explicit(&region->outer, memory_order_relaxed);
    return region != NULL;
}

/* Contexts may run on the calling thread during such a wait, since they cannot depend on what the
 * thread does after it.  In any other wait they might: the thread may hold a lock of the
 * program. */
bool gomp_region_waits_for_all (const int *addr)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_region *region = team ? team->barrier.region : NULL;
    if (!region || !region->elastic || gomp_thread()->ts.team_id != 0)
        return false;
    /* Not at a wait for explicit tasks, which the master may run itself, on its core.  While a
     * context ran one there the master could not, and fewer thread numbers than cores would run
     * tasks. */
    return addr == (const int *)&team->barrier.generation || addr == (const int *)&region->end_word;
}

bool gomp_region_is_open (struct gomp_region *region, uint32_t epoch)
{
    return atomic_load_explicit(&region->epoch, memory_order_relaxed) == epoch &&
           atomic_load_explicit(&region->gate, memory_order_relaxed) != 0;
}

/* --- tickets */

static bool has_tickets_in_view (struct gomp_region *region)
{
    return gomp_tickets_in_view(&region->tickets, inv_hold);
}

bool gomp_tickets_left (void)
{
    return gomp_any_region(gomp_region_has_tickets);
}

bool gomp_tickets_in_sight (void)
{
    return gomp_any_region(has_tickets_in_view);
}

/* --- the gate */

bool gomp_region_enter (struct gomp_region *region)
{
    uint64_t g = atomic_load_explicit(&region->gate, memory_order_relaxed);
    do
        if (g == 0)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&region->gate, &g, g + GOMP_INSIDE_ONE,
                                                  memory_order_acquire, memory_order_relaxed));
    return true;
}

void gomp_region_ref (struct gomp_region *region)
{
    uint64_t before = atomic_fetch_add_explicit(&region->gate, GOMP_INSIDE_ONE, memory_order_acquire);
    inv_assert(before != 0); /* the caller knows that it is open */
}

void gomp_region_unref (struct gomp_region *region)
{
    gomp_region_leave(region, GOMP_INSIDE_ONE);
}

/* --- thread numbers whose implicit tasks are over */

/* release; partner: gomp_number_take_vacant */
void gomp_numbers_vacate (struct gomp_region *region, const uint64_t *numbers)
{
    for (int word = 0; word < GOMP_VACANT_WORDS; word++)
        if (numbers[word])
            atomic_fetch_or_explicit(&region->vacant[word], numbers[word], memory_order_release);
}

int gomp_number_take_vacant (struct gomp_region *region)
{
    for (int word = 0; word < GOMP_VACANT_WORDS; word++) {
        uint64_t set = atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
        while (set) {
            uint64_t bit = set & -set;
            /* acquire: what was done under this number before; partner: gomp_numbers_vacate */
            if (atomic_fetch_and_explicit(&region->vacant[word], ~bit, memory_order_acquire) & bit)
                return word * 64 + __builtin_ctzll(bit);
            set = atomic_load_explicit(&region->vacant[word], memory_order_relaxed);
        }
    }
    return -1;
}

/* --- the master */

void gomp_region_count_ended (struct gomp_ended *tasks)
{
    unsigned count = tasks->count;
    inv_assert(count > 0 && tasks->region != NULL);
    tasks->count = 0;
    gomp_numbers_vacate(tasks->region, tasks->numbers);
    memset(tasks->numbers, 0, sizeof tasks->numbers);
    gomp_region_leave(tasks->region, count * GOMP_UNFINISHED_ONE);
}

/* --- waiting inside */

void gomp_region_sleeps (const int *addr)
{
    struct gomp_team *team = gomp_thread()->ts.team;
    struct gomp_region *region = team ? team->barrier.region : NULL;
    /* The master's wait at the end of the region is not counted: its outlined function is over. */
    if (region && addr != (const int *)&region->end_word) {
        atomic_fetch_add_explicit(&region->sleeps, 1, memory_order_relaxed);
        gomp_region_waits(region);
    }
}
