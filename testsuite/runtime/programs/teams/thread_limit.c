/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Our own default team size keeps to OMP_THREAD_LIMIT: a program that divides its data by
 * omp_get_max_threads() gets as many threads.  (Stock libgomp's default is the number of
 * processors, whatever the limit.)
 * @env OMP_THREAD_LIMIT=3
 */
#include "../check.h"
#include <omp.h>

int main(void)
{
    int most = omp_get_max_threads(), size = 0;
#pragma omp parallel
#pragma omp single
    size = omp_get_num_threads();
    CHECK(size <= 3, "team of %d", size);
    if (getenv("INVASIVE_SOCKET"))
        CHECK(size == most, "team of %d where omp_get_max_threads() is %d", size, most);
#pragma omp parallel num_threads(5)
#pragma omp single
    size = omp_get_num_threads();
    CHECK(size <= 3, "num_threads(5): team of %d", size);
    return check_ok();
}
