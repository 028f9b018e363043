/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plugin with threadprivate data, for thread_data_loaded.
 * @helper
 */
#include <omp.h>

int set(int value);
int wrong(int value);
int own_regions(int rounds);

static int mine;
#pragma omp threadprivate(mine)

static void work(void)
{
    for (volatile int i = 0; i < 10000; i++)
        ;
}

int set(int value)
{
    work();
    mine = omp_get_thread_num() * 1000 + value;
    return 0;
}

int wrong(int value)
{
    work();
    return mine != omp_get_thread_num() * 1000 + value;
}

int own_regions(int rounds)
{
    int bad = 0;
    for (int i = 1; i <= rounds; i++) {
#pragma omp parallel
        set(i);
#pragma omp parallel reduction(+ : bad)
        bad += wrong(i);
    }
    return bad;
}
