/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */
/* openmp.c - see openmp.h. */
#define _GNU_SOURCE
#include "libinvasive/process/openmp.h"
#include "libinvasive/process/thread.h"

#include <stdatomic.h>
#include <stddef.h>

/* Each is written once, by the OpenMP runtime: before its first region, and the clock by the service thread
 * when it begins. */
static struct {
    _Atomic(bool (*)(void)) work_waiting;
    /* release: what they point to is there before its address; partner: the acquire of the readers */
    _Atomic(const struct inv_task_point *) task_point;
    _Atomic(const struct inv_give_way *) give_way;
    _Atomic clockid_t service_clock; /* relaxed: a hint */
} told;

void inv_set_work_probe(bool (*work_waiting)(void))
{
    atomic_store(&told.work_waiting, work_waiting);
}

bool inv_work_waiting(void)
{
    bool (*work_waiting)(void) = atomic_load(&told.work_waiting);
    return work_waiting && work_waiting();
}

void inv_set_task_point(const struct inv_task_point *point)
{
    atomic_store_explicit(&told.task_point, point, memory_order_release);
}

const struct inv_task_point *inv_task_point(void)
{
    return atomic_load_explicit(&told.task_point, memory_order_acquire);
}

void inv_set_give_way(const struct inv_give_way *way)
{
    atomic_store_explicit(&told.give_way, way, memory_order_release);
}

bool inv_way_wanted(void)
{
    const struct inv_give_way *way = atomic_load_explicit(&told.give_way, memory_order_acquire);
    return way && way->wanted();
}

bool inv_give_way(uint64_t limit_ns)
{
    const struct inv_give_way *way = atomic_load_explicit(&told.give_way, memory_order_acquire);
    return !way || way->give(limit_ns);
}

bool inv_go_on_unheld(void)
{
    const struct inv_give_way *way = atomic_load_explicit(&told.give_way, memory_order_acquire);
    if (way)
        way->go_on();
    return way != NULL;
}

int inv_idle_openmp_threads(void)
{
    const struct inv_give_way *way = atomic_load_explicit(&told.give_way, memory_order_acquire);
    return way ? way->idle_threads() : 0;
}

bool inv_yield_to_own(void)
{
    const struct inv_give_way *way = atomic_load_explicit(&told.give_way, memory_order_acquire);
    return way && way->yield();
}

void inv_service_thread(void)
{
    clockid_t clock = (clockid_t)((~(unsigned)inv_own_tid() << 3) | 4 | 2);
    atomic_store_explicit(&told.service_clock, clock, memory_order_relaxed);
}

clockid_t inv_service_clock(void)
{
    return atomic_load_explicit(&told.service_clock, memory_order_relaxed);
}
