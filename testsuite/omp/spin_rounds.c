/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that wait for each other in loops of the program's own, again and again. */
#include "check.h"
#include <omp.h>
#include <stdatomic.h>

static atomic_int arrived;

int main(void)
{
    enum { REGIONS = 4, ROUNDS = 6 };
    for (int region = 0; region < REGIONS; region++) {
        atomic_store(&arrived, 0);
#pragma omp parallel
        {
            int n = omp_get_num_threads();
            for (int round = 1; round <= ROUNDS; round++) {
                atomic_fetch_add(&arrived, 1);
                while (atomic_load(&arrived) < round * n)
                    ;
            }
        }
    }
    return check_ok();
}
