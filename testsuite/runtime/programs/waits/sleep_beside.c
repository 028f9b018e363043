/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implicit tasks that sleep in the kernel again and again do so beside each other after some regions,
 * however few cores there are.
 * @managed with more processes than cores it is not known which threads sleep
 */
#include "../check.h"
#include <stdatomic.h>
#include <time.h>

enum { N = 32, MOST_REGIONS = 400, PAUSE_NS = 3000000 };

static _Atomic int asleep, most;

static void pause_beside(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int now = atomic_fetch_add(&asleep, 1) + 1, before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    nanosleep(&pause, NULL);
    atomic_fetch_sub(&asleep, 1);
}

int main(void)
{
    for (int region = 0; region < MOST_REGIONS && atomic_load(&most) <= N / 2; region++) {
#pragma omp parallel num_threads(N)
        pause_beside();
    }
    CHECK(atomic_load(&most) > N / 2, "%d of %d at once", atomic_load(&most), N);
    return check_ok();
}
